//! The end of a command: the exit status of the contract, and failures that lead to one.

use std::process::ExitCode;

use uturn_diagnose::analysis::AnalysisError;

use crate::printer::Printer;

/// The exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Nothing found, or prediction and kernel agree.
    Clean = 0,
    /// Something found, or a disagreement.
    Found = 1,
    /// Wrong usage or bad input.
    BadInput = 2,
    /// The command cannot be carried out here.
    Unavailable = 3,
}

impl From<Status> for ExitCode {
    fn from(status: Status) -> Self {
        Self::from(status as u8)
    }
}

/// The failure of a command.
#[derive(Debug)]
pub struct Failure {
    status: Status,
    messages: Vec<String>,
}

impl Failure {
    /// Creates a failure for bad input. It lists every fault.
    pub fn input(messages: Vec<String>) -> Self {
        Self { status: Status::BadInput, messages }
    }

    /// Creates a failure for wrong usage.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::input(vec![message.into()])
    }

    /// Creates a failure for something that cannot be done on this machine, or not yet.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self { status: Status::Unavailable, messages: vec![message.into()] }
    }

    /// Creates a failure for a result that could not be written to stdout.
    pub fn unwritten(why: &std::io::Error) -> Self {
        Self::unavailable(format!("the result could not be written: {why}"))
    }

    /// Returns the messages of the failure.
    pub fn messages(&self) -> &[String] {
        &self.messages
    }

    /// Prints the failure on stderr, and returns its status.
    pub fn report(self, printer: &Printer) -> Status {
        for message in &self.messages {
            printer.error(message);
        }
        if self.messages.len() > 1 {
            printer.note(&format!("{} errors", self.messages.len()));
        }
        self.status
    }
}

impl From<uturn_path::WalkError> for Failure {
    fn from(why: uturn_path::WalkError) -> Self {
        use uturn_path::WalkError;
        let status = match &why {
            WalkError::Compile(..) => Status::Unavailable,
            _ => Status::BadInput,
        };
        Self { status, messages: vec![why.to_string()] }
    }
}

impl From<AnalysisError> for Failure {
    fn from(why: AnalysisError) -> Self {
        match why {
            AnalysisError::Walk(all) => all.into(),
            AnalysisError::Ignore(all) => {
                Self::input(all.iter().map(ToString::to_string).collect())
            }
            AnalysisError::NothingIn { .. } | AnalysisError::TooManyFlows(_) => {
                Self::usage(why.to_string())
            }
        }
    }
}

impl From<Vec<uturn_path::WalkError>> for Failure {
    fn from(all: Vec<uturn_path::WalkError>) -> Self {
        let all_here = all.iter().all(|why| matches!(why, uturn_path::WalkError::Compile(..)));
        Self {
            status: if all_here { Status::Unavailable } else { Status::BadInput },
            messages: all.iter().map(ToString::to_string).collect(),
        }
    }
}

/// Prints what clap reports. Help and version are no errors, anything else is wrong usage.
pub(crate) fn usage(error: &clap::Error) -> ExitCode {
    Printer::usage(error);
    of_usage(error).into()
}

/// Returns the exit status for what clap reports.
pub(crate) fn of_usage(error: &clap::Error) -> Status {
    if error.use_stderr() { Status::BadInput } else { Status::Clean }
}
