//! `portable`: checks that everything but the lab and the data plane builds on other systems too.
//! Checking without linking is enough, so no linker for those systems is needed, and no compiler
//! for the C in dependencies.

use std::process::Command;

use crate::Outcome;
use crate::shell::{self, Failure};

const TARGETS: [&str; 2] = ["x86_64-apple-darwin", "x86_64-pc-windows-msvc"];

/// The program that stands in for the C compilers and archivers of those systems.
const NO_COMPILER: &str = "xtask/src/portable/no-compiler";

const CRATES: [&str; 22] = [
    "uturn-model",
    "uturn-document",
    "uturn-snapshot",
    "uturn-netfilter",
    "uturn-kubeproxy",
    "uturn-lb",
    "uturn-clouds",
    "uturn-live",
    "uturn-cloud",
    "uturn-cloud-api",
    "uturn-path",
    "uturn-scan",
    "uturn-diagnose",
    "uturn-whatif",
    "uturn-redact",
    "uturn-report",
    "uturn-cli",
    "uturn-lb-cli",
    "uturn-cloud-cli",
    "uturn-operator-cli",
    "uturn-lab-cli",
    "uturn",
];

pub(crate) fn run() -> Result<Outcome, Failure> {
    let (here, missing): (Vec<&str>, Vec<&str>) =
        TARGETS.into_iter().partition(|target| have(target));
    shell::run_each(here.into_iter().map(check))?;
    if missing.is_empty() {
        return Ok(Outcome::Complete);
    }
    let missing = missing.join(" ");
    Ok(Outcome::Skipped(format!("to have what it needs, run: rustup target add {missing}")))
}

/// Returns whether the target's standard library is installed, after trying to install it.
pub(crate) fn have(target: &str) -> bool {
    let installed = shell::output(&mut rustup(&["target", "list", "--installed"]));
    installed.is_some_and(|list| list.lines().any(|line| line.trim() == target))
        || shell::run(&mut rustup(&["target", "add", target])).is_ok()
}

fn rustup(words: &[&str]) -> Command {
    let mut command = Command::new("rustup");
    command.args(words).current_dir(shell::root());
    command
}

fn check(target: &str) -> Command {
    let mut command = shell::cargo(&["check", "--target", target]);
    for name in CRATES {
        command.args(["--package", name]);
    }
    let (no_compiler, target) = (shell::root().join(NO_COMPILER), target.replace('-', "_"));
    for tool in ["CC", "AR"] {
        command.env(format!("{tool}_{target}"), &no_compiler);
    }
    command
}
