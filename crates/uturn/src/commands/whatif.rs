//! `uturn whatif`: what a change does to calls, before it is made.

use uturn_cli::{Failure, Printer, Status, print};
use uturn_diagnose::analysis::{AnalysisError, Input};
use uturn_model::Cluster;
use uturn_report::sarif;
use uturn_report::schema::whatif::WhatIf as WhatIfJson;
use uturn_report::whatif::{self as report, Change as Printed, WhatIfReport};
use uturn_snapshot::Manifests;
use uturn_whatif::change::{What, patch};
use uturn_whatif::compare::Scope;
use uturn_whatif::{Change, Edited, State, apply, compare};

use crate::cli::{Changes, FailOnChange, Makes, WhatIf, WhatIfOutput};
use crate::input;

pub(super) fn run(args: &WhatIf, printer: &Printer) -> Result<Status, Failure> {
    let namespace = args.namespace.as_deref();
    let changes = changes(&args.changes, namespace, printer)?;
    if changes.is_empty() {
        return Err(Failure::usage(
            "no change: give one, such as --set svc/shop/front:spec.externalTrafficPolicy=Local, \
             -p FILE or --kube-proxy-mode nftables (uturn whatif --help lists them)",
        ));
    }
    let report = judge(args, &changes, &read(args, printer)?, printer)?;
    Ok(finish(&report, args.output, args.fail_on, printer))
}

/// Reads the cluster that is changed.
pub(super) fn read(args: &WhatIf, printer: &Printer) -> Result<Input, Failure> {
    let namespace = args.namespace.as_deref();
    let input = input::read(&args.cluster, namespace, printer, usize::MAX)?;
    if input.is_empty() {
        return Err(Failure::usage("the input contains no object: nothing to change"));
    }
    Ok(input)
}

/// Makes changes on a copy of a cluster, and compares it with the cluster.
pub(super) fn judge(
    args: &WhatIf,
    changes: &[Change],
    input: &Input,
    printer: &Printer,
) -> Result<WhatIfReport, Failure> {
    let Input { manifests, loaded } = input;
    let edited = apply(manifests, &loaded.cluster, changes)
        .map_err(|all| Failure::input(all.iter().map(ToString::to_string).collect()))?;
    for note in &edited.notes {
        printer.note(note);
    }
    let printed = changes.iter().map(printed).collect();
    let input = args.cluster.as_typed();
    let report = report_of(&edited, &loaded.cluster, manifests.has_captures(), args);
    let report = report.map_err(|why| impossible(changes, why))?;
    Ok(WhatIfReport { changes: printed, input, ..report })
}

/// Returns the failure of a comparison. Rules that kube-proxy cannot write after a change of it are
/// that change's fault: a mode that its release does not have.
fn impossible(changes: &[Change], why: AnalysisError) -> Failure {
    let of_proxy: Vec<&str> = changes
        .iter()
        .filter(|change| matches!(change.what, What::DataPlane(_)))
        .map(|change| change.typed.as_str())
        .collect();
    match &why {
        AnalysisError::Walk(faults) if !of_proxy.is_empty() => {
            let first = faults.first().map(ToString::to_string).unwrap_or_default();
            Failure::usage(format!("{}: {first}", of_proxy.join(" ")))
        }
        _ => why.into(),
    }
}

fn report_of(
    edited: &Edited,
    cluster: &Cluster,
    had_captures: bool,
    args: &WhatIf,
) -> Result<WhatIfReport, AnalysisError> {
    let without = had_captures && !edited.before.has_captures();
    // The texts were read before, with the captures.
    let read = if without { edited.before.cluster().ok() } else { None };
    let empty = Manifests::default();
    // The texts do not show a cluster that was changed in another way, so no cure is tried in them.
    let after = if edited.is_beyond_texts { &empty } else { &edited.after };
    let mut comparison = compare(
        State { manifests: &edited.before, cluster: read.as_ref().unwrap_or(cluster) },
        State { manifests: after, cluster: &edited.cluster },
        Scope {
            namespace: args.namespace.as_deref(),
            deleted: &edited.deleted,
            with_evidence: needs_evidence(args.output),
        },
    )?;
    if edited.is_beyond_texts {
        comparison.forget_untried();
    }
    Ok(WhatIfReport { comparison, ..WhatIfReport::default() })
}

