//! The commands: one file each.

mod check;
#[cfg(feature = "live")]
mod collect;
mod completion;
mod cure;
mod diff;
mod explain;
mod here;
mod migrate;
#[cfg(feature = "live")]
mod probe;
mod redact;
mod rules;
mod scan;
mod suggest;
mod trace;
mod version;
mod walk;
mod whatif;

use std::path::Path;

use uturn_cli::{Failure, Part, Printer, Status};
use uturn_snapshot::bundle::is_archive;

use crate::cli::{Collect, Command, Probe};

/// Runs the command that was typed.
pub(crate) fn run(command: Command, printer: &Printer) -> Result<Status, Failure> {
    match command {
        Command::Scan(scan) => scan::run(&scan, printer),
        Command::Trace(trace) => trace::run(&trace, printer),
        Command::Probe(args) => probe(&args, printer),
        Command::Check(check) => check::run(&check, printer),
        Command::Cure(cure) => cure::run(&cure, printer),
        Command::WhatIf(args) => whatif::run(&args, printer),
        Command::Migrate(args) => migrate::run(&args, printer),
        Command::Diff(args) => diff::run(&args, printer),
        Command::Explain(explain) => explain::run(&explain, printer),
        Command::Rules(rules) => rules::run(&rules, printer),
        Command::Walk(walk) => walk::run(&walk, printer),
        Command::Collect(args) => collect(&args, printer),
        Command::Version(args) => Ok(version::run(&args, printer)),
        Command::Lab => Err(not_installed(Part::Lab)),
        Command::Lb => Err(not_installed(Part::Lb)),
        Command::Cloud => Err(not_installed(Part::Cloud)),
        Command::Operator => Err(not_installed(Part::Operator)),
        Command::Completion(completion) => completion::run(&completion, printer),
    }
}

#[cfg(feature = "live")]
fn probe(args: &Probe, printer: &Printer) -> Result<Status, Failure> {
    probe::run(args, printer)
}

#[cfg(not(feature = "live"))]
fn probe(_: &Probe, _: &Printer) -> Result<Status, Failure> {
    Err(left_out("live"))
}

/// Runs `uturn collect`: for this node, or for a running cluster; or redacts any cluster.
fn collect(args: &Collect, printer: &Printer) -> Result<Status, Failure> {
    match args.output.as_deref() {
        Some(path) if args.here.here => here::run(&args.here, path, printer),
        Some(path) if args.redaction.redact => redact::run(args, path, printer),
        _ => running(args, printer),
    }
}

#[cfg(feature = "live")]
fn running(args: &Collect, printer: &Printer) -> Result<Status, Failure> {
    collect::run(args, printer)
}

#[cfg(not(feature = "live"))]
fn running(_: &Collect, _: &Printer) -> Result<Status, Failure> {
    Err(left_out("live"))
}

/// Returns the failure of a command that is a program of its own: the line would have been handed
/// over if that were installed.
fn not_installed(part: Part) -> Failure {
    let why = part.find().err().map(|why| why.to_string());
    Failure::unavailable(
        why.unwrap_or_else(|| format!("{} was installed just now: try again", part.program())),
    )
}

/// Returns the failure of a command that is not part of this build.
#[cfg(not(feature = "live"))]
fn left_out(feature: &str) -> Failure {
    Failure::unavailable(format!(
        "this uturn was built without the feature `{feature}`; build it without \
         --no-default-features",
    ))
}

/// Refuses to write to a path that exists, or whose folder does not exist. A command calls this
/// before it reads anything, which may take a while.
fn must_be_free(path: &Path) -> Result<(), Failure> {
    let shown = path.display();
    if path.symlink_metadata().is_ok() {
        let what_to_do = "remove it, or name another path";
        return Err(Failure::usage(format!("{shown} exists already: {what_to_do}")));
    }
    match path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        Some(parent) if !parent.is_dir() => Err(Failure::unavailable(format!(
            "{shown} cannot be written: there is no folder {}",
            parent.display()
        ))),
        _ => Ok(()),
    }
}

/// Does the same for a bundle, which has a name of its own: an archive or a folder.
fn must_be_a_place(bundle: &Path) -> Result<(), Failure> {
    let name = bundle.to_string_lossy().to_lowercase();
    let other = [".zip", ".tar", ".gz", ".tar.xz", ".tar.bz2", ".tar.zst"];
    if name == "-" || !is_archive(bundle) && other.iter().any(|end| name.ends_with(end)) {
        return Err(Failure::usage(format!(
            "-o {}: a bundle is a folder, or an archive if the name ends in .tar.gz or .tgz",
            bundle.display()
        )));
    }
    must_be_free(bundle)
}
