//! The interface for running commands in a container.

use std::time::Duration;

use thiserror::Error;

/// A place where commands can be run: a container of a pod.
pub trait Exec {
    /// Runs a command without input, for at most `limit`.
    ///
    /// # Errors
    /// Returns an error if the command could not be run, or if it is not known how it ended.
    fn run(&mut self, command: &[String], limit: Duration) -> Result<Ran, ExecError>;
}

/// A command that has ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// The standard output of the command.
    pub stdout: String,
    /// The standard error of the command.
    pub stderr: String,
    /// The exit status of the command.
    pub exit: i32,
}

/// The reason why a command has no result.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ExecError {
    /// There is no such program.
    #[error("there is no such program")]
    NoProgram,
    /// The command did not end in time.
    #[error("the command did not end in time")]
    TimedOut,
    /// The user stopped the command.
    #[error("stopped")]
    Interrupted,
    /// The command may not be run, or cannot be.
    #[error("{0}")]
    Refused(String),
}
