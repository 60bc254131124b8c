//! `uturn-operator`: the program of the controllers that create a cluster's load balancers.
//!
//! **Owns** the command `uturn operator`: its arguments (`cli`) and what it does (`operator`). The
//! program is [`main`]; `uturn operator` starts it where it is installed.
//!
//! **Out of scope:** what the controllers want, which is `uturn-operator`, the library, and
//! watching a cluster, which is `uturn-kube`.

mod cli;
mod operator;

use std::process::ExitCode;

use clap::CommandFactory as _;
use uturn_cli::{Failure, Part, PartCommand, PartLine, Printer, Status};

use cli::Command;

impl PartCommand for Command {
    fn run(self, printer: &Printer) -> Result<Status, Failure> {
        let Self::Operator(command) = self;
        operator::run(&command, printer)
    }
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    uturn_cli::main_of::<Command>(Part::Operator)
}

/// Returns the command line, from `uturn` on.
pub fn command() -> clap::Command {
    PartLine::<Command>::command()
}
