//! What is printed of texts that someone else wrote: no character reaches a terminal that it obeys or a reader
//! cannot see, and commands that may be pasted are read by a shell as they are meant.

use std::fs;
use std::process::{Command, Output};

use serde_json::{Value, json};
use uturn_dice::Dice;
use uturn_model::visible::is_hidden;

use super::common::{Folder, root, uturn};

/// What terminals, shells, JSON, YAML, XML and the program itself might take for something else.
const PARTS: [&str; 30] = [
    "\u{1b}]52;c;eA==\u{7}",
    "\u{1b}[31m",
    "\u{1b}[2J\u{1b}[H",
    "\u{9b}31m",
    "\u{9d}0;x\u{9c}",
    "\u{7f}",
    "\u{8}\u{8}",
    "\u{202e}gnp.",
    "\u{2066}a\u{2069}",
    "\u{200f}",
    "\u{61c}",
    "\u{200b}",
    "\u{feff}",
    "\u{2028}",
    "\u{85}",
    "\u{e0041}",
    "\r",
    "\nnothing found; 9 of 9 calls fine\n",
    "\tx",
    "$(touch x)",
    ";touch x",
    "`touch x`",
    "'; touch x; '",
    "\"&&touch x",
    "|uturn scan",
    " uturn cure ",
    "%s%n",
    "\\033[31m",
    "<b>&amp;",
    "!x",
];

/// A text of some of them.
fn hostile(dice: &mut Dice) -> String {
    let count = dice.between(1, 3);
    let parts: Vec<&str> = (0..count).map(|_| dice.choose(&PARTS)).collect();
    parts.join("a")
}

/// A text in YAML, each character by its number.
fn quoted(text: &str) -> String {
    let numbers = text.chars().map(|c| format!("\\U{:08x}", u32::from(c)));
    format!("\"{}\"", numbers.collect::<String>())
}

/// The example with such texts wherever a cluster may have them.
fn write(folder: &Folder, dice: &mut Dice) -> String {
    let nodes = fs::read_to_string(root().join("examples/shop/nodes.yaml")).unwrap();
    let front = fs::read_to_string(root().join("examples/shop/front.yaml")).unwrap();
    let web = fs::read_to_string(root().join("examples/shop/web.yaml")).unwrap();
    let path = format!("/{}", hostile(dice));
    let front = front
        .replacen("path: /\n", &format!("path: {}\n", quoted(&path)), 1)
        .replacen(
            "labels: {app: front}",
            &format!("labels: {{app: front, x: {}}}", quoted(&hostile(dice))),
            1,
        )
        .replacen(
            "image: registry.example.com/shop/front:1.4",
            &format!("image: {}", quoted(&hostile(dice))),
            1,
        );
    let comment = hostile(dice).replace(['\n', '"'], "");
    let facts = json!({
        "apiVersion": "uturn.dev/v1alpha1",
        "kind": "Facts",
        "spec": {"nodes": {"n1": {"iptables": format!(
            "*filter\n:INPUT ACCEPT [0:0]\n-A INPUT -s 192.0.2.0/24 -m comment --comment \"{comment}\" -j DROP\nCOMMIT\n"
        )}}},
    });
    let other = json!({
        "apiVersion": format!("example.com/{}", hostile(dice)),
        "kind": hostile(dice),
        "metadata": {"name": hostile(dice)},
    });
    let host = json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {
            "name": "other",
            "namespace": "shop",
            "annotations": {"kubernetes.io/ingress.class": "qcloud", "x": hostile(dice)},
        },
        "spec": {"rules": [{"host": hostile(dice), "http": {"paths": [{
            "path": format!("/{}", hostile(dice)),
            "pathType": "ImplementationSpecific",
            "backend": {"service": {"name": "front", "port": {"name": hostile(dice)}}},
        }]}}]},
        "status": {"loadBalancer": {"ingress": [{"ip": "10.0.0.101", "hostname": hostile(dice)}]}},
    });
    folder
        .file("cluster/host.json", &host.to_string())
        .file("cluster/nodes.yaml", &nodes)
        .file("cluster/web.yaml", &web)
        .file("cluster/front.yaml", &front)
        .file("cluster/facts.json", &facts.to_string())
        .file("cluster/other.json", &other.to_string());
    path
}

