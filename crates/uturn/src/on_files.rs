//! Runs commands that read only files, for programs that run many of them in one process.

use std::ffi::OsString;
use std::iter;

use crate::cli::{Cli, Collect, Command, Lb};
use crate::printer::Printer;
use crate::{commands, status};

/// The end of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The command was not run: it reads more than files, or does not end by itself.
    NotRun,
    /// The words are no command, or ask for help. The answer was printed, and this is the exit
    /// status.
    Told(u8),
    /// The command ran, with this exit status.
    Ran(u8),
}

/// Runs `uturn` with these words if the command reads only files and ends by itself. The output
/// goes to the standard streams of this process.
pub fn run_on_files(words: &[String]) -> Ended {
    let words = iter::once("uturn").chain(words.iter().map(String::as_str));
    let words: Vec<OsString> = words.map(OsString::from).collect();
    let cli = match Cli::parse_as_typed(&words) {
        Ok(cli) => cli,
        Err(usage) => {
            Printer::usage(&usage);
            return Ended::Told(status::of_usage(&usage) as u8);
        }
    };
    if !reads_only_files(&cli.command) {
        return Ended::NotRun;
    }
    let printer = Printer::new(&cli.global);
    let ended = commands::run(cli, &printer).unwrap_or_else(|failure| failure.report(&printer));
    Ended::Ran(ended as u8)
}

fn reads_only_files(command: &Command) -> bool {
    match command {
        Command::Scan(scan) => !scan.watch && !scan.cluster.is_live(),
        Command::Trace(trace) => !trace.cluster.is_live(),
        Command::Check(check) => !check.cluster.is_live(),
        Command::Cure(cure) => !cure.cluster.is_live(),
        Command::Rules(rules) => !rules.cluster.is_live(),
        Command::Collect(collect) => redacts_files(collect),
        Command::Explain(_) | Command::Walk(_) | Command::Lb(Lb::Check(_)) => true,
        Command::Probe(_)
        | Command::Lab(_)
        | Command::Lb(Lb::Run(_))
        | Command::Cloud(_)
        | Command::Operator(_)
        | Command::Completion(_) => false,
    }
}

fn redacts_files(collect: &Collect) -> bool {
    let redaction = &collect.redaction;
    let has_input = !redaction.files.is_empty() || !redaction.bundles.is_empty();
    redaction.redact && collect.output.is_some() && has_input
}
