//! `uturn cure`: exact edits, tried on a copy of the cluster.

use uturn_diagnose::cure::{self, Case, Twin};
use uturn_diagnose::{Alike, Code, CureTitle, Example, Finding, diagnose};
use uturn_model::pod::DnsPolicy;
use uturn_model::{Client, Cluster, Flow, Kind, NamespacedName, Verdict};
use uturn_path::{Engine, WalkError};
use uturn_report::cure as report;
use uturn_report::cure::CureReport;
use uturn_scan::Scanner;
use uturn_snapshot::{Fault, Loaded, Manifests};

use super::{near, print};
use crate::cli::{Cure, Inputs, Output};
use crate::input;
use crate::printer::Printer;
use crate::status::{Failure, Status};

pub(super) fn run(args: &Cure, printer: &Printer) -> Result<Status, Failure> {
    let (manifests, loaded) = gather(&args.inputs, printer, usize::MAX)?;
    let engine = Engine::new(&loaded.cluster)?;
    let twin = Twin::new(&manifests, &engine);
    let cases = match (&args.code, &args.object, &args.from, &args.to) {
        (Some(code), Some(object), _, _) => found(&manifests, &engine, code, object)?,
        (_, _, Some(from), Some(to)) => {
            let flow = Flow { from: from.clone(), to: to.clone(), protocol: args.proto };
            let case = Case::flow(&manifests, &engine, flow);
            vec![case.map_err(|why| near::told(why, &loaded.cluster))?]
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
            print(
                printer,
                output,
                |style| report::text(&reports, style),
                || report::json(&reports),
            );
        }
    }
    let is_cured =
        |one: &CureReport| one.now.is_fine() || one.cures.iter().any(cure::Cure::is_offered);
    Ok(if reports.iter().all(is_cured) { Status::Clean } else { Status::Found })
}

/// The texts that the flags name, kept to be edited unless they are longer than that, and the
/// cluster that they are.
pub(super) fn gather(
    inputs: &Inputs,
    printer: &Printer,
    most: usize,
) -> Result<(Manifests, Loaded), Failure> {
    if inputs.files.is_empty() && inputs.bundles.is_empty() {
        // Whatever else there is says so, or why there is none.
        let loaded = input::load(inputs, printer)?;
        return Ok((Manifests::default(), loaded));
    }
    let faulty =
        |faults: Vec<Fault>| Failure::input(faults.iter().map(ToString::to_string).collect());
    let (gathered, faults) = Manifests::gather(&inputs.files, &inputs.bundles);
    let gathered = gathered.complete_if(inputs.complete);
    let (manifests, loaded) = match gathered.bytes() > most {
        true => (Manifests::default(), gathered.into_loaded()),
        false => {
            let loaded = gathered.load();
            (gathered, loaded)
        }
    };
    let loaded = loaded.map_err(|more| faulty(faults.iter().cloned().chain(more).collect()))?;
    if !faults.is_empty() {
        return Err(faulty(faults));
    }
    let seen: Vec<String> =
        loaded.seen.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
    printer.detail(&format!("read {}", seen.join(", ")));
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
    let (namespace, name) = match object.split_once('/') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, object),
    };
    let scanner = Scanner::new(engine);
    let findings = diagnose(&scanner, &scanner.scan(&scanner.targets())?)?;
    let is_it = |one: &&Finding| {
        one.code == code
            && *one.subject.name == *name
            && one.subject.namespace.as_ref().map(|one| one.as_str()) == namespace
    };
    let mut found = findings.iter().filter(is_it).peekable();
    if found.peek().is_none() {
        return Err(Failure::usage(format!(
            "there is no finding {code} about {object} here: uturn scan lists what there is"
        )));
    }
    let cases = found.filter_map(|one| case_of(manifests, engine, one).transpose());
    let cases = cases.collect::<Result<Vec<_>, _>>()?;
    if cases.is_empty() {
        return Err(Failure::usage(format!(
            "{code} about {object} is no flow that fails: uturn explain {code} says what to do"
        )));
    }
    Ok(cases)
}