/// Fails where a stream has what a terminal must not get. Colours are the program's own.
fn assert_shown(what: &str, output: &Output) {
    for (name, bytes) in [("stdout", &output.stdout), ("stderr", &output.stderr)] {
        let text = String::from_utf8(bytes.clone()).unwrap();
        let mut plain = text.clone();
        for own in ["0", "1", "2", "4", "31", "32", "33"] {
            plain = plain.replace(&format!("\u{1b}[{own}m"), "");
        }
        let found = plain.chars().find(|c| is_hidden(*c) && !matches!(c, '\n' | '\t'));
        assert_eq!(found, None, "{what}, {name}: {text:?}");
        let forged = |line: &str| line.starts_with("nothing found; 9 of 9");
        // In markup a line break is a blank.
        let is_markup = text.starts_with('<');
        assert!(is_markup || !plain.lines().any(forged), "{what}, {name}: {text}");
        assert!(!text.contains("panicked"), "{what}: {text}");
    }
}

/// The words that a shell hands to `uturn` when it is given this line.
fn words(folder: &Folder, line: &str) -> Vec<String> {
    let script = format!("uturn() {{ printf '%s\\0' \"$@\"; }}\n{line}\n");
    let output = Command::new("sh").args(["-c", &script]).current_dir(&folder.0).output().unwrap();
    assert!(output.status.success(), "{line}: {output:?}");
    let words = String::from_utf8(output.stdout).unwrap();
    words.split_terminator('\0').map(str::to_owned).collect()
}

#[test]
fn no_hostile_text_reaches_a_terminal() {
    let folder = Folder::new("printed");
    let ingress = "ingress/shop/front";
    for seed in 0..2 {
        let mut dice = Dice::of_case(40, seed);
        let path = write(&folder, &mut dice);
        let run = |args: &[&str]| {
            let output =
                uturn(args).current_dir(&folder.0).env_remove("NO_COLOR").output().unwrap();
            assert_shown(&format!("seed {seed}: {args:?}"), &output);
            output
        };
        let target = format!("{ingress}/shop.example.com{path}");
        for output in ["text", "wide", "html", "junit", "sarif", "json", "yaml"] {
            let output = run(&["--color=always", "scan", "-f", "cluster", "--all", "-o", output]);
            assert!(matches!(output.status.code(), Some(0 | 1)), "{output:?}");
        }
        for output in ["text", "wide", "svg", "json"] {
            let from = ["trace", "-f", "cluster", "--from", "pod/shop/web-0", "--to"];
            run(&[&["--color=always"][..], &from, &[target.as_str(), "-o", output]].concat());
        }
        for topic in ["service", "ingress", "dns", "nodes", "cross-node"] {
            run(&["check", topic, "-f", "cluster", "-o", "wide"]);
        }
        for output in ["text", "json", "yaml"] {
            run(&["cure", "UT101", "shop/front", "-f", "cluster", "-o", output]);
        }
        run(&["rules", "-f", "cluster", "--node", "n1"]);
        // What is typed comes back in errors.
        let typed = hostile(&mut dice);
        for args in [
            vec!["explain", &typed],
            vec!["scan", "-f", &typed],
            vec!["scan", "--bundle", &typed],
            vec!["--colour", &typed],
            vec!["lb", "check", "-f", &typed],
            vec!["trace", "-f", "cluster", "--from", &typed, "--to", &typed],
            vec!["cure", "UT101", &typed, "-f", "cluster"],
            vec!["lab", "run", &typed],
        ] {
            assert_eq!(run(&args).status.code(), Some(2), "{args:?}");
        }
    }
    assert!(!folder.0.join("x").exists());
}

#[test]
fn suggested_commands_are_read_as_they_are_meant() {
    let folder = Folder::new("pasted");
    for seed in 0..8 {
        let path = write(&folder, &mut Dice::of_case(41, seed));
        // The folder is called by a hostile name too, as it is in the suggestion.
        let named =
            format!("a{}", ["$(touch x)", "'b c", "\u{1b}[31m", "\u{202e}d"][seed as usize % 4]);
        let _ = fs::remove_dir_all(folder.0.join(&named));
        fs::rename(folder.0.join("cluster"), folder.0.join(&named)).unwrap();
        let scan = uturn(&["scan", "-f", &named]).current_dir(&folder.0).output().unwrap();
        let text = String::from_utf8(scan.stdout).unwrap();
        let mut lines = text.lines();
        let line = lines.find_map(|line| line.strip_prefix("  packet by packet  "));
        let Some(line) = line else { panic!("seed {seed}: {text}") };
        if line.starts_with('#') {
            assert!(path.ends_with('\n'), "{path:?}: {line}");
            continue;
        }
        let words = words(&folder, line);
        assert_eq!(words[..3], ["trace", "-f", &named], "{line}");
        assert_eq!([&*words[3], &*words[5]], ["--from", "--to"], "{line}");
        // It does what it says.
        let args: Vec<&str> = words.iter().map(String::as_str).collect();
        let trace = uturn(&args).current_dir(&folder.0).output().unwrap();
        assert!(matches!(trace.status.code(), Some(0 | 1)), "{args:?}: {trace:?}");
        let all = uturn(&["scan", "-f", &named, "--all", "-o", "json"]);
        let all: Value =
            serde_json::from_slice(&{ all }.current_dir(&folder.0).output().unwrap().stdout)
                .unwrap();
        let is_there = |finding: &Value| {
            finding.to_string().contains(Value::from(&*path).to_string().trim_matches('"'))
        };
        assert!(all["findings"].as_array().unwrap().iter().any(is_there), "{path:?}: {all}");
    }
    assert!(!folder.0.join("x").exists());
}

