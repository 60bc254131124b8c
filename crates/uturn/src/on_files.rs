//! Runs commands that read only files, for programs that run many of them in one process.

use uturn_cli::{Ended, Part};

use crate::cli::{Cli, Collect, Command};

/// Runs `uturn` with these words if the command reads only files and ends by itself. The output
/// goes to the standard streams of this process. No other program is started.
pub fn run_on_files(words: &[String]) -> Ended {
    if Part::named(words).is_some() {
        return Ended::NotRun;
    }
    uturn_cli::run_on_files(words, |cli: &Cli| reads_only_files(&cli.command))
}

fn reads_only_files(command: &Command) -> bool {
    match command {
        Command::Scan(scan) => !scan.watch && !scan.cluster.is_live(),
        Command::Trace(trace) => !trace.cluster.is_live(),
        Command::Check(check) => !check.cluster.is_live(),
        Command::Cure(cure) => !cure.cluster.is_live(),
        Command::WhatIf(whatif) => !whatif.cluster.is_live(),
        Command::Migrate(migrate) => {
            migrate.preset.is_none() || migrate.page || !migrate.whatif.cluster.is_live()
        }
        Command::Diff(diff) => diff.is_of_files(),
        Command::Rules(rules) => !rules.cluster.is_live(),
        Command::Collect(collect) => redacts_files(collect),
        Command::Explain(_) | Command::Walk(_) | Command::Version(_) => true,
        Command::Probe(_)
        | Command::Lab
        | Command::Lb
        | Command::Cloud
        | Command::Operator
        | Command::Completion(_) => false,
    }
}

fn redacts_files(collect: &Collect) -> bool {
    let redaction = &collect.redaction;
    let has_input = !redaction.files.is_empty() || !redaction.bundles.is_empty();
    redaction.redact && collect.output.is_some() && has_input
}
