//! The lab: prediction held against a real kernel.

use std::process::Output;

use super::common::{told, uturn};
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
