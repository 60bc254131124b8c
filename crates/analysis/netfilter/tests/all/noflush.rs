//! The input that `iptables-restore --noflush` accepts, compared with the real tool.
#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]
#![cfg(target_os = "linux")]

use uturn_dice::Dice;
use uturn_model::Family;
use uturn_netfilter::iptables::{self, parse_fragment};

const BASE: &str = "*nat\n:PREROUTING ACCEPT [0:0]\n:INPUT ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n\
                    :POSTROUTING ACCEPT [0:0]\n:WEB - [0:0]\n-A PREROUTING -j WEB\n\
                    -A WEB -p tcp -j RETURN\n-A WEB -p udp -j RETURN\nCOMMIT\n";

/// Accepted texts; each changes something.
const TAKEN: &[&str] = &[
    "* nat\n-A WEB -j ACCEPT\nCOMMIT\n",
    "*nat \n  -A WEB -j ACCEPT\nCOMMIT\n",
    "*nat\n-I WEB 1 -j ACCEPT\nCOMMIT\n",
    "*nat\n-I WEB -j ACCEPT\n--insert WEB 3 -s 10.0.0.1 -j ACCEPT\nCOMMIT\n",
    "*nat\n-I WEB 3 -j ACCEPT\n[5:60] -I INPUT 1 -j ACCEPT\nCOMMIT\n",
    "*nat\n-R WEB 2 -j ACCEPT\nCOMMIT\n",
    "*nat\n-D WEB 1\nCOMMIT\n",
    "*nat\n-D WEB -p udp -j RETURN\nCOMMIT\n",
    "*nat\n-C WEB -p udp -j RETURN\n-A INPUT -j ACCEPT\nCOMMIT\n",
    "*raw\n-A PREROUTING -j ACCEPT\nCOMMIT\n",
    "*filter\n-P FORWARD DROP\nCOMMIT\n",
    "*nat\n-E WEB NEW\nCOMMIT\n",
    "*nat\n-Z WEB\n-F WEB\n-D PREROUTING -j WEB\n-X WEB\nCOMMIT\n",
    "*nat\n-N NEW\n-N OLD\n-A WEB -j NEW\n-X OLD\nCOMMIT\n",
    "*nat\n-I INPUT -j WEB\n-N NEW\n-F\n-A NEW -j WEB\n-E WEB OLD\nCOMMIT\n",
    "*nat\n-F\n-X\n-N NEW\nCOMMIT\n",
    "*nat\n-A WEB -m comment --comment \"a b\"-j ACCEPT\nCOMMIT\n",
    "*nat\n-A WEB -m comment --comment a\"b \\\"c\" -j ACCEPT\nCOMMIT\n",
    "*nat\n-A WEB -s 10.0.0.1,10.0.0.2 -d 10.1.0.0/24,10.2.0.0/24 -j ACCEPT\nCOMMIT\n",
    "*nat\n-4 -A WEB -j ACCEPT\n-6 -A WEB -j RETURN\nCOMMIT\n",
    "*nat\n-A WEB -p tcp -j DNAT --to-destination 10.0.0.1-10.0.0.2:80\nCOMMIT\n",
];

