//! Runs typos, a spell checker for source code, over the tree. It knows common misspellings and
//! nothing else, and `typos.toml` has the words that it takes for one.
//!
//! The program comes as a Python package; `spelling.txt` beside this file has its version and
//! checksums.

use std::process::Command;

use crate::shell::{self, Failure};
use crate::{Outcome, machine};

/// The checksums, relative to the root.
const LOCK: &str = "xtask/src/lint/spelling.txt";

/// Installs the program under `target/tools` if it is missing, and runs it.
pub(super) fn check() -> Result<Outcome, Failure> {
    if let Err(why) = machine::install_for_lint() {
        return Ok(Outcome::Skipped(format!("spelling: {why}")));
    }
    let folder = shell::root().join("target").join("tools").join("typos");
    let lock = shell::root().join(LOCK);
    let installed = shell::fill_once(&folder, &[&lock], || {
        let mut pip = Command::new("pip3");
        pip.args(["install", "--quiet", "--disable-pip-version-check", "--no-deps"]);
        pip.args(["--root-user-action", "ignore", "--only-binary", ":all:", "--require-hashes"]);
        shell::run(pip.arg("--target").arg(&folder).arg("--requirement").arg(&lock))
    });
    // The most frequent reason is a registry that cannot be reached.
    if let Err(failure) = installed {
        return Ok(Outcome::Skipped(format!("spelling: {failure}")));
    }
    let mut typos = Command::new(folder.join("bin").join("typos"));
    shell::run(typos.args(["--format", "brief"]).current_dir(shell::root()))?;
    Ok(Outcome::Complete)
}
