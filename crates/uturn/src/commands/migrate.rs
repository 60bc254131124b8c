//! `uturn migrate`: what a move that many people make does to calls, and what to look at besides.

use uturn_cli::{Failure, Printer, Status, print};
use uturn_diagnose::analysis::Input;
use uturn_model::{Cluster, ObjectRef, misspelt};
use uturn_report::migrate as report;
use uturn_report::sarif;
use uturn_report::schema::migrate::{Migrate as MigrateJson, Presets as PresetsJson};
use uturn_whatif::Change;
use uturn_whatif::change::kind;
use uturn_whatif::presets::{self, Preset};

use super::whatif;
use crate::cli::{Changes, Migrate, WhatIfOutput};

pub(super) fn run(args: &Migrate, printer: &Printer) -> Result<Status, Failure> {
    let Some(name) = &args.preset else { return list(args, printer) };
    let preset = find(name)?;
    if args.page {
        printer.result(preset.page);
        return Ok(Status::Clean);
    }
    let own = &args.whatif;
    let namespace = own.namespace.as_deref();
    if preset.needs_objects && own.changes.typed.is_empty() {
        return Err(Failure::usage(format!(
            "{name} needs the new objects: give them with -p FILE (uturn migrate {name} --page says more)"
        )));
    }
    if !args.only.is_empty() && !preset.is_of_objects() {
        return Err(Failure::usage(format!(
            "--only: {name} changes the cluster as a whole, no single objects"
        )));
    }
    let only = args.only.iter().map(|text| {
        kind::object(text, namespace).map_err(|why| Failure::usage(format!("--only: {why}")))
    });
    let only: Vec<ObjectRef> = only.collect::<Result<_, _>>()?;
    let typed = whatif::changes(&own.changes, namespace, printer)?;
    let input = whatif::read(own, printer)?;
    let changes = preset_changes(&preset, &input.loaded.cluster, &only, printer)?;
    let changes: Vec<Change> = changes.into_iter().chain(typed).collect();
    judge(&preset, args, &changes, &input, printer)
}

fn judge(
    preset: &Preset,
    args: &Migrate,
    changes: &[Change],
    input: &Input,
    printer: &Printer,
) -> Result<Status, Failure> {
    let own = &args.whatif;
    let report = whatif::judge(own, changes, input, printer)?;
    if let Some(output) = own.output.plain() {
        let text = |style| report::text(preset, &report, style);
        print(printer, output, text, || MigrateJson::new(preset, &report));
    }
    match own.output {
        WhatIfOutput::Markdown => printer.result(&report::markdown(preset, &report)),
        WhatIfOutput::Sarif => printer.result(&sarif::whatif(&report)),
        WhatIfOutput::Text | WhatIfOutput::Wide | WhatIfOutput::Json | WhatIfOutput::Yaml => {}
    }
    Ok(whatif::status(&report, own.fail_on))
}

fn list(args: &Migrate, printer: &Printer) -> Result<Status, Failure> {
    let Some(output) = args.whatif.output.plain() else {
        return Err(Failure::usage("the list of presets is printed as text, json and yaml"));
    };
    print(printer, output, report::list, PresetsJson::all);
    Ok(Status::Clean)
}

fn find(name: &str) -> Result<Preset, Failure> {
    presets::find(name).ok_or_else(|| {
        let mut names: Vec<&str> = presets::all().map(|preset| preset.name).collect();
        misspelt::sort_likest_first(&mut names, name);
        Failure::usage(format!(
            "there is no preset {name:?}; did you mean {}? (uturn migrate lists all)",
            names.first().copied().unwrap_or_default()
        ))
    })
}

/// Returns the changes that a preset makes of a cluster.
fn preset_changes(
    preset: &Preset,
    cluster: &Cluster,
    only: &[ObjectRef],
    printer: &Printer,
) -> Result<Vec<Change>, Failure> {
    if let Some(other) = preset.not_meant(cluster, only).first() {
        return Err(Failure::usage(format!(
            "--only {}: {} does not apply to it, or it is not given",
            other.short().replace(' ', "/"),
            preset.name
        )));
    }
    let flags = preset.flags(cluster, only);
    if flags.is_empty() && preset.is_of_objects() {
        printer
            .note(&format!("{} applies to none of the objects: nothing is changed", preset.name));
    }
    let typed = flags.into_iter().map(|flag| (flag.name, flag.value));
    whatif::changes(&Changes::of(typed), None, printer)
}
