//! The commands: one file each.

mod check;
#[cfg(feature = "live")]
mod cloud;
#[cfg(feature = "live")]
mod collect;
mod completion;
mod cure;
mod explain;
mod here;
mod lab;
mod lb;
#[cfg(feature = "live")]
mod operator;
mod rules;
mod scan;
mod suggest;
mod trace;
mod walk;

use serde::Serialize;
use uturn_report::{json, yaml};

use crate::cli::{Cli, Collect, Command, Output};
use crate::printer::Printer;
use crate::status::{Failure, Status};

/// Runs what was typed.
pub(crate) fn run(cli: Cli, printer: &Printer) -> Result<Status, Failure> {
    match cli.command {
        Command::Scan(scan) => scan::run(&scan, printer),
        Command::Trace(trace) => trace::run(&trace, printer),
        Command::Check(check) => check::run(&check, printer),
        Command::Cure(cure) => cure::run(&cure, printer),
        Command::Explain(explain) => explain::run(&explain, printer),
        Command::Rules(rules) => rules::run(&rules, printer),
        Command::Walk(walk) => walk::run(&walk, printer),
        Command::Collect(args) => collect(&args, printer),
        Command::Lab(lab) => lab::run(&lab, printer),
        Command::Lb(lb) => lb::run(&lb, printer),
        #[cfg(feature = "live")]
        Command::Cloud(cloud) => cloud::run(&cloud, printer),
        #[cfg(feature = "live")]
        Command::Operator(operator) => operator::run(&operator, printer),
        #[cfg(not(feature = "live"))]
        Command::Cloud(_) | Command::Operator(_) => Err(left_out()),
        Command::Completion(completion) => Ok(completion::run(&completion, printer)),
    }
}

/// `uturn collect`: this node, or a running cluster.
fn collect(args: &Collect, printer: &Printer) -> Result<Status, Failure> {
    match args.output.as_deref().filter(|_| args.here.here) {
        Some(path) => here::run(&args.here, path, printer),
        None => running(args, printer),
    }
}

#[cfg(feature = "live")]
fn running(args: &Collect, printer: &Printer) -> Result<Status, Failure> {
    collect::run(args, printer)
}

#[cfg(not(feature = "live"))]
fn running(_: &Collect, _: &Printer) -> Result<Status, Failure> {
    Err(left_out())
}

/// The command is not part of this build.
#[cfg(not(feature = "live"))]
fn left_out() -> Failure {
    Failure::not_here(
        "this uturn was built without the feature `live`; build it without --no-default-features",
    )
}

/// Prints a result in the form that was asked for.
fn print<T: Serialize>(
    printer: &Printer,
    output: Output,
    text: impl FnOnce(uturn_report::Style) -> String,
    value: impl FnOnce() -> T,
) {
    printer.result(&match output {
        Output::Text => text(printer.style(false)),
        Output::Wide => text(printer.style(true)),
        Output::Json => json::document(&value()),
        Output::Yaml => yaml::document(&value()),
    });
}
