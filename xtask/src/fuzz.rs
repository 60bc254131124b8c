//! `fuzz`: runs the targets of `fuzz/` under libFuzzer. Without a nightly toolchain or cargo-fuzz
//! little is lost: `cargo xtask test` runs the same functions over the same seeds and a fixed count
//! of mutants (crates/lab/fuzz).
//!
//! `fuzz --short`: runs those functions over a number of mutants that depend on the commit, some
//! whole commands, and small texts that describe large clusters. It needs neither tool.
//!
//! `fuzz --mutants` and `fuzz --commands`: run the same over any number of inputs, in an optimised
//! build.
//!
//! `fuzz --growth`: checks that the work of a target grows with its input and no faster, which
//! random inputs show late.

use std::fs;
use std::process::Command;
use std::time::SystemTime;

use crate::shell::{self, Failure};
use crate::{Outcome, machine};

/// The amount of work for each target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Much {
    /// This many inputs.
    Count(u32),
    /// This many seconds.
    Seconds(u32),
}

/// The amount of work unless another one is asked for.
pub(crate) const USUAL: Much = Much::Count(20_000);

/// The number of mutants of each target, and of commands, in a short run: about a minute on two
/// cores.
const SHORT: &str = "300";

/// The levels of the families of clusters in a short run, and in one from an optimised build.
const FEW_LEVELS: &str = "1";
const MANY_LEVELS: &str = "24";

/// Runs the short variant, which does not need libFuzzer.
pub(crate) fn short() -> Result<Outcome, Failure> {
    shell::build(&["uturn-mutants", "uturn-commands"])?;
    let number = shell::number_of_commit().unwrap_or_default().to_string();
    let program = |name: &str| {
        let mut command = Command::new(shell::built(name));
        command.args([SHORT, &number]);
        command
    };
    let mut families = Command::new(shell::built("uturn-commands"));
    families.args(["--families", FEW_LEVELS]);
    let tried = ["uturn-mutants", "uturn-commands"].map(program);
    shell::run_each(tried.into_iter().chain([families]))?;
    Ok(Outcome::Complete)
}

/// Tries this many mutants in all, of the named targets or of all targets.
pub(crate) fn mutants(count: u64, names: &[String]) -> Result<Outcome, Failure> {
    let mut words = vec!["--in-all".to_owned(), count.to_string(), clock()];
    words.extend_from_slice(names);
    // The targets do not need the dependencies of whole commands, which take minutes to build.
    optimised(&["--bin", "uturn-mutants", "--no-default-features"], &words)
}

/// Runs this many whole commands.
pub(crate) fn commands(count: u64) -> Result<Outcome, Failure> {
    let families = ["--families", FEW_LEVELS, MANY_LEVELS].map(str::to_owned);
    optimised(&["--bin", "uturn-commands"], &families)?;
    optimised(&["--bin", "uturn-commands"], &[count.to_string(), clock()])
}

/// Runs a program of `crates/lab/fuzz` from a fast build in which overflows panic.
fn optimised(program: &[&str], words: &[String]) -> Result<Outcome, Failure> {
    let mut run = shell::plain_cargo(&["run", "--profile", "fuzz", "-p", "uturn-fuzz"]);
    shell::run(run.args(program).arg("--").args(words))?;
    Ok(Outcome::Complete)
}

/// Returns a number that differs each time. The printed command line contains it, so that the run
/// can be repeated.
fn clock() -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    now.as_secs().to_string()
}

/// Measures how work grows with the input, for the named targets or for all targets.
pub(crate) fn growth(targets: &[String]) -> Result<Outcome, Failure> {
    if shell::output(Command::new("valgrind").arg("--version")).is_none() {
        return Ok(Outcome::Skipped(
            "valgrind is missing; to have it: apt-get install valgrind".to_owned(),
        ));
    }
    let words = ["run", "--release", "-p", "uturn-fuzz", "--no-default-features"];
    let program = ["--bin", "uturn-growth", "--"];
    shell::run(shell::plain_cargo(&words).args(program).args(targets))?;
    Ok(Outcome::Complete)
}

pub(crate) fn run(much: Much) -> Result<Outcome, Failure> {
    let tools = shell::root().join("target").join("tools");
    let Some(program) = machine::find_tool(&tools, "cargo-fuzz").filter(|_| have_nightly()) else {
        return Ok(Outcome::Skipped(
            "cargo-fuzz or a nightly toolchain is missing; to have them: \
             rustup toolchain install nightly && cargo install cargo-fuzz"
                .to_owned(),
        ));
    };
    let cargo_fuzz = || {
        let mut command = nightly();
        command.arg(&program);
        command
    };
    let Some(list) = shell::output(cargo_fuzz().arg("list")) else {
        return Err(Failure("`cargo fuzz list` failed".to_owned()));
    };
    let targets: Vec<&str> = list.lines().map(str::trim).filter(|name| !name.is_empty()).collect();
    let commands = targets
        .iter()
        .map(|name| configure_run(cargo_fuzz(), name, much))
        .collect::<Result<Vec<_>, _>>()?;
    shell::run_each(commands)?;
    Ok(Outcome::Complete)
}

/// Adds the arguments of libFuzzer. New inputs are stored beside the seeds, not among them. There
/// is no unsafe code here for a sanitizer to watch, and several times as many inputs are tried
/// without one.
fn configure_run(mut command: Command, target: &str, much: Much) -> Result<Command, Failure> {
    let fuzz = shell::root().join("fuzz");
    let found = fuzz.join("corpus-found").join(target);
    fs::create_dir_all(&found)
        .map_err(|error| Failure(format!("{} cannot be made: {error}", found.display())))?;
    command.args(["run", "--sanitizer", "none", target]);
    command.arg(found).arg(fuzz.join("corpus").join(target));
    command.arg("--").arg(match much {
        Much::Count(count) => format!("-runs={count}"),
        Much::Seconds(seconds) => format!("-max_total_time={seconds}"),
    });
    Ok(command)
}

fn have_nightly() -> bool {
    shell::output(nightly().args(["rustc", "--version"])).is_some()
}

/// Returns a command that runs with the nightly toolchain. The caller adds the program and its
/// arguments.
fn nightly() -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly"]).current_dir(shell::root());
    // The pinned toolchain that runs this program sets these variables.
    for variable in ["CARGO", "RUSTC", "RUSTUP_TOOLCHAIN"] {
        command.env_remove(variable);
    }
    command
}
