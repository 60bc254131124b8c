//! `uturn scan`: every class of client against every target.

use uturn_diagnose::alike::alike;
use uturn_diagnose::cases::together;
use uturn_diagnose::cure::Twin;
use uturn_diagnose::group::group;
use uturn_diagnose::{Alike, Cure, Evidence, Example, Finding, Severity, diagnose};
use uturn_model::{Cluster, Verdict};
use uturn_path::{Engine, what_if};
use uturn_report::html::{self, Shown};
use uturn_report::{ScanReport, classes, json, junit, sarif, scan};
use uturn_scan::{ScanResult, ScanTarget, Scanner};

use super::{cure, print};
use crate::cli::{FailOn, Scan, ScanOutput};
use crate::printer::Printer;
use crate::status::{Failure, Status};

mod aside;

use aside::Known;

pub(super) fn run(args: &Scan, printer: &Printer) -> Result<Status, Failure> {
    let (manifests, loaded) = cure::gather(&args.inputs, printer, cure::MOST_BYTES)?;
    if loaded.seen.is_empty() && loaded.cluster.skipped.is_empty() {
        return Err(Failure::usage("there is no object in what -f names: nothing to scan"));
    }
    let cluster = &loaded.cluster;
    if args.explain_classes {
        return explain_classes(cluster, args, printer);
    }
    let known = Known::read(cluster, args.baseline.as_deref())?;
    say_what_is_left_out(cluster, printer);
    let others = what_if::others(cluster);
    let clusters = std::iter::once(cluster).chain(&others);
    let engines = clusters.map(Engine::new).collect::<Result<Vec<_>, _>>()?;
    let scanners: Vec<Scanner<'_, '_>> = engines.iter().map(Scanner::new).collect();
    let twin = Twin::new(&manifests, &engines[0]);
    let mut met = Vec::new();
    let mut all = Vec::new();
    for scanner in &scanners {
        let here = walk(scanner, args)?;
        let mut findings = diagnose(scanner, &here)?;
        if let Some(namespace) = &args.namespace {
            let elsewhere = |one: &uturn_model::Name| one.as_str() != namespace;
            findings.retain(|one| !one.subject.namespace.as_ref().is_some_and(elsewhere));
        }
        if all.is_empty() {
            met = here;
        }
        all.push(findings);
    }
    if met.is_empty() && has_targets(cluster) {
        printer.note(
            "no flow was looked at: that needs a Service or an Ingress with an address, \
             and a pod or a workload that could call it",
        );
    }
    let found = together(cluster, all);
    if let Some(file) = &args.write_baseline {
        known.write(file, &found, printer)?;
    }
    let gone = known.gone(&found);
    let (mut findings, set_aside) = known.set_aside(&engines[0], found, printer);
    // Before cures are tried on some of the findings: what a group has in common is not that.
    let groups = group(findings.iter().map(|(_, finding)| finding));
    let alike = alike(findings.iter().map(|(_, one)| one));
    let cures = cure::name(&twin, &mut findings, &alike);
    let evidence = |at: usize| {
        let (engine, one) = &findings[at];
        one.evidence(&scanners[*engine])
    };
    let evidence: Vec<Vec<Evidence>> = match args.output {
        ScanOutput::Text => Vec::new(),
        // A page tells it of the first of those that are alike.
        ScanOutput::Html => {
            let mut all = vec![Vec::new(); findings.len()];
            for one in &alike {
                all[one.first] = evidence(one.first)?;
            }
            all
        }
        _ => (0..findings.len()).map(evidence).collect::<Result<_, _>>()?,
    };
    let shown = match args.output {
        ScanOutput::Html => shown(&scanners, &findings, &alike, cures)?,
        _ => Vec::new(),
    };
    let engine = &engines[0];
    let fine = met.iter().filter(|one| one.verdicts.iter().all(Verdict::is_fine));
    let is_open = |met: &&ScanResult| met.verdicts.iter().any(Verdict::is_open);
    let open = met.iter().filter(is_open);
    let report = ScanReport {
        origins: findings.iter().map(|(_, one)| aside::origin(engine, &one.subject)).collect(),
        findings: findings.into_iter().map(|(_, one)| one).collect(),
        groups,
        evidence,
        aside: set_aside,
        gone,
        fails_from: match args.fail_on {
            FailOn::Info => Some(Severity::Info),
            FailOn::Warning => Some(Severity::Warning),
            FailOn::Error => Some(Severity::Error),
            FailOn::Never => None,
        },
        flows: met.iter().map(ScanResult::flows).sum(),
        fine: fine.map(ScanResult::flows).sum(),
        open: open.map(ScanResult::flows).sum(),
        network: Some(cluster.network.clone()),
        unjudged: cluster.unjudged.clone(),
        supposed: engine.supposed().to_vec(),
        skipped: cluster.skipped.clone(),
        seen: loaded.seen.clone(),
    };
    if let Some(output) = args.output.plain() {
        print(printer, output, |style| scan::text(&report, style), || json::scan(&report));
    }
    match args.output {
        ScanOutput::Sarif => printer.result(&format!("{:#}\n", sarif::scan(&report))),
        ScanOutput::Html => printer.result(&html::scan(&report, &alike, &shown)),
        ScanOutput::Junit => printer.result(&junit::scan(&report)),
        ScanOutput::Text | ScanOutput::Wide | ScanOutput::Json | ScanOutput::Yaml => {}
    }
    let fails = report.findings.iter().any(|one| report.fails(one));
    let is_written = args.write_baseline.is_some();
    Ok(if fails && !is_written { Status::Found } else { Status::Clean })
}

