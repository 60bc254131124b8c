//! The lab: prediction held against a real kernel.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Output, Stdio};

use super::common::{Folder, told, uturn};
use serde_json::Value;

/// Runs a command of the lab. `None`, with the reason noted for whoever runs the tests,
/// when there can be no lab here.
fn lab(args: &[&str]) -> Option<Output> {
    let output = uturn(&[&["lab"], args].concat()).output().unwrap();
    if output.status.code() != Some(3) {
        return Some(output);
    }
    let why = String::from_utf8_lossy(&output.stderr);
    uturn_testing::left_out(&format!("lab {}", args.join(" ")), why);
    None
}

#[test]
fn the_kernel_agrees() {
    let args =
        ["verify", "l7-loop", "l4-iptables", "--nodes", "2", "--connects", "10", "-o", "json"];
    let Some(output) = lab(&args) else { return };
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let scenarios = report["scenarios"].as_array().unwrap();
    assert_eq!(scenarios.len(), 5, "one scenario in three modes, one in two");
    for flow in scenarios.iter().flat_map(|one| one["flows"].as_array().unwrap()) {
        assert_eq!(flow["agrees"], true, "{flow}");
        let measured = flow["measured"].as_array().unwrap();
        let connects: u64 = measured.iter().map(|one| one["count"].as_u64().unwrap()).sum();
        assert!(connects >= 10, "{flow}");
    }
}

/// A lab that is kept says how to look inside, and goes when somebody presses Enter.
#[test]
fn a_lab_is_kept_until_enter() {
    let args = ["lab", "run", "l7-host-one-node", "--connects", "1", "--keep"];
    let Some(_) = lab(&["run", "l7-host-one-node", "--connects", "1"]) else { return };
    let mut command = uturn(&args);
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let stderr = BufReader::new(child.stderr.take().unwrap());
    let mut said = Vec::new();
    for line in stderr.lines().map_while(Result::ok) {
        let is_last = line.starts_with("Enter or Ctrl-C");
        said.push(line);
        if is_last {
            break;
        }
    }
    let space = |line: &String| line.split_whitespace().nth(3).map(ToOwned::to_owned);
    let ways: Vec<String> =
        said.iter().filter(|line| line.contains("ip netns exec")).filter_map(space).collect();
    assert!(ways.iter().any(|name| name.ends_with("-fabric")), "{said:?}");
    let stands = |name: &String| Path::new("/run/netns").join(name).exists();
    assert!(ways.iter().all(stands), "{ways:?}");
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(!ways.iter().any(stands), "{ways:?}");
}

#[test]
fn the_machine_cannot_be_watched() {
    let output = uturn(&["lab", "run", "l7-loop", "--vm", "--explain"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", told(&output));
    assert!(told(&output).contains("run them without --vm"), "{}", told(&output));
}

#[test]
fn a_seed_draws_the_same_scenarios_again() {
    let folder = Folder::new("fuzz-drawn");
    let args = ["lab", "fuzz", "--seed", "5", "--first", "3", "--count", "2", "--draw-only"];
    let told = folder.run(&args);
    assert!(told.contains("exit 0") && told.contains("uturn-fuzz-5-4.yaml"), "{told}");
    let text = || fs::read_to_string(folder.0.join("uturn-fuzz-5-3.yaml")).unwrap();
    let first = text();
    assert!(first.contains("kind: Scenario"), "{first}");
    folder.run(&args);
    assert_eq!(text(), first);
    assert!(folder.run(&["lab", "list", "-f", "uturn-fuzz-5-3.yaml"]).contains("fuzz-5-3"));
}

#[test]
fn random_scenarios_are_measured_and_counted() {
    let folder = Folder::new("fuzz-measured");
    let place = folder.0.display().to_string();
    let args = ["fuzz", "--seed", "1", "--count", "3", "--connects", "2", "-o", "json"];
    let Some(output) = lab(&[&args[..], &["--folder", &place]].concat()) else { return };
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["seed"], 1, "{}", told(&output));
    assert_eq!(report["scenarios"], 3, "{}", told(&output));
    assert!(report["flows"].as_u64().unwrap() >= 3, "{}", told(&output));
    let found = report["disagreements"].as_array().unwrap();
    let failed = report["failed"].as_array().unwrap();
    let clean = found.is_empty() && failed.is_empty();
    assert_eq!(output.status.code(), Some(if clean { 0 } else { 1 }), "{}", told(&output));
    for one in found {
        assert!(fs::exists(one["file"].as_str().unwrap()).unwrap(), "{one}");
    }
}
