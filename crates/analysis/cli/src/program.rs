//! A program: a command line, run from its words to its exit status.

use std::ffi::OsString;
use std::iter;
use std::process::ExitCode;

use clap::Parser;

use crate::completion::Asked;
use crate::global::Global;
use crate::printer::Printer;
use crate::status::{self, Failure, Status};
use crate::typed::parse_as_typed;

/// A command line that can be run.
pub trait Program: Parser {
    /// Returns the options of every command.
    fn global(&self) -> &Global;

    /// Runs the command that was typed.
    ///
    /// # Errors
    /// If the command fails.
    fn run(self, printer: &Printer) -> Result<Status, Failure>;
}

/// Runs a program with these words, the first of which is its name. If a shell asks for candidates
/// for a half-typed line, they are printed instead.
pub fn main<P: Program>(words: &[OsString]) -> ExitCode {
    if let Some(asked) = Asked::here() {
        asked.answer(P::command());
        return ExitCode::SUCCESS;
    }
    Printer::guard_panics();
    let typed = match parse_as_typed::<P>(words) {
        Ok(typed) => typed,
        Err(usage) => return status::usage(&usage),
    };
    let (ended, printer) = run(typed);
    match Printer::unwritten() {
        Some(why) => Failure::unwritten(why).report(&printer).into(),
        None => ended.into(),
    }
}

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
pub fn run_on_files<P: Program>(
    words: &[String],
    reads_only_files: impl FnOnce(&P) -> bool,
) -> Ended {
    let words = iter::once("uturn").chain(words.iter().map(String::as_str));
    let words: Vec<OsString> = words.map(OsString::from).collect();
    let typed = match parse_as_typed::<P>(&words) {
        Ok(typed) => typed,
        Err(usage) => {
            Printer::usage(&usage);
            return Ended::Told(status::of_usage(&usage) as u8);
        }
    };
    if !reads_only_files(&typed) {
        return Ended::NotRun;
    }
    let (ended, _) = run(typed);
    Ended::Ran(ended as u8)
}

/// Runs a command. Prints the failure if it fails.
fn run<P: Program>(typed: P) -> (Status, Printer) {
    let printer = Printer::new(typed.global());
    let ended = typed.run(&printer).unwrap_or_else(|failure| failure.report(&printer));
    (ended, printer)
}
