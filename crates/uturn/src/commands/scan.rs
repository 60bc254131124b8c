//! `uturn scan`: every class of client against every target.

use uturn_cli::{Failure, Printer, Status, print};
use uturn_diagnose::analysis::{
    Analysis, AnalysisError, Detail, KnownFindings, MAX_SCANNED_BYTES, Options,
};
use uturn_diagnose::{Severity, analyze};
use uturn_model::{Cluster, Name};
use uturn_path::Engine;
use uturn_report::scan::Listing;
use uturn_report::schema::explain_classes::Classes as ClassesJson;
use uturn_report::schema::scan::Scan as ScanJson;
use uturn_report::{ScanReport, classes, html, junit, sarif, scan, words};
use uturn_scan::Scanner;
use uturn_snapshot::Loaded;
use uturn_whatif::survive::{self, Survival, Unit};

use crate::cli::{FailOn, Scan, ScanOutput, Survived};
use crate::input;

mod baseline;
#[cfg(feature = "live")]
mod watch;

use baseline::BaselineFile;

pub(super) fn run(args: &Scan, printer: &Printer) -> Result<Status, Failure> {
    if args.watch {
        return watch(args, printer);
    }
    if args.survive.is_some() && args.output.plain().is_none() {
        return Err(Failure::usage("--survive prints text, wide, json and yaml"));
    }
    let namespace = args.namespace.as_deref();
    let (input, has_faults) =
        input::read_what_can_be(&args.cluster, namespace, printer, MAX_SCANNED_BYTES)?;
    if input.is_empty() {
        return Err(Failure::usage("the input contains no object: nothing to scan"));
    }
    if args.explain_classes {
        let status = explain_classes(&input.loaded.cluster, args, printer)?;
        return Ok(if has_faults { Status::BadInput } else { status });
    }
    let baseline = BaselineFile::read(args.baseline.as_deref(), &input.loaded.cluster)?;
    let known = baseline.as_ref().map(|file| (file, |finding: &_| file.list.knows(finding)));
    let options = Options {
        namespace: args.namespace.as_deref(),
        is_exhaustive: args.exhaustive,
        known: known.as_ref().map(|(file, contains)| KnownFindings { list: &file.name, contains }),
        detail: detail(args.output),
    };
    let analysis = analyze(&input.manifests, &input.loaded.cluster, &options)?;
    for note in &analysis.notes {
        printer.note(&note.to_string());
    }
    if let Some(file) = &args.write_baseline {
        let count = baseline::write(file, &analysis)?;
        let count = words::count(count, "finding");
        printer.note(&format!("{}: {count} recorded as known", file.display()));
    }
    let gone = baseline.as_ref().map_or(0, |file| file.gone(&analysis));
    let survival = survival(args, &input.loaded.cluster)?;
    let status = print_analysis(args, analysis, (gone, survival), input.loaded, printer)?;
    Ok(if has_faults { Status::BadInput } else { status })
}

#[cfg(feature = "live")]
use watch::run as watch;

/// Fails: this build cannot watch a running cluster.
#[cfg(not(feature = "live"))]
fn watch(_: &Scan, _: &Printer) -> Result<Status, Failure> {
    Err(Failure::unavailable(
        "--watch watches a running cluster, and this uturn was built without the feature `live`",
    ))
}

fn detail(output: ScanOutput) -> Detail {
    match output {
        ScanOutput::Text => Detail::Findings,
        ScanOutput::Html => Detail::InFull,
        _ => Detail::Evidence,
    }
}

/// Prints which pods share a class of clients, and why.
fn explain_classes(cluster: &Cluster, args: &Scan, printer: &Printer) -> Result<Status, Failure> {
    let Some(output) = args.output.plain() else {
        return Err(Failure::usage("--explain-classes prints text, json and yaml"));
    };
    let engine = Engine::new(cluster)?;
    let scanner = Scanner::new(&engine);
    let mut targets = scanner.targets();
    if let Some(wanted) = &args.namespace {
        let is_wanted = |name: &Name| name.as_str() == wanted;
        targets.retain(|target| target.object.namespace.as_ref().is_some_and(is_wanted));
    }
    let explained = scanner.explain_classes(&scanner.scan(&targets)?)?;
    let text = |style| classes::text(&explained, style);
    print(printer, output, text, || ClassesJson::from(&*explained));
    Ok(Status::Clean)
}

fn print_analysis(
    args: &Scan,
    mut analysis: Analysis,
    (gone, survival): (usize, Option<Survival>),
    loaded: Loaded,
    printer: &Printer,
) -> Result<Status, Failure> {
    let in_full = std::mem::take(&mut analysis.in_full);
    let mut report = report_of(args, analysis, gone, loaded);
    report.survive = survival;
    let listing = if args.all { Listing::Every } else { Listing::Short };
    if let Some(output) = args.output.plain() {
        let text = |style| scan::text(&report, listing, style);
        print(printer, output, text, || ScanJson::from(&report));
    }
    match args.output {
        ScanOutput::Sarif => printer.result(&sarif::scan(&report)),
        ScanOutput::Html => printer.result(&html::scan(&report, &in_full)),
        ScanOutput::Junit => printer.result(&junit::scan(&report)),
        ScanOutput::Text | ScanOutput::Wide | ScanOutput::Json | ScanOutput::Yaml => {}
    }
    let lost = report.survive.as_ref().and_then(Survival::severity);
    let fails = report.findings.iter().any(|finding| report.fails(finding))
        || lost.is_some_and(|worst| report.fails_from.is_some_and(|from| worst >= from));
    let is_written = args.write_baseline.is_some();
    Ok(if fails && !is_written { Status::Found } else { Status::Clean })
}

/// Walks the losses that were asked for.
fn survival(args: &Scan, cluster: &Cluster) -> Result<Option<Survival>, Failure> {
    let unit = match args.survive {
        None => return Ok(None),
        Some(Survived::Node) => Unit::Node,
        Some(Survived::Zone) => Unit::Zone,
    };
    let survival = survive::survive(cluster, unit, args.namespace.as_deref());
    Ok(Some(survival.map_err(AnalysisError::Walk)?))
}

fn report_of(args: &Scan, analysis: Analysis, gone: usize, loaded: Loaded) -> ScanReport {
    let fails_from = match args.fail_on {
        FailOn::Info => Some(Severity::Info),
        FailOn::Warning => Some(Severity::Warning),
        FailOn::Error => Some(Severity::Error),
        FailOn::Never => None,
    };
    let input = args.cluster.as_typed();
    ScanReport { gone, input, fails_from, ..ScanReport::of(analysis, loaded) }
}
