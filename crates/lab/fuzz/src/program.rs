//! What the programs of this crate have in common.
#![expect(clippy::print_stderr, reason = "for programs that report")]

use std::fmt::Display;
use std::process::ExitCode;

/// Ends a program: whether all was well, or why it could not say.
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
