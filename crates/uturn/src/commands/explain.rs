//! `uturn explain`: the page of a code or mechanism.

use uturn_diagnose::{Code, pages};
use uturn_model::Mechanism;

use crate::cli::Explain;
use crate::printer::Printer;
use crate::status::{Failure, Status};

pub(super) fn run(args: &Explain, printer: &Printer) -> Result<Status, Failure> {
    let Some(word) = &args.word else {
        printer.text(&list());
        return Ok(Status::Clean);
    };
    let page = pages::find(word).ok_or_else(|| {
        Failure::usage(format!("{word:?} is no code and no mechanism: uturn explain lists all"))
    })?;
    printer.text(page);
    Ok(Status::Clean)
}

fn list() -> String {
    let mut text = String::from("Codes of findings:\n");
    for code in Code::all() {
        text.push_str(&format!("  {code}  {}\n", code.title()));
    }
    text.push_str("\nMechanisms:\n");
    for mechanism in Mechanism::ALL {
        text.push_str(&format!("  {mechanism}\n"));
    }
    text
}
