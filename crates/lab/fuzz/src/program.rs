//! Helpers that the programs of this crate share.
#![expect(clippy::print_stderr, reason = "for programs that report")]

use std::fmt::Display;
use std::process::ExitCode;

/// Returns the exit code of a program: whether all was well, or failure after printing the error.
pub fn end(done: Result<bool, impl Display>) -> ExitCode {
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::from(2)
        }
    }
}
