//! Whole commands: the seeds do what they are asked, and so do most mutants. None breaks a promise.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test")]

use std::process::Command;

/// The numbers of the last row: how many worked, and how many did not, by reason.
fn tried(mutants: &str) -> Vec<u64> {
    let program = env!("CARGO_BIN_EXE_uturn-commands");
    let run = Command::new(program).args([mutants, "1"]).output().unwrap();
    let printed = String::from_utf8(run.stdout).unwrap();
    assert!(run.status.success(), "{printed}{}", String::from_utf8_lossy(&run.stderr));
    let row = printed.lines().find_map(|line| line.strip_prefix("all "));
    row.unwrap().split_whitespace().map(|count| count.parse().unwrap()).collect()
}

#[test]
fn seeds_do_what_they_are_asked() {
    let counts = tried("0");
    assert!(counts[0] > 20, "{counts:?}");
    assert_eq!(counts[1..], [0; 4], "usage, bad input, not here, not run");
}

#[test]
fn most_mutants_do_what_they_are_asked() {
    let counts = tried("200");
    let sum: u64 = counts.iter().sum();
    assert!(2 * counts[0] > sum, "{counts:?}");
}
