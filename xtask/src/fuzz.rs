//! `fuzz`: the targets of `fuzz/` under libFuzzer. Without a nightly toolchain or
//! cargo-fuzz little is lost: `cargo xtask test` runs the same functions over the same seeds
//! and a fixed count of mutants (crates/lab/fuzz).
//!
//! `fuzz --short`: those functions over a count of mutants that belong to the commit, some whole commands, and
//! small texts that describe large clusters, which needs neither.
//!
//! `fuzz --mutants` and `fuzz --commands`: the same over as many as one likes, in an optimised build.
//!
//! `fuzz --growth`: whether what a target does grows with its input and no faster, which
//! chance finds late.

use std::fs;
use std::process::Command;
use std::time::SystemTime;

use crate::shell::{self, Failure};
use crate::{Outcome, machine};

/// How much is tried of each target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Much {
    /// So many inputs.
    Count(u32),
    /// So long.
    Seconds(u32),
}

/// When nothing else is asked for.
pub(crate) const USUAL: Much = Much::Count(20_000);

/// How many mutants of each target a short run tries, and how many commands: about a minute on two cores.
const SHORT: &str = "300";

/// The levels of the families of clusters in a short run, and in one from an optimised build.
const FEW_LEVELS: &str = "1";
const MANY_LEVELS: &str = "24";

/// A short run without libFuzzer.
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

/// So many mutants in all, of the targets named, or of all.
pub(crate) fn mutants(count: u64, names: &[String]) -> Result<Outcome, Failure> {
    let mut words = vec!["--in-all".to_owned(), count.to_string(), clock()];
    words.extend_from_slice(names);
    // The targets do not need what whole commands do, which takes minutes to build.
    optimised(&["--bin", "uturn-mutants", "--no-default-features"], &words)
}

/// So many whole commands.
pub(crate) fn commands(count: u64) -> Result<Outcome, Failure> {
    let families = ["--families", FEW_LEVELS, MANY_LEVELS].map(str::to_owned);
    optimised(&["--bin", "uturn-commands"], &families)?;
    optimised(&["--bin", "uturn-commands"], &[count.to_string(), clock()])
}

/// Runs a program of `crates/lab/fuzz` from a build that is fast, and in which what overflows panics.
fn optimised(program: &[&str], words: &[String]) -> Result<Outcome, Failure> {
    let mut run = shell::plain_cargo(&["run", "--profile", "fuzz", "-p", "uturn-fuzz"]);
    shell::run(run.args(program).arg("--").args(words))?;
    Ok(Outcome::Complete)
}

/// A number that is another one each time: the line that is printed has it, to be repeated.
fn clock() -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    now.as_secs().to_string()
}

/// How work grows: of the targets named, or of all.
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

/// What is found goes beside the seeds, not among them. There is no unsafe code here for a
/// sanitizer to watch, and without one several times as many inputs are tried.
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

/// A program run with the nightly toolchain, to which its arguments belong.
fn nightly() -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly"]).current_dir(shell::root());
    // Set by the pinned toolchain that runs this program.
    for variable in ["CARGO", "RUSTC", "RUSTUP_TOOLCHAIN"] {
        command.env_remove(variable);
    }
    command
}
