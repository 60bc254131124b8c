//! `uturn completion`: a script for the shell.

use uturn_cli::{Failure, Printer, Status, completion};

use crate::cli::Completion;

pub(super) fn run(args: &Completion, printer: &Printer) -> Result<Status, Failure> {
    let script = completion::script(args.shell.as_str());
    let script = script.ok_or_else(|| Failure::unavailable("the script cannot be written"))?;
    printer.result(&script);
    Ok(Status::Clean)
}
