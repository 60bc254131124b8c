//! `uturn`: finds, explains and proves load-balancer loopback in Kubernetes.
//!
//! **Owns** the command line: the arguments (`cli`) and the source of the cluster (`input`). Each
//! command is one file in `commands`. What all programs share is in `uturn-cli`. The program is
//! [`main`]; [`run_on_files`] is for programs that run many commands.
//!
//! **Out of scope:** packets and clusters, which the other crates know.

#[cfg(feature = "lab")]
mod built_in_scenarios;
mod cli;
mod commands;
mod completion;
#[cfg(all(feature = "lab", feature = "live"))]
mod examples;
mod input;
mod on_files;
mod packet;
#[cfg(feature = "lab")]
mod scenarios;

use std::process::ExitCode;

use uturn_cli::{Failure, Global, Printer, Program, Status};

pub use on_files::run_on_files;

use cli::Cli;

impl Program for Cli {
    fn global(&self) -> &Global {
        &self.global
    }

    fn run(self, printer: &Printer) -> Result<Status, Failure> {
        commands::run(self.command, printer)
    }
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    #[cfg(feature = "lab")]
    if uturn_machine::is_inside() {
        return uturn_machine::inside();
    }
    let words: Vec<_> = std::env::args_os().collect();
    uturn_cli::main::<Cli>(&words)
}
