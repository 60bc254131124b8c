//! `uturn cure`: exact edits, tried on a copy of the cluster.

use uturn_diagnose::cure::{self, Case, Twin};
use uturn_diagnose::{Code, Finding, diagnose};
use uturn_model::pod::DnsPolicy;
use uturn_model::{Client, Cluster, Flow, Kind, NamespacedName};
use uturn_path::Engine;
use uturn_report::cure as report;
use uturn_report::cure::CureReport;
use uturn_snapshot::{Fault, Loaded, Manifests};

use super::print;
use crate::cli::{Cure, Inputs, Output};
use crate::input;
use crate::printer::Printer;
use crate::status::{Failure, Status};

pub(super) fn run(args: &Cure, printer: &Printer) -> Result<Status, Failure> {
    let (manifests, loaded) = gather(&args.inputs, printer)?;
    let engine = Engine::new(&loaded.cluster)?;
    let twin = Twin::new(&manifests, &engine);
    let cases = match (&args.code, &args.object, &args.from, &args.to) {
        (Some(code), Some(object), _, _) => found(&manifests, &engine, code, object)?,
        (_, _, Some(from), Some(to)) => {
            let flow = Flow { from: from.clone(), to: to.clone(), protocol: args.proto };
            vec![Case::flow(&manifests, &engine, flow)?]
        }
        _ => return Err(Failure::usage("name CODE and NAMESPACE/NAME, or --from and --to")),
    };
    let mut reports: Vec<CureReport> = cases.iter().map(|case| report_of(&twin, case)).collect();
    if let Some(name) = &args.cure {
        for one in &mut reports {
            one.cures.retain(|cure| cure.name == name);
        }
        if reports.iter().all(|one| one.cures.is_empty()) {
            return Err(Failure::usage(format!("no cure {name:?} is known for this")));
        }
    }
    match args.output {
        Output::Yaml => yaml(&reports, printer),
        output => {
            print(printer, output, |style| report::text(&reports, style), || report::json(&reports))
        }
    }
    let is_cured =
        |one: &CureReport| one.now.is_fine() || one.cures.iter().any(cure::Cure::is_offered);
    Ok(if reports.iter().all(is_cured) { Status::Clean } else { Status::Found })
}

/// The texts that the flags name, kept to be edited, and the cluster that they are.
pub(super) fn gather(inputs: &Inputs, printer: &Printer) -> Result<(Manifests, Loaded), Failure> {
    if inputs.files.is_empty() && inputs.bundles.is_empty() {
        // Whatever else there is says so, or why there is none.
        let loaded = input::load(inputs, printer)?;
        return Ok((Manifests::default(), loaded));
    }
    let faulty =
        |faults: Vec<Fault>| Failure::input(faults.iter().map(ToString::to_string).collect());
    let (manifests, faults) = Manifests::gather(&inputs.files, &inputs.bundles);
    let loaded =
        manifests.load().map_err(|more| faulty(faults.iter().cloned().chain(more).collect()))?;
    if !faults.is_empty() {
        return Err(faulty(faults));
    }
    let alone = loaded.seen.keys().all(|kind| &**kind == "Scenario");
    let manifests = match loaded.scenarios.as_slice() {
        [only] if alone => match only.cases.iter().max_by_key(|case| case.nodes) {
            Some(case) => manifests.with_case(&only.name, &case.label),
            None => manifests,
        },
        _ => manifests,
    };
    Ok((manifests, loaded))
}

/// The findings of that code about that object, each as a case.
fn found<'a>(
    manifests: &'a Manifests,
    engine: &'a Engine<'a>,
    code: &str,
    object: &str,
) -> Result<Vec<Case<'a>>, Failure> {
    let code: Code = code.parse().map_err(|_| {
        Failure::usage(format!("{code:?} is no code of a finding: uturn explain lists all"))
    })?;
    let name: NamespacedName =
        object.parse().map_err(|_| Failure::usage(format!("{object:?} is no NAMESPACE/NAME")))?;
    let findings = diagnose(engine, &engine.scan(&engine.targets())?)?;
    let is_it = |one: &&Finding| {
        let same = one.subject.namespace.as_ref() == Some(&name.namespace)
            && *one.subject.name == *name.name.as_str();
        one.code == code && same
    };
    let cases: Vec<Case<'a>> = findings
        .iter()
        .filter(is_it)
        .map(|one| Case::flow(manifests, engine, flow_of(engine, one)))
        .collect::<Result<_, _>>()?;
    if cases.is_empty() {
        return Err(Failure::usage(format!(
            "there is no finding {code} about {name} here: uturn scan lists what there is"
        )));
    }
    Ok(cases)
}

