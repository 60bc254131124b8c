//! `lab`: predicts and measures every scenario, here and in the small machine; then random ones,
//! which differ for each commit: a failure recurs when the commit is tried again.

use std::path::PathBuf;
use std::process::Command;

use crate::shell::{self, Failure};
use crate::{Outcome, go, machine};

/// The number of random scenarios that are tried along with all others.
const RANDOM: &str = "50";

/// Runs `uturn lab verify` with these words, and also `uturn lab fuzz` if there are none.
pub(crate) fn run(words: &[String]) -> Result<Outcome, Failure> {
    if !cfg!(target_os = "linux") {
        return Ok(Outcome::Skipped("it needs Linux: it makes network namespaces".to_owned()));
    }
    if !machine::is_root() {
        return Ok(Outcome::Skipped("it needs root: it makes network namespaces".to_owned()));
    }
    if let Err(why) = machine::install_packages() {
        return Ok(Outcome::Skipped(why));
    }
    shell::build(&["uturn-lab", "uturn-lb"])?;
    let mut verify = Command::new(shell::built("uturn-lab"));
    verify.args(["lab", "verify"]).current_dir(shell::root());
    match go::coredns() {
        Ok(path) => {
            verify.arg("--coredns").arg(path);
        }
        Err(why) => println!("without CoreDNS: {why}"),
    }
    shell::run(verify.args(words))?;
    if words.is_empty() {
        let mut fuzz = Command::new(shell::built("uturn-lab"));
        fuzz.args(["lab", "fuzz", "--count", RANDOM, "--folder"]).arg(failed_cases()?);
        if let Some(seed) = shell::number_of_commit() {
            fuzz.args(["--seed", &seed.to_string()]);
        }
        shell::run(fuzz.current_dir(shell::root()))?;
    }
    Ok(Outcome::Complete)
}

/// Returns the folder for random scenarios that do not end as predicted.
fn failed_cases() -> Result<PathBuf, Failure> {
    let folder = shell::target().join("lab");
    std::fs::create_dir_all(&folder)
        .map_err(|why| Failure(format!("cannot make the folder {}: {why}", folder.display())))?;
    Ok(folder)
}