/// Refused texts.
const REFUSED: &[(&str, &str)] = &[
    (
        "*nat\n-I WEB 4 -j ACCEPT\nCOMMIT\n",
        "2:8: found rule 4 of chain WEB, which has 2: expected 1 to 3",
    ),
    (
        "*nat\n-I WEB 0 -j ACCEPT\nCOMMIT\n",
        "2:8: found rule 0 of chain WEB, which has 2: expected 1 to 3",
    ),
    (
        "*nat\n-R WEB 3 -j ACCEPT\nCOMMIT\n",
        "2:8: found rule 3 of chain WEB, which has 2: expected 1 to 2",
    ),
    ("*nat\n-D WEB -p sctp -j RETURN\nCOMMIT\n", "2:1: chain WEB has no such rule"),
    ("*nat\n-X WEB\nCOMMIT\n", "2:4: chain WEB is in use: 1 of this table's rules lead to it"),
    ("*nat\n-N WEB\nCOMMIT\n", "2:4: chain WEB is there already"),
    ("*nat\n-N \"a b\"\nCOMMIT\n", "2:4: no chain can have the name \"a b\""),
    ("*nat\n-E WEB -a\nCOMMIT\n", "2:8: no chain can have the name \"-a\""),
    ("*nat\n-D PREROUTING 1\n-X WEB\nCOMMIT\n", "3:4: chain WEB has 2 rules: flush it first"),
    ("*nat\n-X\nCOMMIT\n", "2:1: chain WEB is in use: rules of chain PREROUTING lead to it"),
    ("*nat\n-D PREROUTING 1\n-X\nCOMMIT\n", "3:1: chain WEB has 2 rules: flush it first"),
    ("*nat\n-E WEB INPUT\nCOMMIT\n", "2:8: chain INPUT is there already"),
    ("*nat\n-A FORWARD -j ACCEPT\nCOMMIT\n", "2:4: table nat has no chain FORWARD"),
    (
        "*filter\n-P FORWARD QUEUE-IT\nCOMMIT\n",
        "2:12: found policy \"QUEUE-IT\", expected ACCEPT or DROP",
    ),
    (
        "*nat\n-A WEB -m comment --comment \"a b\"c -j ACCEPT\nCOMMIT\n",
        "2:34: found \"c\", expected an option",
    ),
    ("*nat\n-P WEB ACCEPT\nCOMMIT\n", "2:4: chain WEB is not a built-in one: it has no policy"),
    ("*nat\n-I GONE 1 -j ACCEPT\nCOMMIT\n", "2:4: chain GONE is not in this table"),
    (
        "*nat\n-A WEB -p tcp -j DNAT --to-destination 10.0.0.1 --to-destination 10.0.0.2\nCOMMIT\n",
        "2:66: found --to-destination a second time: a kernel takes one, which may be a range \
         (10.0.0.1-10.0.0.9)",
    ),
    (
        "*nat\n-A WEB ! -s 10.0.0.1,10.0.0.2 -j ACCEPT\nCOMMIT\n",
        "2:13: found \"10.0.0.1,10.0.0.2\", expected an IPv4 address or network",
    ),
];

fn loaded(text: &str) -> Result<String, Vec<String>> {
    let base = iptables::parse("base", BASE, Family::V4).unwrap();
    match parse_fragment(base, "part", text, Family::V4) {
        Ok(ruleset) => Ok(ruleset.to_string()),
        Err(errors) => Err(errors.iter().map(ToString::to_string).collect()),
    }
}

/// The rules after the real program has loaded the text, in the order of each chain.
fn really(tool: &str, text: &str) -> Result<String, String> {
    let script = format!(
        "cat >/dev/null; {tool}-restore <<'END'\n{BASE}END\n\
         {tool}-restore --noflush <<'END'\n{text}END\n{tool}-save"
    );
    uturn_testing::in_a_namespace(&script, "")
}

/// Rules by chain, chains and policies, without counters and undeclared chains.
fn essence(text: &str) -> Vec<String> {
    let (mut table, mut lines) = ("", Vec::new());
    for line in text.lines() {
        let line = line.split_once("] -A").map_or(line, |(_, rule)| rule.trim_start());
        match line.chars().next() {
            Some('*') => table = line,
            Some(':') if line.contains(" ACCEPT ") => {}
            Some(':') => lines.push((line.split('[').next().unwrap_or(""), table)),
            Some('-') => lines.push((line.trim_start_matches("-A "), table)),
            Some(_) if !line.starts_with(['#', 'C']) => lines.push((line, table)),
            _ => {}
        }
    }
    // The order of chains may differ, that of rules may not.
    lines.sort_by_key(|(line, table)| (*table, line.split(' ').next().map(str::to_owned)));
    lines.into_iter().map(|(line, table)| format!("{table} {line}")).collect()
}

