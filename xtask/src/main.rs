//! The tasks that people and CI run: `cargo xtask WORD`.
//!
//! **Owns** the order of checks, their requirements of the machine, and the report of what was left
//! out. **Out of scope:** uturn's own subject.
//! **Start reading** at [`Task`]; each task has a file of its own.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a program that talks to people")]

mod bench;
mod clients;
mod cluster;
mod conformance;
mod deny;
mod docs;
mod fuzz;
mod gen_cluster;
mod go;
mod h2spec;
mod lab;
mod lint;
mod live;
mod machine;
mod portable;
mod release;
mod shell;
mod task;
mod test;

use std::env;
use std::process::ExitCode;
use std::time::Instant;

use clap::Parser as _;

use task::{Arguments, Task};

/// The result of a task that did not fail.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// The whole task was done.
    Complete,
    /// The task, or a part of it, could not be done on this machine, for this reason.
    Skipped(String),
}

fn main() -> ExitCode {
    let words: Vec<String> = env::args().skip(1).collect();
    if words.first().is_some_and(|word| word == test::RUNNER) {
        return test::run_one(&words[1..]);
    }
    run_all(&Arguments::parse().task.parts())
}

/// Runs every task even after one failed, so that one run lists all failures.
fn run_all(tasks: &[Task]) -> ExitCode {
    let mut failed = false;
    let mut lines = Vec::new();
    for task in tasks {
        let start = Instant::now();
        let ended = task.run();
        let took = start.elapsed().as_secs();
        lines.push(match ended {
            Ok(Outcome::Complete) => format!("{}: passed ({took} s)", task.name()),
            Ok(Outcome::Skipped(why)) if task.may_be_skipped() => {
                format!("{}: left out: {why}", task.name())
            }
            Ok(Outcome::Skipped(why)) => {
                failed = true;
                format!("{}: FAILED: could not be done here: {why}", task.name())
            }
            Err(why) => {
                failed = true;
                format!("{}: FAILED: {why}", task.name())
            }
        });
    }
    println!();
    for line in lines {
        println!("xtask {line}");
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
