//! Runs every target over its seeds and a fixed number of mutants as an ordinary test, so that
//! machines without cargo-fuzz try the same inputs every time.

#![expect(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeSet;
use std::fs;
use std::thread;

use uturn_fuzz::TARGETS;
use uturn_fuzz::corpus::{folder, names};
use uturn_fuzz::run::first_broken;

/// Mutants of each target. `cargo xtask fuzz --short` tries others, and in CI does so each time.
const MUTANTS: usize = 600;

#[test]
fn targets_hold_over_seeds_and_mutants() {
    let broken: Vec<String> = thread::scope(|scope| {
        let runs: Vec<_> = TARGETS
            .iter()
            .map(|(name, target)| {
                scope.spawn(move || first_broken(name, *target, 1, MUTANTS).unwrap())
            })
            .collect();
        runs.into_iter().filter_map(|run| run.join().expect("targets are caught")).collect()
    });
    assert!(broken.is_empty(), "\n{}", broken.join("\n"));
}

#[test]
fn a_target_takes_some_of_its_seeds() {
    for (name, target) in TARGETS {
        assert!(seeds(name).iter().any(|seed| target(seed)), "{name} refuses all of its seeds");
    }
}

#[test]
fn a_target_has_seeds_and_a_program() {
    let targets: BTreeSet<String> = TARGETS.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(targets.len(), TARGETS.len(), "a name is used once");
    assert_eq!(names(&folder().join("corpus")).unwrap(), targets, "folders in fuzz/corpus");
    let programs = targets.iter().map(|name| format!("{name}.rs")).collect();
    assert_eq!(names(&folder().join("targets")).unwrap(), programs, "files in fuzz/targets");
    let manifest = fs::read_to_string(folder().join("Cargo.toml")).unwrap();
    for name in &targets {
        assert!(!seeds(name).is_empty(), "fuzz/corpus/{name} holds no seed");
        assert!(manifest.contains(&format!("name = \"{name}\"")), "{name} in fuzz/Cargo.toml");
    }
}

fn seeds(name: &str) -> Vec<Vec<u8>> {
    uturn_fuzz::corpus::seeds(name).unwrap().into_iter().map(|(_, bytes)| bytes).collect()
}
