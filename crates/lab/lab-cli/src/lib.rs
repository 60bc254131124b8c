//! `uturn-lab`: the program that builds clusters on a real kernel.
//!
//! **Owns** the command `uturn lab`: its arguments (`cli`) and what it does (`lab`), the built-in
//! scenarios and the built-in examples. The program is [`main`]; `uturn lab` starts it where it is
//! installed.
//!
//! **Out of scope:** namespaces, measuring and the cluster in a box, which are `uturn-lab`, the
//! library, and the small machine, which is `uturn-machine`.

mod built_in_scenarios;
mod cli;
mod examples;
mod lab;
mod scenarios;

use std::process::ExitCode;

use clap::CommandFactory as _;
use uturn_cli::{Failure, Part, PartCommand, PartLine, Printer, Status};

use cli::Command;

impl PartCommand for Command {
    fn run(self, printer: &Printer) -> Result<Status, Failure> {
        let Self::Lab(command) = self;
        lab::run(&command, printer)
    }
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    // The program is the first process of the small machine too.
    if uturn_machine::is_inside() {
        return uturn_machine::inside();
    }
    uturn_cli::main_of::<Command>(Part::Lab)
}

/// Returns the command line, from `uturn` on.
pub fn command() -> clap::Command {
    PartLine::<Command>::command()
}
