//! `bench lb`: the load balancer beside nginx and HAProxy.
//!
//! Builds uturn as it is shipped and the crate `uturn-bench`, which does the rest.

use std::path::PathBuf;
use std::process::Command;

use crate::shell::{self, Failure};
use crate::{Done, machine};

/// Runs it with these words for `uturn-bench lb`.
pub(crate) fn run(words: &[String]) -> Result<Done, Failure> {
    if !cfg!(target_os = "linux") {
        return Ok(Done::LeftOut("it needs Linux: it makes network namespaces".to_owned()));
    }
    if !machine::is_root() {
        return Ok(Done::LeftOut("it needs root: it makes network namespaces".to_owned()));
    }
    if let Err(why) = machine::install_for_bench() {
        return Ok(Done::LeftOut(why));
    }
    shell::run(&mut shell::cargo(&["build", "--release", "--package", "uturn"]))?;
    shell::run(&mut shell::cargo(&["build", "--release", "--package", "uturn-bench"]))?;
    let mut bench = Command::new(built("uturn-bench"));
    bench.args(["lb", "--uturn"]).arg(built("uturn")).args(words);
    shell::run(&mut bench)?;
    Ok(Done::Whole)
}

/// Where cargo puts a program.
fn built(program: &str) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    let target =
        target.map_or_else(|| shell::root().join("target"), |path| shell::root().join(path));
    target.join("release").join(program)
}
