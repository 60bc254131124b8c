//! `uturn`: finds, explains and proves load-balancer loopback in Kubernetes.
//!
//! **Owns** the command line: the arguments (`cli`), the source of the cluster (`input`), the
//! output (`printer`) and the exit status (`status`). Each command is one file in `commands`. The
//! program is [`main`]; [`run_on_files`] is for programs that run many commands.
//!
//! **Out of scope:** packets and clusters, which the other crates know.

#[cfg(feature = "lab")]
mod built_in_scenarios;
mod called;
mod cli;
mod commands;
mod completion;
#[cfg(all(feature = "lab", feature = "live"))]
mod examples;
mod input;
mod likeness;
mod on_files;
mod packet;
mod printer;
#[cfg(feature = "lab")]
mod scenarios;
mod secret_file;
mod status;

use std::process::ExitCode;

use clap::CommandFactory as _;

pub use on_files::{Ended, run_on_files};

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    #[cfg(feature = "lab")]
    if uturn_machine::is_inside() {
        return uturn_machine::inside();
    }
    if completion::answer(cli::Cli::command) {
        return ExitCode::SUCCESS;
    }
    printer::Printer::guard_panics();
    let words: Vec<_> = std::env::args_os().collect();
    let cli = match cli::Cli::parse_as_typed(&words) {
        Ok(cli) => cli,
        Err(usage) => return status::usage(&usage),
    };
    let printer = printer::Printer::new(&cli.global);
    let ended = commands::run(cli, &printer).unwrap_or_else(|failure| failure.report(&printer));
    match printer::Printer::unwritten() {
        Some(why) => status::Failure::unwritten(why).report(&printer).into(),
        None => ended.into(),
    }
}
