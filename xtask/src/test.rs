//! `test`: runs every test of the workspace, and lists the tests that could not run, those that
//! took longest, and in the end those that failed.
//!
//! A test that cannot run on this machine appends one line (its name and the reason) to the
//! file that the variable [`SKIPPED`](variables::SKIPPED) names, and returns. Cargo counts it as
//! passed; the list at the end does not. Where [`REQUIRE`](variables::REQUIRE) names what the test
//! lacks, it fails instead.

mod group;
mod programs;
mod queue;
mod runner;

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::io::ErrorKind;
use std::panic::resume_unwind;
use std::path::{Path, PathBuf};
use std::thread;

use uturn_testing::variables;

use crate::shell::{self, Failure};
use crate::{Outcome, go, machine};

pub(crate) use runner::{WORD as RUNNER, run as run_one};

/// The requirements that CI's machine meets.
const REQUIRED_IN_CI: &str =
    "kernel,nft,ipset,machine,coredns,nginx,keepalived,conntrackd,bird,call-tools";

/// The number of tests of each program that run at once, unless the machine has more cores: most of
/// the time of the longest ones is spent waiting.
const THREADS: usize = 4;

/// The variable that sets this number.
const TEST_THREADS: &str = "RUST_TEST_THREADS";

/// The number of slowest tests that are listed.
const SLOWEST: usize = 10;

/// Runs every test. `with_go` also builds the real programs that some of them ask, which takes
/// minutes; else those tests are skipped unless the programs are there already.
pub(crate) fn run(with_go: bool) -> Result<Outcome, Failure> {
    // First of all: later the file of this program may be another one.
    let runner = runner::install()?;
    let target = shell::target();
    let [list, times, failures] = ["skipped", "test-times", "test-failures"]
        .map(|name| target.join(name).with_extension("txt"));
    for file in [&list, &times, &failures] {
        forget(file)?;
    }

    let (built, packages, coredns) = prepare(with_go);
    let mut given: Vec<(&str, OsString)> = vec![
        (variables::SKIPPED, list.clone().into()),
        (variables::TEST_TIMES, times.clone().into()),
        (variables::TEST_FAILURES, failures.clone().into()),
    ];
    if let Ok(path) = &coredns {
        given.push((variables::COREDNS, path.into()));
    }
    if shell::is_ci() && env::var_os(variables::REQUIRE).is_none() {
        given.push((variables::REQUIRE, REQUIRED_IN_CI.into()));
    }
    if env::var_os(TEST_THREADS).is_none() {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        given.push((TEST_THREADS, cores.max(THREADS).to_string().into()));
    }
    let ended = built.and_then(|()| run_built(&runner, &given));

    let mut skipped = reasons(&read(&list)?);
    for (what, done) in [("packages", packages), ("CoreDNS", coredns.map(drop))] {
        if let Err(why) = done {
            skipped.insert(format!("{what}: {why}"));
        }
    }
    println!("\nthe slowest tests:");
    for (seconds, name) in runner::slowest(&read(&times)?, SLOWEST) {
        println!("{seconds:8.1} s  {name}");
    }
    println!();
    for line in &skipped {
        println!("skipped: {line}");
    }
    if skipped.is_empty() {
        println!("no test was skipped");
    }
    let failures = read(&failures)?;
    if !failures.is_empty() {
        println!("\nwhat failed:\n{failures}");
    }
    ended.map(|()| Outcome::Complete)
}

/// Builds the test programs. Meanwhile installs the packages and builds CoreDNS, which mostly wait
/// for downloads and for the packages' database.
fn prepare(with_go: bool) -> (Result<(), Failure>, Result<(), String>, Result<PathBuf, String>) {
    thread::scope(|scope| {
        let others = scope.spawn(|| {
            let packages = machine::install_packages();
            (packages, if with_go { go::coredns() } else { go::coredns_if_built() })
        });
        let built = shell::run(&mut shell::cargo(&["test", "--workspace", "--no-run"]));
        let (packages, coredns) = others.join().unwrap_or_else(|panic| resume_unwind(panic));
        (built, packages, coredns)
    })
}

/// Runs the tests of the documentation, then all test programs.
fn run_built(runner: &Path, given: &[(&str, OsString)]) -> Result<(), Failure> {
    let queue = shell::target().join("test-queue.txt");
    forget(&queue)?;
    let option = runner::cargo_option(runner);
    let words = ["--config", &option, "test", "--workspace", "--no-fail-fast", "--quiet"];
    let mut cargo = shell::cargo(&words);
    let cargo = cargo.env(variables::TEST_QUEUE, &queue).envs(given.iter().cloned());
    let of_documentation = shell::run(cargo);
    programs::run(&read(&queue)?, runner, given).and(of_documentation)
}

fn forget(list: &Path) -> Result<(), Failure> {
    match fs::remove_file(list) {
        Err(error) if error.kind() != ErrorKind::NotFound => {
            Err(Failure(format!("{} cannot be removed: {error}", list.display())))
        }
        _ => Ok(()),
    }
}

/// Reads a file. Returns an empty text if the file does not exist.
fn read(file: &Path) -> Result<String, Failure> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(text),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(Failure(format!("{} cannot be read: {error}", file.display()))),
    }
}

/// Returns every reason once, in order.
fn reasons(text: &str) -> BTreeSet<String> {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_listed_once() {
        let read = reasons("lab l7-loop: no root\n\nlab l4: no root\nlab l7-loop: no root\n");
        assert_eq!(
            read.into_iter().collect::<Vec<_>>(),
            ["lab l4: no root", "lab l7-loop: no root"]
        );
    }

    #[test]
    fn nothing_skipped_leaves_no_file_and_that_is_fine() {
        assert_eq!(read(Path::new("no/such/file")), Ok(String::new()));
    }
}
