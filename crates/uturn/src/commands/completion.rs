//! `uturn completion`: a script for the shell.

use clap::CommandFactory;

use crate::cli::{Cli, Completion};
use crate::printer::Printer;
use crate::status::Status;

pub(super) fn run(args: &Completion, printer: &Printer) -> Status {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "uturn", &mut script);
    printer.result(&String::from_utf8_lossy(&script));
    Status::Clean
}
