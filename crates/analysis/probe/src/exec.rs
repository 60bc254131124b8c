//! Where commands are run.

use std::time::Duration;

use thiserror::Error;

/// A place where commands can be run: a container of a pod.
pub trait Exec {
    /// Runs a command without input, for at most `limit`.
    ///
    /// # Errors
    /// Returns an error if it could not be run, or nothing says how it ended.
    fn run(&mut self, command: &[String], limit: Duration) -> Result<Ran, ExecError>;
}

/// A command that has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// What it printed.
    pub stdout: String,
    /// What it printed on its standard error.
    pub stderr: String,
    /// Its exit status.
    pub exit: i32,
}

/// Why a command has no result.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ExecError {
    /// There is no such program.
    #[error("there is no such program")]
    NoProgram,
    /// It did not end in time.
    #[error("the command did not end in time")]
    TimedOut,
    /// The user has stopped it.
    #[error("stopped")]
    Interrupted,
    /// It may not be run, or cannot be.
    #[error("{0}")]
    Refused(String),
}