#[test]
fn what_the_real_program_takes_is_taken() {
    let real = really("iptables", "*nat\nCOMMIT\n");
    if let Err(why) = &real {
        uturn_testing::skip(
            uturn_testing::Requirement::Kernel,
            "asking iptables-restore --noflush",
            why,
        );
    }
    let before = iptables::parse("base", BASE, Family::V4).unwrap().to_string();
    for text in TAKEN {
        let ours = loaded(text).unwrap_or_else(|errors| panic!("{text}{errors:#?}"));
        assert_ne!(ours, before, "{text}");
        for tool in ["iptables", "iptables-legacy"].iter().filter(|_| real.is_ok()) {
            let theirs = really(tool, text).unwrap_or_else(|why| panic!("{tool}: {text}{why}"));
            assert_eq!(essence(&ours), essence(&theirs), "{tool}: {text}");
        }
    }
}

#[test]
fn what_the_real_program_refuses_is_refused() {
    let is_there = really("iptables", "*nat\nCOMMIT\n").is_ok();
    for (text, expected) in REFUSED {
        assert_eq!(loaded(text).unwrap_err(), [format!("part:{expected}")], "{text}");
        for tool in ["iptables", "iptables-legacy"].iter().filter(|_| is_there) {
            assert!(really(tool, text).is_err(), "{tool}: {text}");
        }
    }
}

/// A command on few chains and rules, so that commands often meet what others made.
fn command(dice: &mut Dice) -> String {
    let chain = *dice.pick(&["WEB", "A", "B", "INPUT", "PREROUTING"]);
    let other = *dice.pick(&["WEB", "A", "B"]);
    // Chains lead to later ones only: a kernel refuses circles.
    let later = ["PREROUTING", "INPUT", "WEB", "A", "B"].into_iter().skip_while(|at| *at != chain);
    let later: Vec<&str> = later.skip(1).filter(|name| *name != "INPUT").collect();
    let rule = match dice.below(4) {
        0 => "-j ACCEPT".to_owned(),
        2.. if !later.is_empty() => format!("-j {}", dice.pick(&later)),
        _ => "-p udp -j RETURN".to_owned(),
    };
    let place = dice.below(3) + 1;
    match dice.below(16) {
        0..=2 => format!("-A {chain} {rule}"),
        3 => format!("-I {chain} {rule}"),
        4 => format!("-I {chain} {place} {rule}"),
        5 => format!("-R {chain} {place} {rule}"),
        6 => format!("-D {chain} {place}"),
        7 => format!("-D {chain} {rule}"),
        8 => format!("-C {chain} {rule}"),
        9 => "-F".to_owned(),
        10 => format!("-F {chain}"),
        11 => format!("-X {chain}"),
        12 => "-X".to_owned(),
        13 => format!(":{other} - [0:0]"),
        14 => format!("-E {chain} {other}"),
        _ => format!("-N {other}"),
    }
}

/// Whether a text declares the chains of a command: we also accept parts of a dump, which need not.
fn knows_chains(text: &str, command: &str) -> bool {
    let Ok(before) = loaded(&format!("{text}COMMIT\n")) else { return false };
    let mut names = command.split(' ').filter(|word| ["WEB", "A", "B"].contains(word));
    let (first, _) = command.split_once(' ').unwrap_or((command, ""));
    let new = matches!(first, "-N" | "-E") || first.starts_with(':');
    new || names.all(|name| before.contains(&format!(":{name} ")))
}

/// A text of commands that are accepted, and sometimes a last one that is not.
fn random_text(dice: &mut Dice) -> String {
    let mut text = "*nat\n".to_owned();
    for _ in 0..dice.between(4, 24) {
        let command = command(dice);
        if !knows_chains(&text, &command) {
            continue;
        }
        let more = format!("{text}{command}\n");
        let is_accepted = loaded(&format!("{more}COMMIT\n")).is_ok();
        if is_accepted || dice.once_in(20) {
            text = more;
        }
        if !is_accepted && text.ends_with(&format!("\n{command}\n")) {
            break;
        }
    }
    text + "COMMIT\n"
}