/// What a finding gives to cure.
fn case_of<'a>(
    manifests: &'a Manifests,
    engine: &'a Engine<'a>,
    finding: &Finding,
) -> Result<Option<Case<'a>>, WalkError> {
    if let Example::Probes(listener, protocol) = finding.example {
        return Case::probes(manifests, engine, listener, protocol).map(Some);
    }
    flow_of(engine, finding).map(|flow| Case::flow(manifests, engine, flow)).transpose()
}

/// A flow that shows a finding: from somebody at home where its object is, who asks the
/// cluster's DNS, if there is one.
pub(super) fn flow_of(engine: &Engine<'_>, finding: &Finding) -> Option<Flow> {
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
    let flow = finding.example.flow()?;
    if !matches!(finding.example, Example::Scanned(_)) {
        return Some(flow);
    }
    let at = |pod: &NamespacedName| Flow { from: Client::Pod(pod.clone()), ..flow.clone() };
    // A finding of many targets has clients that reach this one well.
    let fails = |pod: &&NamespacedName| {
        engine.verdicts(&at(pod)).is_ok_and(|all| !all.iter().all(Verdict::is_fine))
    };
    let mut all: Vec<&NamespacedName> = clients().collect();
    all.sort_by_key(|name| (!at_home(name), *name));
    Some(all.into_iter().take(MOST_TRIED).find(fails).map_or_else(|| flow.clone(), at))
}

/// So many clients are tried as an example.
const MOST_TRIED: usize = 20;

/// Texts longer than this are not edited, read and walked again for every finding.
pub(super) const MOST_BYTES: usize = 1 << 20;
/// Nor are they for more findings than so many.
const MOST_FINDINGS: usize = 40;

/// Gives the first of those that are alike the cures that work, where that does not take
/// long; else they keep the one that a walk confirmed. Of each of the first, every cure that
/// was tried, those that do not work here as well.
pub(super) fn name(
    twin: &Twin<'_>,
    findings: &mut [(usize, Finding)],
    alike: &[Alike],
) -> Vec<Vec<cure::Cure>> {
    let of = |(number, one): (usize, &Alike)| {
        let (reading, finding) = &mut findings[one.first];
        // A twin is of what is taken for true.
        let may = *reading == 0 && number < MOST_FINDINGS;
        let Some(mut cures) = may.then(|| tried(twin, finding)).flatten() else {
            return Vec::new();
        };
        finding.cures = titles(&cures);
        cures.iter_mut().for_each(|one| one.tried = None);
        cures
    };
    alike.iter().enumerate().map(of).collect()
}

fn tried(twin: &Twin<'_>, finding: &Finding) -> Option<Vec<cure::Cure>> {
    if !may_take(twin.manifests()) {
        return None;
    }
    let case = case_of(twin.manifests(), twin.engine(), finding).ok()??;
    let mut cures = cure::cures(twin, &case);
    // What keeps many from many is not cured by one of them.
    let is_targets = matches!(finding.subject.kind, Kind::Service | Kind::Ingress);
    cures.retain(|one| is_targets || !one.is_callers());
    Some(cures)
}

/// Whether there are texts to edit, and not too much of them.
fn may_take(manifests: &Manifests) -> bool {
    (1..=MOST_BYTES).contains(&manifests.bytes())
}

/// The same for a flow.
pub(super) fn of_flow(
    manifests: &Manifests,
    cluster: &Cluster,
    flow: &Flow,
) -> Result<Vec<CureTitle>, Failure> {
    if !may_take(manifests) {
        return Ok(Vec::new());
    }
    let engine = Engine::new(cluster)?;
    let case = Case::flow(manifests, &engine, flow.clone())?;
    Ok(titles(&cure::cures(&Twin::new(manifests, &engine), &case)))
}

/// What the cures that work are called.
pub(super) fn titles(cures: &[cure::Cure]) -> Vec<CureTitle> {
    let offered = cures.iter().filter(|cure| cure.is_offered());
    offered.map(|cure| CureTitle { name: cure.name, text: cure.title.clone() }).collect()
}

fn report_of(twin: &Twin<'_>, case: &Case<'_>) -> CureReport {
    let is_fine = case.before.is_fine();
    CureReport {
        codes: case.codes().iter().map(ToString::to_string).collect(),
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
