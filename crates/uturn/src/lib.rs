//! `uturn`: finds, explains and proves load-balancer loopback in Kubernetes.
//!
//! **Owns** the command line: the arguments (`cli`) and the source of the cluster (`input`). Each
//! command is one file in `commands`. What all programs share is in `uturn-cli`. The program is
//! [`main`]; [`run_on_files`] is for programs that run many commands.
//!
//! **Out of scope:** packets and clusters, which the other crates know, and the commands that are
//! programs of their own (`lab`, `lb`, `cloud`, `operator`), to which `parts` hands the line.

mod cli;
mod commands;
mod completion;
mod input;
mod on_files;
mod packet;
mod parts;

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
    parts::hand_over(std::env::args_os().collect())
        .unwrap_or_else(|words| uturn_cli::main::<Cli>(&words))
}
