//! `uturn scan`: every class of client against every target.

use uturn_diagnose::{Severity, diagnose};
use uturn_model::Verdict;
use uturn_path::{Engine, Met};
use uturn_report::{ScanReport, json, scan};

use super::{cure, print};
use crate::cli::{FailOn, Output, Scan};
use crate::printer::Printer;
use crate::status::{Failure, Status};

pub(super) fn run(args: &Scan, printer: &Printer) -> Result<Status, Failure> {
    let (manifests, loaded) = cure::gather(&args.inputs, printer, cure::MOST_BYTES)?;
    if loaded.seen.is_empty() {
        return Err(Failure::usage("there is no object in what -f names: nothing to scan"));
    }
    let cluster = &loaded.cluster;
    let engine = Engine::new(cluster)?;
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
    let met = engine.scan(&targets)?;
    if met.is_empty() {
        printer.note(
            "no flow was looked at: that needs a Service or an Ingress with an address, \
             and a pod or a workload that could call it",
        );
    }
    let mut findings = diagnose(&engine, &met)?;
    if let Some(namespace) = &args.namespace {
        let elsewhere = |one: &uturn_model::Name| one.as_str() != namespace;
        findings.retain(|one| !one.subject.namespace.as_ref().is_some_and(elsewhere));
    }
    cure::name_cures(&manifests, &engine, &mut findings);
    let evidence = match args.output {
        Output::Text => Vec::new(),
        Output::Wide | Output::Json | Output::Yaml => {
            findings.iter().map(|one| one.evidence(&engine)).collect::<Result<_, _>>()?
        }
    };
    let fine = met.iter().filter(|one| one.verdicts.iter().all(Verdict::is_fine));
    let report = ScanReport {
        findings,
        evidence,
        flows: met.iter().map(Met::flows).sum(),
        fine: fine.map(Met::flows).sum(),
        supposed: engine.supposed().to_vec(),
        skipped: cluster.skipped.clone(),
        seen: loaded.seen.clone(),
    };
    print(printer, args.output, |style| scan::text(&report, style), || json::scan(&report));
    let bad_enough = |severity| match args.fail_on {
        FailOn::Info => true,
        FailOn::Warning => severity >= Severity::Warning,
        FailOn::Error => severity >= Severity::Error,
        FailOn::Never => false,
    };
    let found = report.findings.iter().any(|one| bad_enough(one.severity));
    Ok(if found { Status::Found } else { Status::Clean })
}
