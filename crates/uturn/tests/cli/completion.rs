//! Completion, as Bash and kubectl ask for it, and the name that a plugin of kubectl goes by.

#![cfg(unix)]

use std::os::unix::fs::symlink;
use std::process::Command;

use super::common::{Folder, root, run, transcript, uturn};

/// What kubectl gets for the words behind `kubectl uturn`, without the help of candidates.
fn for_kubectl(words: &[&str]) -> Vec<String> {
    let mut command = uturn(&["--", "kubectl-uturn"]);
    let output = command.args(words).env("UTURN_COMPLETE", "kubectl").output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}", transcript(&output));
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().map(|line| line.split('\t').next().unwrap().to_owned()).collect()
}

#[test]
fn names_are_those_of_the_files() {
    let shop = ["-f", "examples/shop"];
    for (words, expected) in [
        (&["trace", "--from", "po"][..], &["pod/", ":6"][..]),
        (
            &["trace", "--from", "pod/shop/w"],
            &["pod/shop/web-0", "pod/shop/web-1", "pod/shop/web-2", ":4"],
        ),
        (
            &["trace", "--from", "deploy/shop/"],
            &["deploy/shop/api", "deploy/shop/front", "deploy/shop/web", ":4"],
        ),
        (&["trace", "--from=node/"], &["--from=node/n1", "--from=node/n2", "--from=node/n3", ":4"]),
        (&["trace", "--from", "nothing/"], &[":4"]),
        (&["trace", "--to", "svc/shop/"], &["svc/shop/api", "svc/shop/front", ":4"]),
        (&["trace", "--to", "svc/shop/front:"], &["svc/shop/front:80", ":4"]),
        (&["trace", "--to", "pod/shop/front-0"], &["pod/shop/front-0:", ":6"]),
        (&["trace", "--to", "pod/shop/front-0:"], &["pod/shop/front-0:8080", ":4"]),
        (
            &["trace", "--to", "ingress/shop/front/shop"],
            &["ingress/shop/front/shop.example.com/", ":6"],
        ),
        (&["check", "ingress", ""], &["shop/front", ":4"]),
        (&["check", "service", "shop/a"], &["shop/api", ":4"]),
        (&["cure", "UT101", "shop/"], &["shop/api", "shop/front", ":4"]),
        (&["cure", "UT401", "shop/"], &["shop/front", ":4"]),
        (&["cure", "UT101", "ing"], &["ingress/", ":6"]),
        (&["cure", "UT101", "ingress/"], &["ingress/shop/front", ":4"]),
        (&["cure", "UT401", "svc/"], &[":4"]),
        (&["check", "service", "svc/shop/a"], &["svc/shop/api", ":4"]),
        (&["rules", "--node", ""], &["n1", "n2", "n3", ":4"]),
        (&["scan", "--namespace", ""], &["kube-system", "shop", ":4"]),
    ] {
        let command = &words[..1];
        let all = [command, &shop, &words[1..]].concat();
        assert_eq!(for_kubectl(&all), expected, "{words:?}");
    }
}

#[test]
fn words_without_names_need_no_cluster() {
    for (words, expected) in [
        (&["tr"][..], &["trace", ":4"][..]),
        (
            &["explain", "UT10"],
            &[
                "UT101", "UT102", "UT103", "UT104", "UT105", "UT106", "UT107", "UT108", "UT109",
                ":4",
            ],
        ),
        (&["explain", "asym"], &["asymmetric-return", ":4"]),
        (&["check", "s"], &["service", ":4"]),
        (
            &["lab", "run", "l7-loop"],
            &["l7-loop", "l7-loop-one-node", "l7-loop-strict-filter", ":4"],
        ),
        (&["scan", "--kube"], &["--kubeconfig", ":4"]),
        (&["rules", "--mode", ""], &["iptables", "ipvs", "nftables", ":4"]),
    ] {
        assert_eq!(for_kubectl(words), expected, "{words:?}");
    }
}

/// No cluster, no file, no such shell, standard input: there are no candidates, and nothing is said.
#[test]
fn nothing_is_printed_but_candidates() {
    for words in [
        &["trace", "--from", "pod/"][..],
        &["trace", "-f", "nowhere", "--from", "pod/"],
        &["trace", "-f", "-", "--from", "pod/"],
        &["trace", "-f", "examples/shop", "--context", "x", "--from", "pod/"],
        &["scan", "--context", ""],
        &["scan", "-n", ""],
    ] {
        assert_eq!(for_kubectl(words), [":4"], "{words:?}");
    }
    let mut command = uturn(&["--", "uturn", "tr"]);
    let output = command.env("UTURN_COMPLETE", "csh").output().unwrap();
    assert_eq!(transcript(&output), "exit 0\n");
}

/// Many names: their namespaces first.
#[test]
fn many_names_are_reached_by_their_namespaces() {
    let folder = Folder::new("completion-many");
    let mut text = String::new();
    for (namespace, count) in [("few", 2), ("many", 40)] {
        for number in 0..count {
            text.push_str(&format!(
                "---\n{{apiVersion: v1, kind: Service, metadata: {{name: s{number}, namespace: \
                 {namespace}}}, spec: {{ports: [{{port: 80}}]}}}}\n"
            ));
        }
    }
    folder.file("all.yaml", &text);
    let path = folder.0.join("all.yaml").display().to_string();
    let complete = |typed: &str| for_kubectl(&["trace", "-f", &path, "--to", typed]);
    assert_eq!(complete("svc/"), ["svc/few/", "svc/many/", ":6"]);
    assert_eq!(complete("svc/few/"), ["svc/few/s0", "svc/few/s1", ":4"]);
    assert_eq!(complete("svc/many/s1").len(), 12);
}

