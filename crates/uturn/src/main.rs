//! `uturn`: finds, explains and proves load-balancer loopback in Kubernetes.
//!
//! **Owns** the command line: what is typed ([`cli`]), where the cluster comes from
//! ([`input`]), what is printed where ([`printer`]) and the exit status ([`status`]). Each
//! command is one file in [`commands`].
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
mod packet;
mod printer;
#[cfg(feature = "lab")]
mod scenarios;
mod secret_file;
mod status;

use std::process::ExitCode;

use clap::CommandFactory as _;

/// A scan makes and throws away millions of small things on several threads: with this it takes
/// four fifths of the time.
#[cfg(target_os = "linux")]
#[global_allocator]
static MEMORY: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    #[cfg(feature = "lab")]
    if uturn_machine::is_inside() {
        return uturn_machine::inside();
    }
    if completion::answer(cli::Cli::command) {
        return ExitCode::SUCCESS;
    }
    printer::Printer::guard_panics();
    let cli = match cli::Cli::parse_as_typed() {
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
