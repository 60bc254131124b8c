//! The forms of output that almost every command has.

use clap::ValueEnum;
use serde::Serialize;
use uturn_report::{Style, json, yaml};

use crate::printer::Printer;

/// A form of output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[expect(missing_docs, reason = "`--help` would print what says no more than the words")]
pub enum Output {
    Text,
    /// Text with all details
    Wide,
    Json,
    Yaml,
}

/// Prints a result in the requested format.
pub fn print<T: Serialize>(
    printer: &Printer,
    output: Output,
    text: impl FnOnce(Style) -> String,
    value: impl FnOnce() -> T,
) {
    match output {
        Output::Text => printer.text(&text(printer.style(false))),
        Output::Wide => printer.text(&text(printer.style(true))),
        Output::Json => printer.result(&json::document(&value())),
        Output::Yaml => printer.result(&yaml::document(&value())),
    }
}
