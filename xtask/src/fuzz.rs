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

use clap::Args;

use crate::shell::{self, Failure};
use crate::{Outcome, machine};

/// What is run, and how much of it. Without an option libFuzzer runs.
#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    #[command(flatten)]
    how: How,
    /// Fuzz targets, with --mutants or --growth [default: all]
    #[arg(
        value_name = "TARGET",
        requires = "how",
        conflicts_with_all = ["count", "seconds", "short", "commands"]
    )]
    targets: Vec<String>,
}

#[derive(Args, Clone, Debug, Default, PartialEq, Eq)]
#[group(id = "how", multiple = false)]
struct How {
    /// Inputs of each target under libFuzzer [default: 20000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    count: Option<u32>,
    /// Seconds for each target under libFuzzer
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    seconds: Option<u32>,
    /// Seeds, 300 mutants of each target and 300 whole commands, all chosen by the commit; without
    /// libFuzzer, in about a minute
    #[arg(long)]
    short: bool,
    /// Mutants of all targets together, in an optimised build that finds overflows: targets that
    /// take less time get more of them
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    mutants: Option<u64>,
    /// Whole commands with mutants of their arguments and files, in the same build
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    commands: Option<u64>,
    /// How the work of each target grows with the length of its input (needs valgrind; takes
    /// minutes)
    #[arg(long)]
    growth: bool,
}

impl Options {
    /// Returns whether libFuzzer runs.
    pub(crate) fn is_of_libfuzzer(&self) -> bool {
        self.name() == "fuzz"
    }

    /// Returns the name of the task in a report.
    pub(crate) fn name(&self) -> &'static str {
        match self.how {
            How { short: true, .. } => "fuzz --short",
            How { mutants: Some(_), .. } => "fuzz --mutants",
            How { commands: Some(_), .. } => "fuzz --commands",
            How { growth: true, .. } => "fuzz --growth",
            How { .. } => "fuzz",
        }
    }
}

/// The number of inputs of each target unless another amount of work is asked for.
const USUAL: u32 = 20_000;

/// The number of mutants of each target, and of commands, in a short run: about a minute on two
/// cores.
const SHORT: &str = "300";

/// The levels of the families of clusters in a short run, and in one from an optimised build.
const FEW_LEVELS: &str = "1";
const MANY_LEVELS: &str = "24";

/// Runs what the options ask for.
pub(crate) fn run(options: &Options) -> Result<Outcome, Failure> {
    match options.how {
        How { short: true, .. } => short(),
        How { mutants: Some(count), .. } => mutants(count, &options.targets),
        How { commands: Some(count), .. } => commands(count),
        How { growth: true, .. } => growth(&options.targets),
        How { seconds: Some(seconds), .. } => libfuzzer(&format!("-max_total_time={seconds}")),
        How { count, .. } => libfuzzer(&format!("-runs={}", count.unwrap_or(USUAL))),
    }
}

/// Runs the short variant, which does not need libFuzzer.
fn short() -> Result<Outcome, Failure> {
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
fn mutants(count: u64, names: &[String]) -> Result<Outcome, Failure> {
    let mut words = vec!["--in-all".to_owned(), count.to_string(), clock()];
    words.extend_from_slice(names);
    // The targets do not need the dependencies of whole commands, which take minutes to build.
    optimised(&["--bin", "uturn-mutants", "--no-default-features"], &words)
}

/// Runs this many whole commands.
fn commands(count: u64) -> Result<Outcome, Failure> {
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
fn growth(targets: &[String]) -> Result<Outcome, Failure> {
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

/// Runs every target under libFuzzer, with an option of libFuzzer that says how much.
fn libfuzzer(much: &str) -> Result<Outcome, Failure> {
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
fn configure_run(mut command: Command, target: &str, much: &str) -> Result<Command, Failure> {
    let fuzz = shell::root().join("fuzz");
    let found = fuzz.join("corpus-found").join(target);
    fs::create_dir_all(&found)
        .map_err(|error| Failure(format!("{} cannot be made: {error}", found.display())))?;
    command.args(["run", "--sanitizer", "none", target]);
    command.arg(found).arg(fuzz.join("corpus").join(target));
    command.arg("--").arg(much);
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

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        options: Options,
    }

    fn of(line: &str) -> Result<Options, clap::Error> {
        let words = ["fuzz"].into_iter().chain(line.split_whitespace());
        Line::try_parse_from(words).map(|line| line.options)
    }

    #[test]
    fn one_way_is_chosen() {
        let how = |line| of(line).unwrap().how;
        assert_eq!(how(""), How::default());
        assert_eq!(how("--count 7"), How { count: Some(7), ..How::default() });
        assert_eq!(how("--seconds 9"), How { seconds: Some(9), ..How::default() });
        assert_eq!(how("--commands 70"), How { commands: Some(70), ..How::default() });
        for (line, name, is_of_libfuzzer) in [
            ("", "fuzz", true),
            ("--seconds 9", "fuzz", true),
            ("--short", "fuzz --short", false),
            ("--growth", "fuzz --growth", false),
        ] {
            let options = of(line).unwrap();
            assert_eq!((options.name(), options.is_of_libfuzzer()), (name, is_of_libfuzzer));
        }
    }

    #[test]
    fn targets_may_be_named_for_mutants_and_growth() {
        let targets = |line| of(line).unwrap().targets;
        assert_eq!(targets("--mutants 70 nft walk"), ["nft", "walk"]);
        assert_eq!(of("--mutants 70 nft").unwrap().how.mutants, Some(70));
        assert_eq!(targets("--growth nft"), ["nft"]);
        assert_eq!(targets("--growth"), [""; 0]);
    }
}