/// A flow that shows a finding: from somebody at home where its object is, who asks the
/// cluster's DNS, if there is one.
pub(super) fn flow_of(engine: &Engine<'_>, finding: &Finding) -> Flow {
    let pods = &engine.cluster().pods;
    let asks_cluster = |name: &&NamespacedName| {
        pods.get(*name).is_some_and(|pod| {
            matches!(
                pod.spec.dns_policy,
                DnsPolicy::ClusterFirst | DnsPolicy::ClusterFirstWithHostNet
            )
        })
    };
    let at_home =
        |name: &&NamespacedName| Some(&name.namespace) == finding.subject.namespace.as_ref();
    let clients = || finding.clients.iter().filter(asks_cluster);
    let flow = finding.example.flow();
    match clients().filter(at_home).min().or_else(|| clients().min()) {
        Some(pod) => Flow { from: Client::Pod(pod.clone()), ..flow },
        None => flow,
    }
}

/// Texts longer than this are not edited, read and walked again for every finding.
const MOST_BYTES: usize = 1 << 20;
/// Nor are they for more findings than so many.
const MOST_FINDINGS: usize = 40;

/// Gives findings the cures that work, where that does not take long; else they keep the one
/// that a walk confirmed.
pub(super) fn name_cures<'a>(
    manifests: &'a Manifests,
    engine: &'a Engine<'a>,
    findings: &mut [Finding],
) {
    if manifests.bytes() > MOST_BYTES || findings.len() > MOST_FINDINGS {
        return;
    }
    let twin = Twin::new(manifests, engine);
    for finding in findings {
        let flow = flow_of(engine, finding);
        if let Ok(case) = Case::flow(manifests, engine, flow) {
            finding.cures = titles(&cure::cures(&twin, &case));
        }
    }
}

/// The same for a flow.
pub(super) fn of_flow(
    manifests: &Manifests,
    cluster: &Cluster,
    flow: &Flow,
) -> Result<Vec<String>, Failure> {
    if manifests.bytes() > MOST_BYTES {
        return Ok(Vec::new());
    }
    let engine = Engine::new(cluster)?;
    let case = Case::flow(manifests, &engine, flow.clone())?;
    Ok(titles(&cure::cures(&Twin::new(manifests, &engine), &case)))
}

/// What the cures that work are called.
pub(super) fn titles(cures: &[cure::Cure]) -> Vec<String> {
    cures.iter().filter(|one| one.is_offered()).map(|one| one.title.clone()).collect()
}

fn report_of(twin: &Twin<'_>, case: &Case<'_>) -> CureReport {
    let kind = case.owner_kind().unwrap_or(Kind::Service);
    let mut codes: Vec<Code> = case.mechanisms.iter().map(|one| Code::of(*one, kind)).collect();
    codes.sort_unstable();
    codes.dedup();
    let is_fine = case.before.is_fine();
    CureReport {
        codes: codes.iter().map(ToString::to_string).collect(),
        now: case.before.clone(),
        cures: if is_fine { Vec::new() } else { cure::cures(twin, case) },
    }
}

/// The objects of the first cure that changes some, to be applied; what else there is to do
/// goes to stderr.
fn yaml(reports: &[CureReport], printer: &Printer) {
    let offered = reports.iter().flat_map(|one| &one.cures).filter(|one| one.is_offered());
    let to_apply =
        |one: &&cure::Cure| one.objects.iter().any(|(object, _)| object.kind != Kind::Facts);
    let mut offered = offered.peekable();
    let Some(first) = offered.clone().find(to_apply).or_else(|| offered.peek().copied()) else {
        printer.note("no cure works here: nothing to apply");
        return;
    };
    printer.note(&format!("{}: {}", first.name, first.title));
    for command in &first.commands {
        printer.note(&format!("and do: {command}"));
    }
    let objects = first.objects.iter().filter(|(object, _)| object.kind != Kind::Facts);
    printer.result(&report::manifests(objects));
}
