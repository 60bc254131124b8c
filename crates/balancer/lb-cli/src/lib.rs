//! `uturn-lb`: the program of a load balancer that behaves as the cloud's does.
//!
//! **Owns** the command `uturn lb`: its arguments (`cli`) and what it does (`lb`). The program is
//! [`main`]; `uturn lb` starts it where it is installed.
//!
//! **Out of scope:** connections and requests, which `uturn-proxy` serves, and the form of the
//! file, which `uturn-snapshot` reads.

mod cli;
mod lb;

use std::process::ExitCode;

use clap::CommandFactory as _;
use uturn_cli::{Ended, Failure, Part, PartCommand, PartLine, Printer, Status};

use cli::{Command, Lb};

impl PartCommand for Command {
    fn run(self, printer: &Printer) -> Result<Status, Failure> {
        let Self::Lb(command) = self;
        lb::run(&command, printer)
    }
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    uturn_cli::main_of::<Command>(Part::Lb)
}

/// Returns the command line, from `uturn` on.
pub fn command() -> clap::Command {
    PartLine::<Command>::command()
}

/// Runs `uturn` with these words if the command reads only files and ends by itself. The output
/// goes to the standard streams of this process.
pub fn run_on_files(words: &[String]) -> Ended {
    uturn_cli::run_on_files(words, |line: &PartLine<Command>| {
        let Command::Lb(command) = &line.command;
        matches!(command, Lb::Check(_))
    })
}
