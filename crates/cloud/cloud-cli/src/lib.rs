//! `uturn-cloud`: the program that serves a cloud's API for load balancers.
//!
//! **Owns** the command `uturn cloud`: its arguments (`cli`) and what it does (`cloud`). The program
//! is [`main`]; `uturn cloud` starts it where it is installed.
//!
//! **Out of scope:** the API, its state and its data planes, which are `uturn-cloud`, the library.

mod cli;
mod cloud;

use std::process::ExitCode;

use clap::CommandFactory as _;
use uturn_cli::{Failure, Part, PartCommand, PartLine, Printer, Status};

use cli::Command;

impl PartCommand for Command {
    fn run(self, printer: &Printer) -> Result<Status, Failure> {
        let Self::Cloud(command) = self;
        cloud::run(&command, printer)
    }
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    uturn_cli::main_of::<Command>(Part::Cloud)
}

/// Returns the command line, from `uturn` on.
pub fn command() -> clap::Command {
    PartLine::<Command>::command()
}