/// What a page shows beside the first of those that are alike.
fn shown(
    scanners: &[Scanner<'_, '_>],
    findings: &[(usize, Finding)],
    alike: &[Alike],
    cures: Vec<Vec<Cure>>,
) -> Result<Vec<Shown>, Failure> {
    let of = |(one, cures): (&Alike, Vec<Cure>)| {
        let (at, finding) = &findings[one.first];
        let (scanner, engine) = (&scanners[*at], scanners[*at].engine());
        let (flow, verdicts) = match &finding.example {
            // Rules of a large cluster are not written in full for a single flow.
            Example::Scanned(met) if scanner.is_large() => {
                (Some(met.flow()), scanner.explain(met)?)
            }
            _ => match cure::flow_of(engine, finding) {
                Some(flow) => {
                    let verdicts = engine.verdicts(&flow)?;
                    (Some(flow), verdicts)
                }
                None => (None, Vec::new()),
            },
        };
        Ok(Shown { flow, verdicts, cures })
    };
    alike.iter().zip(cures).map(of).collect()
}

/// Prints which pods share a class of clients, and why.
fn explain_classes(cluster: &Cluster, args: &Scan, printer: &Printer) -> Result<Status, Failure> {
    let Some(output) = args.output.plain() else {
        return Err(Failure::usage("--explain-classes prints text, json and yaml"));
    };
    let engine = Engine::new(cluster)?;
    let scanner = Scanner::new(&engine);
    let results = scanner.scan(&targets(&scanner, args)?)?;
    let explained = scanner.explain_classes(&results)?;
    print(printer, output, |style| classes::text(&explained, style), || classes::json(&explained));
    Ok(Status::Clean)
}

/// So many flows are walked one by one.
const MOST_FLOWS: usize = 200_000;

/// Walks everything that is asked for: by class, or each flow by itself.
fn walk(scanner: &Scanner<'_, '_>, args: &Scan) -> Result<Vec<ScanResult>, Failure> {
    let targets = targets(scanner, args)?;
    if !args.exhaustive {
        return Ok(scanner.scan(&targets)?);
    }
    match scanner.flows(targets.len()) {
        flows if flows > MOST_FLOWS => Err(Failure::usage(format!(
            "--exhaustive walks each flow by itself, and there are {flows}: \
             at most {MOST_FLOWS} can be walked (-n picks a namespace)"
        ))),
        _ => Ok(scanner.scan_exhaustively(&targets)?),
    }
}

/// What is called, as far as it is asked for.
fn targets(scanner: &Scanner<'_, '_>, args: &Scan) -> Result<Vec<ScanTarget>, Failure> {
    let mut targets = scanner.targets();
    if let Some(namespace) = &args.namespace {
        let wanted = |name: &uturn_model::Name| name.as_str() == namespace;
        targets.retain(|target| target.object.namespace.as_ref().is_some_and(wanted));
        if targets.is_empty() && has_targets(scanner.engine().cluster()) {
            return Err(Failure::usage(format!(
                "namespace {namespace:?} has no Service and no Ingress"
            )));
        }
    }
    Ok(targets)
}

/// Whether there is anything that can be called.
fn has_targets(cluster: &Cluster) -> bool {
    !cluster.services.is_empty() || !cluster.ingresses.is_empty()
}

/// Where a cluster is too large for them, other modes of kube-proxy are not looked at.
fn say_what_is_left_out(cluster: &Cluster, printer: &Printer) {
    if cluster.pods.len() > what_if::MOST_PODS && cluster.proxy.mode.is_supposed() {
        let mode = cluster.proxy.mode.value;
        printer.note(&format!(
            "only mode {mode} of kube-proxy is looked at in so large a cluster, and nothing says \
             that it is its mode: state spec.kubeProxy.mode in Facts"
        ));
    }
}