/// The judge is iptables-legacy: iptables-nft 1.8.9 sends a text as one batch and then mistakes or loses
/// rules and chains that the same batch made.
#[test]
fn random_texts_change_what_the_real_program_changes() {
    if let Err(why) = really("iptables-legacy", "*nat\nCOMMIT\n") {
        let what = "asking iptables-legacy-restore --noflush";
        return uturn_testing::skip(uturn_testing::Requirement::Kernel, what, why);
    }
    for seed in 0..100 {
        let text = random_text(&mut Dice::new(seed));
        let ours = loaded(&text);
        match (&ours, really("iptables-legacy", &text)) {
            (Ok(ours), Ok(theirs)) => {
                assert_eq!(essence(ours), essence(&theirs), "seed {seed}:\n{text}");
            }
            (Err(_), Err(_)) => {}
            (ours, theirs) => panic!("seed {seed}:\n{text}{ours:#?}\n{theirs:#?}"),
        }
    }
}

#[test]
fn what_something_else_printed_is_refused_in_one_line() {
    let list = "Chain INPUT (policy ACCEPT 5 packets, 300 bytes)\n pkts bytes target     prot opt \
                in     out     source               destination         \n    5   300 ACCEPT     \
                tcp  --  *      *       0.0.0.0/0            0.0.0.0/0            tcp dpt:22\n";
    let l = "this is what `iptables -L` prints, which leaves out interfaces and much of what rules \
             ask: run `iptables-save`";
    let s = "this is what `iptables -S` prints, which does not say of which table: run \
             `iptables-save`, or write `*TABLE` before it and `COMMIT` behind it";
    let nft =
        "this is what `nft list ruleset` prints: call the file nft.txt, or run `iptables-save`";
    for (text, expected) in [
        (list, format!("a:1:1: {l}")),
        ("# iptables -L\n\nChain X (1 references)\ntarget     prot opt\n", format!("a:3:1: {l}")),
        ("-P INPUT ACCEPT\n-P FORWARD DROP\n-N X\n-A INPUT -j X\n", format!("a:1:1: {s}")),
        ("-N X\n", format!("a:1:1: {s}")),
        ("table ip nat {\n\tchain X {\n\t}\n}\n", format!("a:1:1: {nft}")),
        (
            "iptables -A INPUT -j ACCEPT\niptables -A INPUT -j DROP\n",
            "a:1:1: this is a script that calls iptables: run it on a node, then `iptables-save`"
                .into(),
        ),
    ] {
        for read in [
            iptables::parse("a", text, Family::V4),
            parse_fragment(iptables::Ruleset::default(), "a", text, Family::V4),
        ] {
            let shown: Vec<String> = read.unwrap_err().iter().map(ToString::to_string).collect();
            assert_eq!(shown, std::slice::from_ref(&expected), "{text}");
        }
    }
    let shell = "root@n1:~# iptables-save\n*filter\n:INPUT ACCEPT [0:0]\nCOMMIT\n";
    assert_eq!(
        iptables::parse("a", shell, Family::V4).unwrap_err()[0].to_string(),
        "a:1:1: this is what a shell shows: leave out the prompt and all but the output"
    );
    // Parses the output of `-S` if the table is named.
    let text = "*filter\n-P FORWARD DROP\n-N X\n-A FORWARD -j X\nCOMMIT\n";
    let read = parse_fragment(iptables::Ruleset::default(), "a", text, Family::V4).unwrap();
    assert_eq!(
        read.to_string(),
        "*filter\n:FORWARD DROP [0:0]\n:X - [0:0]\n-A FORWARD -j X\nCOMMIT\n"
    );
    // Counters of `iptables-save -c` are kept.
    let text = "*filter\n:FORWARD DROP [7:70]\n[1:60] -A FORWARD -j DROP\nCOMMIT\n";
    assert_eq!(iptables::parse("a", text, Family::V4).unwrap().to_string(), text);
}
