//! Commands that are programs of their own: where they are found, and what they are given.
#![cfg(unix)]

use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::Command;

use uturn_testing::commands::{as_user, built};

use super::common::{Folder, run, transcript};

const PARTS: [(&str, &str); 4] = [
    ("lab", "crates/lab/lab-cli"),
    ("lb", "crates/balancer/lb-cli"),
    ("cloud", "crates/cloud/cloud-cli"),
    ("operator", "crates/cloud/operator-cli"),
];

/// Installs `uturn` alone, in the folder `bin`.
fn installed(test: &str) -> Folder {
    let folder = Folder::new(test);
    let bin = folder.0.join("bin");
    fs::create_dir_all(&bin).unwrap();
    // A link to the same file is a program of this folder; a symbolic link would be followed.
    fs::hard_link(built("uturn"), bin.join("uturn")).unwrap();
    folder
}

/// Writes a program that prints its name and its words, and ends with status 7.
fn program(path: &Path) {
    let name = path.display();
    let text = format!("#!/bin/sh\nprintf '%s|' '{name}' \"$@\"\nexit 7\n");
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
    fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
}

/// A line of the `uturn` of a folder, with its folder `path` as the search path.
fn line(folder: &Folder, words: &[&str]) -> Command {
    let mut command = Command::new(folder.0.join("bin/uturn"));
    command.args(words);
    as_user(&mut command);
    command.env("PATH", folder.0.join("path"));
    command
}

fn printed(folder: &Folder, words: &[&str]) -> String {
    transcript(&line(folder, words).output().unwrap())
}

#[test]
fn a_program_that_is_not_installed_is_named() {
    let folder = installed("parts-missing");
    let bin = folder.0.join("bin").display().to_string();
    for (part, sources) in PARTS {
        let expected = format!(
            "exit 3\n--- stderr\nerror: `uturn {part}` is the program uturn-{part}, which is not in \
             {bin} or on the PATH: put it there, or install it from the sources with `cargo install \
             --path {sources}`\n"
        );
        let lines: [&[&str]; 6] = [
            &[part],
            &[part, "run", "-f", "x"],
            &["-q", part, "run"],
            &["--color", "never", part, "--help"],
            &["help", part],
            &["help", part, "run"],
        ];
        for words in lines {
            assert_eq!(printed(&folder, words), expected, "{words:?}");
        }
    }
    let help = printed(&folder, &["--help"]);
    assert!(help.starts_with("exit 0\n") && help.contains("\n  lab  "), "{help}");
    // What is wrong before the command is said as ever.
    let both = printed(&folder, &["-qv", "lab", "list"]);
    assert!(both.starts_with("exit 2\n") && both.contains("cannot be used with"), "{both}");
}

#[test]
fn a_program_is_found_beside_and_on_the_path() {
    let folder = installed("parts-found");
    let (beside, on_path) = (folder.0.join("bin/uturn-lb"), folder.0.join("path/uturn-lb"));
    let expected =
        |path: &Path, words: &str| format!("exit 7\n--- stdout\n{}|{words}", path.display());
    program(&on_path);
    assert_eq!(printed(&folder, &["lb", "run"]), expected(&on_path, "lb|run|"));
    // A file that nobody may run is no program.
    fs::write(&beside, "").unwrap();
    fs::set_permissions(&beside, Permissions::from_mode(0o644)).unwrap();
    assert_eq!(printed(&folder, &["lb", "run"]), expected(&on_path, "lb|run|"));
    program(&beside);
    for (words, given) in [
        (vec!["lb", "run"], "lb|run|"),
        (vec!["-q", "lb", "check", "-v", "--", "-x"], "-q|lb|check|-v|--|-x|"),
        (vec!["--color=never", "help", "lb", "run"], "--color=never|help|lb|run|"),
        (vec!["lb", "a b", ""], "lb|a b||"),
    ] {
        assert_eq!(printed(&folder, &words), expected(&beside, given));
    }
    // Lines of `uturn` itself go to nobody else.
    let help = printed(&folder, &["help", "scan"]);
    assert!(help.starts_with("exit 0\n") && help.contains("Usage: uturn scan"), "{help}");
}

#[test]
fn a_program_that_cannot_be_started_is_named() {
    let folder = installed("parts-broken");
    let broken = folder.0.join("bin/uturn-lb");
    fs::write(&broken, "#!/nowhere\n").unwrap();
    fs::set_permissions(&broken, Permissions::from_mode(0o755)).unwrap();
    let said = printed(&folder, &["lb", "run"]);
    let expected = format!("exit 3\n--- stderr\nerror: cannot start {}: ", broken.display());
    assert!(said.starts_with(&expected), "{said}");
}

