//! `uturn scan`: every class of client against every target.

use uturn_diagnose::cases::together;
use uturn_diagnose::cure::Twin;
use uturn_diagnose::{Finding, Severity, diagnose};
use uturn_model::{Cluster, Verdict};
use uturn_path::{Engine, Met, ScanTarget, cases};
use uturn_report::html::{self, Shown};
use uturn_report::{ScanReport, json, junit, sarif, scan};

use super::{cure, print};
use crate::cli::{FailOn, Scan, ScanOutput};
use crate::printer::Printer;
use crate::status::{Failure, Status};

mod aside;

use aside::Known;

pub(super) fn run(args: &Scan, printer: &Printer) -> Result<Status, Failure> {
    let (manifests, loaded) = cure::gather(&args.inputs, printer, cure::MOST_BYTES)?;
    if loaded.seen.is_empty() {
        return Err(Failure::usage("there is no object in what -f names: nothing to scan"));
    }
    let cluster = &loaded.cluster;
    let known = Known::read(cluster, args.baseline.as_deref())?;
    say_what_is_left_out(cluster, printer);
    let others = cases::others(cluster);
    let clusters = std::iter::once(cluster).chain(&others);
    let engines = clusters.map(Engine::new).collect::<Result<Vec<_>, _>>()?;
    let twin = Twin::new(&manifests, &engines[0]);
    let mut met = Vec::new();
    let mut all = Vec::new();
    for engine in &engines {
        let here = engine.scan(&targets(engine, args)?)?;
        let mut findings = diagnose(engine, &here)?;
        if let Some(namespace) = &args.namespace {
            let elsewhere = |one: &uturn_model::Name| one.as_str() != namespace;
            findings.retain(|one| !one.subject.namespace.as_ref().is_some_and(elsewhere));
        }
        if all.is_empty() {
            cure::name_cures(&twin, &mut findings);
            met = here;
        }
        all.push(findings);
    }
    if met.is_empty() {
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
    let (findings, set_aside) = known.set_aside(&engines[0], found, printer);
    let evidence = match args.output {
        ScanOutput::Text => Vec::new(),
        _ => {
            let of = |(at, one): &(usize, Finding)| one.evidence(&engines[*at]);
            findings.iter().map(of).collect::<Result<_, _>>()?
        }
    };
    let shown = match args.output {
        ScanOutput::Html => shown(&twin, &engines, &findings)?,
        _ => Vec::new(),
    };
    let engine = &engines[0];
    let fine = met.iter().filter(|one| one.verdicts.iter().all(Verdict::is_fine));
    let report = ScanReport {
        origins: findings.iter().map(|(_, one)| aside::origin(engine, &one.subject)).collect(),
        findings: findings.into_iter().map(|(_, one)| one).collect(),
        evidence,
        aside: set_aside,
        gone,
        fails_from: match args.fail_on {
            FailOn::Info => Some(Severity::Info),
            FailOn::Warning => Some(Severity::Warning),
            FailOn::Error => Some(Severity::Error),
            FailOn::Never => None,
        },
        flows: met.iter().map(Met::flows).sum(),
        fine: fine.map(Met::flows).sum(),
        supposed: engine.supposed().to_vec(),
        skipped: cluster.skipped.clone(),
        seen: loaded.seen.clone(),
    };
    if let Some(output) = args.output.plain() {
        print(printer, output, |style| scan::text(&report, style), || json::scan(&report));
    }
    match args.output {
        ScanOutput::Sarif => printer.result(&format!("{:#}\n", sarif::scan(&report))),
        ScanOutput::Html => printer.result(&html::scan(&report, &shown)),
        ScanOutput::Junit => printer.result(&junit::scan(&report)),
        ScanOutput::Text | ScanOutput::Wide | ScanOutput::Json | ScanOutput::Yaml => {}
    }
    let fails = report.findings.iter().any(|one| report.fails(one));
    let is_written = args.write_baseline.is_some();
    Ok(if fails && !is_written { Status::Found } else { Status::Clean })
}

/// So many findings at most have their pictures drawn.
const MOST_PICTURES: usize = 200;

/// What a page shows beside the findings.
fn shown(
    twin: &Twin<'_>,
    engines: &[Engine<'_>],
    findings: &[(usize, Finding)],
) -> Result<Vec<Shown>, Failure> {
    let is_few = findings.len() <= cure::MOST_FINDINGS;
    let of = |(at, one): &(usize, Finding)| {
        let engine = &engines[*at];
        let flow = cure::flow_of(engine, one);
        let verdicts = match &flow {
            Some(flow) => engine.verdicts(flow)?,
            None => Vec::new(),
        };
        let cures = match *at {
            0 if is_few => cure::of_finding(twin, one),
            _ => Vec::new(),
        };
        Ok(Shown { flow, verdicts, cures })
    };
    findings.iter().take(MOST_PICTURES).map(of).collect()
}

/// What is called, as far as it is asked for.
fn targets(engine: &Engine<'_>, args: &Scan) -> Result<Vec<ScanTarget>, Failure> {
    let mut targets = engine.targets();
    if let Some(namespace) = &args.namespace {
        let wanted = |name: &uturn_model::Name| name.as_str() == namespace;
        targets.retain(|target| target.object.namespace.as_ref().is_some_and(wanted));
        if targets.is_empty() {
            return Err(Failure::usage(format!(
                "namespace {namespace:?} has no Service and no Ingress"
            )));
        }
    }
    Ok(targets)
}

/// Where a cluster is too large for them, other modes of kube-proxy are not looked at.
fn say_what_is_left_out(cluster: &Cluster, printer: &Printer) {
    if cluster.pods.len() > cases::MOST_PODS && cluster.proxy.mode.is_supposed() {
        let mode = cluster.proxy.mode.value;
        printer.note(&format!(
            "only mode {mode} of kube-proxy is looked at in so large a cluster, and nothing says \
             that it is its mode: state spec.kubeProxy.mode in Facts"
        ));
    }
}
