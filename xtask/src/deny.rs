//! `deny`: checks the dependency tree against the rules of deny.toml.

use std::process::Command;

use crate::shell::{self, Failure};
use crate::{Outcome, machine};

/// The version of cargo-deny. It is pinned, so that a new release does not change what a green run
/// means.
const VERSION: &str = "0.20.2";

pub(crate) fn run(advisories: bool) -> Result<Outcome, Failure> {
    let tools = shell::root().join("target").join("tools");
    if machine::find_tool(&tools, "cargo-deny").is_none() {
        let mut install = shell::plain_cargo(&["install", "--locked", "--version", VERSION]);
        install.arg("--root").arg(&tools).arg("cargo-deny");
        // cargo-deny runs for a second: a quick build matters more than a fast program.
        for (name, value) in [("OPT_LEVEL", "0"), ("LTO", "off"), ("CODEGEN_UNITS", "256")] {
            install.env(format!("CARGO_PROFILE_RELEASE_{name}"), value);
        }
        shell::run(&mut install)?;
    }
    let Some(program) = machine::find_tool(&tools, "cargo-deny") else {
        return Err(Failure("cargo-deny was installed but is not there".to_owned()));
    };
    let mut check = Command::new(program);
    check.args(["--workspace", "check", "bans", "licenses", "sources"]);
    if advisories {
        check.arg("advisories");
    }
    shell::run(check.current_dir(shell::root()))?;
    Ok(Outcome::Complete)
}
