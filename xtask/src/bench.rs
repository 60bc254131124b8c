//! `bench lb`: compares the load balancer with nginx and HAProxy. `bench hostile`: measures honest
//! clients of the load balancer beside hostile ones. `bench operator`: measures the controllers of
//! a large cluster.
//!
//! The first two build uturn as it is shipped and the crate `uturn-bench`, which does the rest. The
//! third runs tests of `uturn-kube` that are too long for every day.

use std::path::PathBuf;
use std::process::Command;

use clap::Subcommand;

use crate::shell::{self, Failure};
use crate::{Outcome, machine};

/// What is measured.
#[derive(Clone, Debug, PartialEq, Eq, Subcommand)]
pub(crate) enum What {
    /// `uturn lb run` beside nginx, HAProxy and plain routing (needs root)
    ///
    /// Requests a second, times at a constant rate, and memory.
    Lb {
        /// Arguments of `uturn-bench lb`, such as --quick, --rounds N, --seconds N, --rows
        /// small,l4-new, --save FILE
        #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// Honest clients of `uturn lb run` alone and beside hostile ones, in turns (needs root; takes
    /// an hour)
    ///
    /// How long honest clients wait, what hostile ones meet, and whether what they took comes back.
    Hostile {
        /// Arguments of `uturn-bench hostile`, such as --quick, --minutes N
        #[arg(value_name = "ARGUMENT", trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
    /// `uturn operator` with 5000 Services, 1000 Ingresses and 200 nodes
    ///
    /// Calls and time at the API's rate, against a cloud and an API server in memory; then time on
    /// processors and memory, in processes of their own.
    Operator,
}

/// Measures.
pub(crate) fn run(what: &What) -> Result<Outcome, Failure> {
    match what {
        What::Operator => operator(),
        What::Lb { words } => balancer("lb", words, machine::install_for_bench),
        // The targets are the program's own, and nothing is compared.
        What::Hostile { words } => balancer("hostile", words, || Ok(())),
    }
}

/// Runs a command of `uturn-bench` with these words, after installing what it needs.
fn balancer(
    command: &str,
    words: &[String],
    install: impl FnOnce() -> Result<(), String>,
) -> Result<Outcome, Failure> {
    if !cfg!(target_os = "linux") {
        return Ok(Outcome::Skipped("it needs Linux: it makes network namespaces".to_owned()));
    }
    if !machine::is_root() {
        return Ok(Outcome::Skipped("it needs root: it makes network namespaces".to_owned()));
    }
    if let Err(why) = install() {
        return Ok(Outcome::Skipped(why));
    }
    shell::run(&mut shell::cargo(&["build", "--release", "--package", "uturn-lb-cli"]))?;
    shell::run(&mut shell::cargo(&["build", "--release", "--package", "uturn-bench"]))?;
    let mut bench = Command::new(built("uturn-bench"));
    bench.args([command, "--uturn"]).arg(built("uturn-lb")).args(words);
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
fn operator() -> Result<Outcome, Failure> {
    let test = ["test", "--release", "--package", "uturn-kube", "--test", "kube"];
    for (name, file) in OPERATOR {
        let words = ["--", "--ignored", "--exact", name];
        shell::run(&mut shell::cargo(&[&test[..], &words[..]].concat()))?;
        let file = shell::target().join("tmp").join(file);
        let text = std::fs::read_to_string(&file)
            .map_err(|error| Failure(format!("{}: {error}", file.display())))?;
        print!("{text}");
    }
    Ok(Outcome::Complete)
}

/// Returns the path of a program that cargo has built.
fn built(program: &str) -> PathBuf {
    shell::target().join("release").join(program)
}
