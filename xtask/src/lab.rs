//! `lab`: every scenario predicted and measured, here and in the small machine.

use std::path::PathBuf;
use std::process::Command;

use crate::shell::{self, Failure};
use crate::{Done, go, machine};

/// Runs `uturn lab verify` with these words.
pub(crate) fn run(words: &[String]) -> Result<Done, Failure> {
    if !cfg!(target_os = "linux") {
        return Ok(Done::LeftOut("it needs Linux: it makes network namespaces".to_owned()));
    }
    if !machine::is_root() {
        return Ok(Done::LeftOut("it needs root: it makes network namespaces".to_owned()));
    }
    if let Err(why) = machine::install_packages() {
        return Ok(Done::LeftOut(why));
    }
    shell::run(&mut shell::cargo(&["build", "--release", "--package", "uturn"]))?;
    let mut verify = Command::new(built());
    verify.args(["lab", "verify"]).current_dir(shell::root());
    match go::coredns() {
        Ok(path) => {
            verify.arg("--coredns").arg(path);
        }
        Err(why) => println!("without CoreDNS: {why}"),
    }
    shell::run(verify.args(words))?;
    Ok(Done::Whole)
}

/// Where cargo puts the program.
fn built() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target = target.map_or_else(|| shell::root().join("target"), |one| shell::root().join(one));
    target.join("release").join("uturn")
}