/// A rule of a firewall that Facts state becomes the command of a cure: the comment is one word of it.
#[test]
fn a_rule_is_typed_word_by_word() {
    let folder = Folder::new("typed-rule");
    for (comment, word) in [
        ("$(touch x)", "$(touch x)"),
        ("a; touch x", "a; touch x"),
        ("it's \\\"q\\\"", "it's \"q\""),
        ("\u{1b}]52;c;eA==\u{7}", "\u{1b}]52;c;eA==\u{7}"),
    ] {
        let rules = format!(
            "*filter\n-A FORWARD -d 10.1.2.0/24 -p tcp -m comment --comment \"{comment}\" -j DROP\nCOMMIT\n"
        );
        let facts = json!({
            "apiVersion": "uturn.dev/v1alpha1",
            "kind": "Facts",
            "spec": {"nodes": {"*": {"iptables": rules}}},
        });
        folder.file("facts.json", &facts.to_string());
        let shop = root().join("examples/shop");
        let shop = shop.to_str().unwrap();
        let args = ["cure", "--from", "pod/shop/web-0", "--to", "svc/shop/front"];
        let args = [&args[..], &["-f", shop, "-f", "facts.json", "-o", "json"]].concat();
        let output = uturn(&args).current_dir(&folder.0).output().unwrap();
        let found: Value = serde_json::from_slice(&output.stdout).unwrap();
        let commands: Vec<&str> = found["cases"]
            .as_array()
            .into_iter()
            .flatten()
            .flat_map(|case| case["cures"].as_array().into_iter().flatten())
            .flat_map(|cure| cure["commands"].as_array().into_iter().flatten())
            .filter_map(Value::as_str)
            .filter(|command| command.contains(": iptables "))
            .collect();
        assert!(!commands.is_empty(), "{found}");
        let mut repeated = 0;
        for command in commands {
            let (_, command) = command.split_once(": iptables ").unwrap();
            let words = words(&folder, &format!("uturn {command}"));
            assert_eq!((&*words[0], &**words.last().unwrap()), ("-I", "ACCEPT"), "{command}");
            // A cure that lets in one port writes its own words instead of the rule's.
            if let Some(at) = words.iter().position(|word| word == "--comment") {
                assert_eq!(words[at + 1], word, "{command}");
                repeated += 1;
            }
        }
        assert!(repeated > 0, "{found}");
    }
    assert!(!folder.0.join("x").exists());
}

/// JSON and YAML hold what was read, whatever it was.
#[test]
fn values_of_json_and_yaml_are_what_was_read() {
    let folder = Folder::new("values");
    let mut dice = Dice::new(7);
    let path = format!("/{}", PARTS.concat());
    write(&folder, &mut dice);
    let front = fs::read_to_string(root().join("examples/shop/front.yaml")).unwrap();
    let front = front.replacen("path: /\n", &format!("path: {}\n", quoted(&path)), 1);
    folder.file("cluster/front.yaml", &front);
    let run = |output| {
        let args = ["scan", "-f", "cluster", "--all", "-o", output];
        uturn(&args).current_dir(&folder.0).output().unwrap().stdout
    };
    let found: Value = serde_json::from_slice(&run("json")).unwrap();
    let targets: Vec<String> = found["findings"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|finding| finding["targets"].as_array().unwrap())
        .map(|target| target.as_str().unwrap().to_owned())
        .collect();
    assert!(targets.iter().any(|target| target.ends_with(&path)), "{targets:?} {found}");
    let yaml = String::from_utf8(run("yaml")).unwrap();
    assert!(yaml.contains("\\U000e0041") && yaml.contains("\\u202e"), "{yaml}");
}