/// A real Bash, with the words of a line as it splits them: also at `:` and `=`.
#[test]
fn bash_completes_words_with_colons() {
    let complete = |line: &str, words: &[&str]| {
        let program = env!("CARGO_BIN_EXE_uturn");
        // An alias of the tests' own would not do: the script calls what it was made for.
        let script = "set -u\n\
                      source <(\"$PROGRAM\" completion bash)\n\
                      COMP_LINE=$LINE COMP_POINT=${#LINE} COMP_WORDS=(\"$@\") COMP_CWORD=$(($# - 1))\n\
                      \"$(complete -p uturn | sed 's/.*-F \\([^ ]*\\) .*/\\1/')\"\n\
                      printf '%s\\n' \"${COMPREPLY[@]-}\"";
        let mut bash = Command::new("bash");
        bash.args(["--norc", "-c", script, "bash"]).args(words).current_dir(root());
        bash.env("PROGRAM", program).env("LINE", line).env("KUBECONFIG", "no-kubeconfig");
        let output = bash.output().unwrap();
        assert!(output.stderr.is_empty(), "{}", transcript(&output));
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(complete("uturn tra", &["uturn", "tra"]), "trace\n");
    assert_eq!(
        complete(
            "uturn trace -f examples/shop --to svc/shop/front:",
            &["uturn", "trace", "-f", "examples/shop", "--to", "svc/shop/front", ":"]
        ),
        "80\n"
    );
    assert_eq!(
        complete(
            "uturn  trace --from=pod/shop/w -f examples/shop --to=svc/shop/front:8",
            &[
                "uturn",
                "trace",
                "--from",
                "=",
                "pod/shop/w",
                "-f",
                "examples/shop",
                "--to",
                "=",
                "svc/shop/front",
                ":",
                "8"
            ]
        ),
        "80\n"
    );
    assert_eq!(
        complete(
            "uturn rules -f examples/shop --node=",
            &["uturn", "rules", "-f", "examples/shop", "--node", "="]
        ),
        "n1\nn2\nn3\n"
    );
    assert_eq!(complete("uturn scan -n ", &["uturn", "scan", "-n", ""]), "\n");
}

#[test]
fn every_shell_has_a_script() {
    for shell in ["bash", "elvish", "fish", "kubectl", "powershell", "zsh"] {
        let printed = run(&["completion", shell]);
        assert!(printed.starts_with("exit 0\n") && printed.contains("UTURN_COMPLETE"), "{printed}");
    }
    // As a file of `fpath`, the script is the completer at the first call.
    let zsh = run(&["completion", "zsh"]);
    let first =
        "if [[ ${funcstack[1]} == _uturn ]]; then\n    _clap_dynamic_completer_uturn \"$@\"\n";
    assert!(zsh.contains(first) && zsh.contains("function _clap_dynamic_completer_uturn"), "{zsh}");
}

/// Called as kubectl calls its plugins, every text names commands as they are typed.
#[test]
fn a_plugin_goes_by_its_name() {
    let folder = Folder::new("completion-plugin");
    for name in ["kubectl-uturn", "kubectl_complete-uturn"] {
        symlink(env!("CARGO_BIN_EXE_uturn"), folder.0.join(name)).unwrap();
    }
    let plugin = |name: &str, words: &[&str]| {
        let mut command = Command::new(folder.0.join(name));
        command.args(words).current_dir(root()).env("NO_COLOR", "1").env("COLUMNS", "110");
        transcript(&command.env("KUBECONFIG", "no-kubeconfig").output().unwrap())
    };
    let help = plugin("kubectl-uturn", &["scan", "--help"]);
    assert!(help.contains("Usage: kubectl uturn scan [OPTIONS]"), "{help}");
    assert!(help.contains("  kubectl uturn scan -f deploy/\n"), "{help}");
    assert!(help.contains("A bundle that `kubectl uturn collect` wrote"), "{help}");
    let scan = plugin("kubectl-uturn", &["scan", "-f", "examples/shop"]);
    assert!(scan.contains("  kubectl uturn explain UT101\n"), "{scan}");
    assert!(scan.contains("  kubectl uturn trace -f examples/shop --from pod/shop/"), "{scan}");
    let json = plugin("kubectl-uturn", &["scan", "-f", "examples/shop", "-o", "json"]);
    assert!(!json.contains("kubectl uturn"), "{json}");
    let typo = plugin("kubectl-uturn", &["cure", "-f", "examples/shop", "UT777", "shop/front"]);
    assert!(typo.contains(": kubectl uturn explain lists all codes"), "{typo}");
    let words = plugin("kubectl_complete-uturn", &["check", "-f", "examples/shop", "ingress", ""]);
    assert_eq!(words, "exit 0\n--- stdout\nshop/front\n:4\n");
    assert_eq!(plugin("kubectl_complete-uturn", &[]), "exit 0\n");
}
