//! `bench lb`: compares the load balancer with nginx and HAProxy. `bench hostile`: measures honest
//! clients of the load balancer beside hostile ones. `bench operator`: measures the controllers of
//! a large cluster.
//!
//! The first two build uturn as it is shipped and the crate `uturn-bench`, which does the rest. The
//! third runs tests of `uturn-kube` that are too long for every day.

use std::path::PathBuf;
use std::process::Command;

use crate::shell::{self, Failure};
use crate::{Outcome, machine};

/// The comparison that `uturn-bench` runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    Lb,
    Hostile,
}

/// Runs `uturn-bench` with these words.
pub(crate) fn run(what: What, words: &[String]) -> Result<Outcome, Failure> {
    if !cfg!(target_os = "linux") {
        return Ok(Outcome::Skipped("it needs Linux: it makes network namespaces".to_owned()));
    }
    if !machine::is_root() {
        return Ok(Outcome::Skipped("it needs root: it makes network namespaces".to_owned()));
    }
    let word = match what {
        What::Lb => "lb",
        What::Hostile => "hostile",
    };
    // The targets are the program's own, and nothing is compared.
    if what == What::Lb
        && let Err(why) = machine::install_for_bench()
    {
        return Ok(Outcome::Skipped(why));
    }
    shell::run(&mut shell::cargo(&["build", "--release", "--package", "uturn"]))?;
    shell::run(&mut shell::cargo(&["build", "--release", "--package", "uturn-bench"]))?;
    let mut bench = Command::new(built("uturn-bench"));
    bench.args([word, "--uturn"]).arg(built("uturn")).args(words);
    shell::run(&mut bench)?;
    Ok(Outcome::Complete)
}

/// The tests, each with the file that it writes its measurements to.
const OPERATOR: [(&str, &str); 2] = [
    ("scale::five_thousand_services", "operator-scale.txt"),
    ("scale::apart::processes", "operator-scale.processes.txt"),
];

/// Runs the tests, and prints their measurements. Each test ends by itself: with a failure if it
/// takes too long.
pub(crate) fn operator() -> Result<Outcome, Failure> {
    let test = ["test", "--release", "--package", "uturn-kube", "--test", "kube"];
    for (name, file) in OPERATOR {
        let words = ["--", "--ignored", "--exact", name];
        shell::run(&mut shell::cargo(&[&test[..], &words[..]].concat()))?;
        let file = target().join("tmp").join(file);
        let text = std::fs::read_to_string(&file)
            .map_err(|error| Failure(format!("{}: {error}", file.display())))?;
        print!("{text}");
    }
    Ok(Outcome::Complete)
}

/// Returns the path of a program that cargo has built.
fn built(program: &str) -> PathBuf {
    target().join("release").join(program)
}

fn target() -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map(PathBuf::from);
    target.map_or_else(|| shell::root().join("target"), |path| shell::root().join(path))
}
