//! `lint`: formatting, clippy, documentation. Warnings are errors here, and only here: who
//! is in the middle of a change should not be stopped by them.

use crate::Done;
use crate::shell::{self, Failure};

pub(crate) fn run() -> Result<Done, Failure> {
    let clippy = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    let mut doc = shell::cargo(&["doc", "--workspace", "--no-deps"]);
    doc.env("RUSTDOCFLAGS", "-D warnings");
    shell::run_each([
        shell::plain_cargo(&["fmt", "--all", "--check"]),
        shell::plain_cargo(&["fmt", "--manifest-path", "fuzz/Cargo.toml", "--check"]),
        shell::plain_cargo(&clippy),
        doc,
    ])?;
    Ok(Done::Whole)
}