/// Returns whether a form of output has the evidence of findings.
pub(super) fn needs_evidence(output: WhatIfOutput) -> bool {
    !matches!(output, WhatIfOutput::Text | WhatIfOutput::Markdown)
}

/// Prints a comparison. Returns the exit status that it asks for.
pub(super) fn finish(
    report: &WhatIfReport,
    output: WhatIfOutput,
    fail_on: FailOnChange,
    printer: &Printer,
) -> Status {
    if let Some(output) = output.plain() {
        print(printer, output, |style| report::text(report, style), || WhatIfJson::from(report));
    }
    match output {
        WhatIfOutput::Markdown => printer.result(&report::markdown(report)),
        WhatIfOutput::Sarif => printer.result(&sarif::whatif(report)),
        WhatIfOutput::Text | WhatIfOutput::Wide | WhatIfOutput::Json | WhatIfOutput::Yaml => {}
    }
    status(report, fail_on)
}

/// Returns the exit status that a comparison asks for.
pub(super) fn status(report: &WhatIfReport, fail_on: FailOnChange) -> Status {
    let fails = match fail_on {
        FailOnChange::Worse => !report.comparison.worse.is_empty(),
        FailOnChange::Any => !report.comparison.is_empty(),
        FailOnChange::Never => false,
    };
    if fails { Status::Found } else { Status::Clean }
}

/// Reads the changes, in the order in which they were typed. All faults come at once.
pub(super) fn changes(
    typed: &Changes,
    namespace: Option<&str>,
    printer: &Printer,
) -> Result<Vec<Change>, Failure> {
    let (mut all, mut faults) = (Vec::new(), Vec::new());
    for (flag, value) in &typed.typed {
        let made = match flag.makes {
            Makes::OfFile => {
                match of_file(value, namespace, printer) {
                    Ok(changes) => all.extend(changes),
                    Err(more) => faults.extend(more),
                }
                continue;
            }
            Makes::InNamespace(make) => make(value, namespace),
            Makes::OfCluster(make) => make(value),
        };
        match made {
            Ok(change) => all.push(change),
            Err(why) => faults.push(format!("{}: {why}", flag.as_typed())),
        }
    }
    if faults.is_empty() { Ok(all) } else { Err(Failure::input(faults)) }
}

/// Reads the changes of a file, or of each file of a folder.
fn of_file(
    path: &str,
    namespace: Option<&str>,
    printer: &Printer,
) -> Result<Vec<Change>, Vec<String>> {
    let (gathered, faults) = Manifests::gather(&[path.into()], &[]);
    if !faults.is_empty() {
        return Err(faults.iter().map(ToString::to_string).collect());
    }
    let (mut changes, mut faults) = (Vec::new(), Vec::new());
    for source in gathered.sources() {
        match patch::file(source, namespace) {
            Ok(of_file) => {
                changes.extend(of_file.changes);
                of_file.notes.iter().for_each(|note| printer.note(note));
            }
            Err(more) => faults.extend(more),
        }
    }
    if faults.is_empty() { Ok(changes) } else { Err(faults) }
}

fn printed(change: &Change) -> Printed {
    let object = match &change.what {
        What::Put(written) => Some(written.object.short()),
        What::Delete(object) | What::Set { object, .. } => Some(object.short()),
        What::Operate { target, .. } => Some(format!("{} {}", target.kind, target.name)),
        What::DataPlane(_) => None,
        What::Life(change) => change.object().map(|object| object.short()),
    };
    Printed { change: change.typed.clone(), objects: object.into_iter().collect() }
}