/// The program has the process id, the standard streams and the signals of `uturn`.
#[test]
fn a_program_takes_the_place_of_the_process() {
    let folder = installed("parts-replaced");
    let path = folder.0.join("bin/uturn-lb");
    program(&path);
    fs::write(&path, "#!/bin/sh\nread line\necho \"$$ $line\"\nread line\n").unwrap();
    let mut command = line(&folder, &["lb", "run"]);
    let (output, writer) = std::io::pipe().unwrap();
    let (input, mut feed) = std::io::pipe().unwrap();
    let mut child = command.stdin(input).stdout(writer).spawn().unwrap();
    drop(command);
    std::io::Write::write_all(&mut feed, b"hello\n").unwrap();
    let mut output = BufReader::new(output);
    let mut said = String::new();
    output.read_line(&mut said).unwrap();
    assert_eq!(said, format!("{} hello\n", child.id()));
    let id = child.id().to_string();
    assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    assert_eq!(child.wait().unwrap().signal(), Some(15));
    assert_eq!(output.read_to_string(&mut said).unwrap(), 0);
}

/// What `uturn` prints is what the program prints, as if the command were its own.
#[test]
fn lines_are_read_as_one_program_would() {
    for words in [
        vec!["lb"],
        vec!["lb", "--help"],
        vec!["lb", "run", "-h"],
        vec!["lb", "vet"],
        vec!["lb", "check"],
        vec!["lb", "check", "-f", "examples/lb/wrong.yaml"],
        vec!["lb", "check", "-f", "examples/lb/lb.yaml", "-v", "-o", "json"],
        vec!["cloud", "--help"],
        vec!["cloud", "serve", "--listen", "nowhere"],
        vec!["operator", "--help"],
        vec!["operator", "manifests"],
        vec!["lab", "--help"],
        vec!["lab", "list"],
        vec!["lab", "run", "no-such-scenario"],
        vec!["lab", "--version"],
    ] {
        let whole = through_uturn(&words);
        assert_eq!(whole, run(&words), "{words:?}");
        let part = built(&format!("uturn-{}", words[0]));
        let mut alone = Command::new(part);
        alone.args(&words[1..]);
        as_user(&mut alone);
        assert_eq!(transcript(&alone.output().unwrap()), whole, "{words:?}");
    }
    let help = through_uturn(&["help", "lab", "run"]);
    assert!(help.contains("Usage: uturn lab run [OPTIONS] [SCENARIO]..."), "{help}");
    assert_eq!(help, through_uturn(&["lab", "run", "--help"]));
    let wrong = ["lb", "check", "-f", "examples/lb/wrong.yaml"];
    assert_eq!(
        through_uturn(&[&["--color", "always"], &wrong[..]].concat()),
        through_uturn(&[&wrong[..], &["--color", "always"]].concat())
    );
    assert_eq!(
        through_uturn(&["lab", "--version"]),
        through_uturn(&["lb", "--version"]).replace("lb", "lab")
    );
}

fn through_uturn(words: &[&str]) -> String {
    let mut command = Command::new(built("uturn"));
    command.args(words);
    as_user(&mut command);
    transcript(&command.output().unwrap())
}

#[test]
fn lines_of_programs_are_completed() {
    let complete = |words: &[&str]| {
        let mut command = Command::new(built("uturn"));
        command.args(["--", "uturn"]).args(words);
        as_user(&mut command);
        transcript(&command.env("UTURN_COMPLETE", "bash").output().unwrap())
    };
    for (words, expected) in [
        (vec!["la"], "lab\n"),
        (vec!["lab", "ru"], "run\n"),
        (vec!["-q", "lab", "run", "l7-loop-"], "l7-loop-one-node\nl7-loop-strict-filter\n"),
        (vec!["lab", "run", "--mode", "ipt"], "iptables\n"),
        (vec!["help", "lb", "c"], "check\n"),
        (vec!["operator", "run", "--dry"], "--dry-run\n"),
    ] {
        assert_eq!(complete(&words), format!("exit 0\n--- stdout\n{expected}"), "{words:?}");
    }
    // Without the program there are no candidates, and no error.
    let folder = installed("parts-completed");
    let mut command = line(&folder, &["--", "uturn", "lab", "run", "l7"]);
    assert_eq!(transcript(&command.env("UTURN_COMPLETE", "bash").output().unwrap()), "exit 0\n");
}

/// A plugin of kubectl stays one.
#[test]
fn programs_know_that_kubectl_calls() {
    let folder = Folder::new("parts-plugin");
    for name in ["kubectl-uturn", "kubectl_complete-uturn"] {
        symlink(built("uturn"), folder.0.join(name)).unwrap();
    }
    let plugin = |name: &str, words: &[&str]| {
        let mut command = Command::new(folder.0.join(name));
        command.args(words);
        as_user(&mut command);
        transcript(&command.output().unwrap())
    };
    let help = plugin("kubectl-uturn", &["lb", "check", "--help"]);
    assert!(help.contains("Usage: kubectl uturn lb check"), "{help}");
    let candidates = plugin("kubectl_complete-uturn", &["lab", "run", "l7-loop-o"]);
    assert_eq!(candidates, "exit 0\n--- stdout\nl7-loop-one-node\n:4\n");
}
