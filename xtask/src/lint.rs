//! `lint`: checks formatting, clippy, documentation, spelling, and rules for the structure.
//! Warnings are errors here and nowhere else, so that they do not interrupt work on a change.

mod circles;
mod codes;
mod doc_tests;
mod imports;
mod rooms;
mod source;
mod spelling;
mod variables;
mod vendor_names;

use std::process::Command;

use crate::Outcome;
use crate::shell::{self, Failure};

/// Runs the checks. If `is_quick`, those that compile nothing.
pub(crate) fn run(is_quick: bool) -> Result<Outcome, Failure> {
    let structure = [
        circles::check(),
        rooms::check(),
        vendor_names::check(),
        codes::check(),
        doc_tests::check(),
        variables::check(),
    ];
    let (spelling, left_out) = match spelling::check() {
        Ok(outcome) => (Ok(()), outcome),
        Err(failure) => (Err(failure), Outcome::Complete),
    };
    let format = shell::run_each([
        shell::plain_cargo(&["fmt", "--all", "--check"]),
        shell::plain_cargo(&["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"]),
    ]);
    let compiled = if is_quick { Ok(()) } else { shell::run_each(compiling()) };
    all(structure.into_iter().chain([spelling, format, compiled])).map(|()| left_out)
}

/// Returns the commands that compile the workspace: clippy and documentation.
fn compiling() -> [Command; 3] {
    let clippy = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    // The part that the first command of README.md builds.
    let small = ["-p", "uturn", "-p", "uturn-lab", "--no-default-features"];
    let small = [&["clippy"], &small[..], &["--", "-D", "warnings"]].concat();
    let mut doc = shell::cargo(&["doc", "--workspace", "--no-deps"]);
    doc.env("RUSTDOCFLAGS", "-D warnings");
    [shell::plain_cargo(&clippy), shell::plain_cargo(&small), doc]
}

/// Runs all checks. Fails with the reasons of all that failed.
fn all(checks: impl IntoIterator<Item = Result<(), Failure>>) -> Result<(), Failure> {
    let failures: Vec<String> =
        checks.into_iter().filter_map(|check| check.err().map(|failure| failure.0)).collect();
    if failures.is_empty() { Ok(()) } else { Err(Failure(failures.join("\n"))) }
}
