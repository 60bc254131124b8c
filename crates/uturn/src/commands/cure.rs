//! `uturn cure`: exact edits, tried on a copy of the cluster.

use std::cmp::Reverse;

use uturn_cli::{Failure, Printer, Status, print};
use uturn_diagnose::analysis::{Detail, Input, Options, case_of};
use uturn_diagnose::cases::together;
use uturn_diagnose::cure::{self, Case, TrialBase};
use uturn_diagnose::flow_codes::FlowCodes;
use uturn_diagnose::{Code, Finding, analyze, diagnose, doubts};
use uturn_model::{Flow, ObjectKind};
use uturn_path::{Engine, WalkError, usual_protocol, what_if};
use uturn_report::cure as report;
use uturn_report::cure::CureReport;
use uturn_report::schema::cure::Cures;
use uturn_report::schema::scan::Scan;
use uturn_report::{ScanReport, scan, words};
use uturn_scan::Scanner;
use uturn_snapshot::{Loaded, Manifests};

use super::suggest;
use super::trace::{endings, texts};
use crate::cli::{Cure, Output};
use crate::input;

pub(super) fn run(args: &Cure, printer: &Printer) -> Result<Status, Failure> {
    let namespace = args.of.namespace.as_deref();
    let object = args.object.as_ref().map(|object| match namespace {
        Some(namespace) if !object.contains('/') => format!("{namespace}/{object}"),
        _ => object.clone(),
    });
    let from = args.from.as_ref().map(|from| from.within(namespace)).transpose();
    let to = args.to.as_ref().map(|to| to.within(namespace)).transpose();
    let (from, to) = (from.map_err(Failure::usage)?, to.map_err(Failure::usage)?);
    let Input { manifests, loaded } = input::read(&args.cluster, namespace, printer, usize::MAX)?;
    if object.is_none() && from.is_none() && to.is_none() {
        return list(args, &manifests, loaded, printer);
    }
    let engine = Engine::new(&loaded.cluster)?;
    let base = TrialBase::new(&manifests, &engine);
    let mut reports: Vec<CureReport> = match (&args.code, &object, from, to) {
        (Some(code), Some(object), _, _) => {
            let cases = found(&base, (code, object))?;
            let mut all: Vec<CureReport> = Vec::new();
            for report in reports_of(&base, &cases) {
                // Several findings of an object may have one example.
                if !all.iter().any(|known| is_same(known, &report)) {
                    all.push(report);
                }
            }
            all
        }
        (_, _, Some(from), Some(to)) => {
            let protocol = args.proto.unwrap_or_else(|| usual_protocol(&loaded.cluster, &to));
            let flow = Flow { from, to, protocol };
            let report = of_flow(&base, &flow);
            vec![report.map_err(|why| suggest::with_suggestion(why, &loaded.cluster))?]
        }
        _ => return Err(Failure::usage("give CODE and NAMESPACE/NAME, or --from and --to")),
    };
    if let Some(name) = &args.cure {
        for report in &mut reports {
            report.cures.retain(|cure| cure.name == name);
        }
        if reports.iter().all(|report| report.cures.is_empty()) {
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
                || Cures::from(&*reports),
            );
        }
    }
    let offers = |report: &CureReport| report.cures.iter().any(cure::Cure::is_offered);
    let is_cured = |report: &CureReport| report.now.is_fine() || offers(report);
    let are_cured = reports.iter().all(is_cured);
    Ok(if are_cured { Status::Clean } else { Status::Found })
}

/// Returns the cures of a flow, and of what a scan warns of about what it calls, where walks of the
/// flow do not show it.
fn of_flow(base: &TrialBase<'_>, flow: &Flow) -> Result<CureReport, WalkError> {
    let (manifests, engine) = (base.manifests(), base.engine());
    let judged = doubts::cases_of_few(base.calls(), flow)?;
    let mut cures: Vec<cure::Cure> = Vec::new();
    match Case::flow(manifests, base.calls(), flow.clone()) {
        Ok(case) if !case.before.is_fine() => cures = cure::cures(base, &case),
        // What has no address cannot be walked.
        Err(why) if judged.doubts.is_empty() => return Err(why),
        Ok(_) | Err(_) => {}
    }
    for finding in &judged.doubts {
        let case = case_of(manifests, base.calls(), finding)?;
        for new in case.iter().flat_map(|case| cure::cures(base, case)) {
            let is_same = |known: &cure::Cure| {
                known.name == new.name && known.diffs == new.diffs && known.commands == new.commands
            };
            match cures.iter_mut().find(|known| is_same(known)) {
                Some(known) if known.is_offered() || !new.is_offered() => {}
                Some(known) => *known = new,
                None => cures.push(new),
            }
        }
    }
    cures.sort_by_key(|cure| !cure.is_offered());
    let codes = FlowCodes::new(engine, flow);
    let (verdicts, meanings) = endings(&codes, &judged);
    Ok(CureReport {
        codes: texts(&codes.of_cases(&judged)),
        now: cure::case_state(engine, flow, &judged.verdicts()),
        endings: verdicts.into_iter().zip(meanings).collect(),
        cures,
    })
}

/// Lists the findings that can be named: all of them, or those of the code.
fn list(
    args: &Cure,
    manifests: &Manifests,
    loaded: Loaded,
    printer: &Printer,
) -> Result<Status, Failure> {
    let code = args.code.as_deref().map(parse).transpose()?;
    let options = Options {
        namespace: args.of.namespace.as_deref(),
        is_exhaustive: false,
        known: None,
        detail: Detail::Evidence,
    };
    let analysis = analyze(manifests, &loaded.cluster, &options)?;
    let mut report = ScanReport::of(analysis, loaded);
    report.input = args.cluster.as_typed();
    report.keep(|finding| code.is_none_or(|code| finding.code == code));
    let text = |style| scan::list(&report, style);
    print(printer, args.output, text, || Scan::from(&report));
    Ok(if report.findings.is_empty() { Status::Clean } else { Status::Found })
}

fn parse(code: &str) -> Result<Code, Failure> {
    code.parse().map_err(|_| {
        Failure::usage(format!(
            "{code:?} is not the code of a finding: uturn explain lists all codes"
        ))
    })
}

/// Returns the findings of this code about this object, each as a case.
fn found<'a>(base: &TrialBase<'a>, (code, object): (&str, &str)) -> Result<Vec<Case<'a>>, Failure> {
    let code = parse(code)?;
    // `ingress/shop/front`, as the table of a scan shows it, or `shop/front`.
    let (word, full) = match object.split_once('/') {
        Some((word, full)) if full.contains('/') => (Some(word), full),
        _ => (None, object),
    };
    let (namespace, name) = match full.split_once('/') {
        Some((namespace, name)) => (Some(namespace), name),
        None => (None, full),
    };
    let is_it = |finding: &&Finding| {
        let subject = &finding.subject;
        let is_named = word.is_none_or(|word| ObjectKind::from_word(word) == Some(subject.kind))
            && *subject.name == *name
            && subject.namespace.as_ref().map(|name| name.as_str()) == namespace;
        finding.code == code && (is_named || subject.short() == *object)
    };
    // The finding may hold only if an unknown fact is other than assumed.
    let engine = base.engine();
    let scanner = base.calls().scanner();
    let scanned = scanner.scan(&scanner.targets())?;
    let mut readings = vec![diagnose(scanner, &scanned)?];
    base.keep_scan(scanned);
    for other in what_if::each_other(engine.cluster()) {
        let engine = Engine::new(&other)?;
        readings.push(findings_of(&Scanner::new(&engine).knowing(Some(base.known())))?);
    }
    let findings = together(engine.cluster(), readings).into_iter();
    let mut findings: Vec<Finding> = findings.map(|(_, finding)| finding).collect();
    findings.sort_by_key(|finding| Reverse(finding.severity));
    let mut found = findings.iter().filter(is_it).peekable();
    if found.peek().is_none() {
        let others = findings.iter().filter(|finding| finding.code == code);
        let mut others: Vec<String> = others.map(|finding| finding.subject.short()).collect();
        others.sort_unstable();
        others.dedup();
        let hint = if others.is_empty() {
            "uturn scan lists the findings".to_owned()
        } else {
            format!("it is about {}", words::some_of(&others))
        };
        return Err(Failure::usage(format!(
            "there is no finding {code} about {object} here: {hint}"
        )));
    }
    let cases =
        found.filter_map(|finding| case_of(base.manifests(), base.calls(), finding).transpose());
    let cases = cases.collect::<Result<Vec<_>, _>>()?;
    if cases.is_empty() {
        return Err(Failure::usage(format!(
            "{code} about {object} is not about a call that can be walked: uturn explain {code} says what to do"
        )));
    }
    Ok(cases)
}

fn findings_of(scanner: &Scanner<'_, '_>) -> Result<Vec<Finding>, Failure> {
    Ok(diagnose(scanner, &scanner.scan(&scanner.targets())?)?)
}

/// Returns whether two reports are of one case, and have the same cures.
fn is_same(report: &CureReport, other: &CureReport) -> bool {
    let titles = |report: &CureReport| -> Vec<String> {
        report.cures.iter().map(|cure| cure.title.clone()).collect()
    };
    report.now == other.now && titles(report) == titles(other)
}

fn reports_of(base: &TrialBase<'_>, cases: &[Case<'_>]) -> Vec<CureReport> {
    let failing: Vec<&Case<'_>> = cases.iter().filter(|case| !case.before.is_fine()).collect();
    let mut cures = cure::cures_of_each(base, &failing).into_iter();
    let of = |case: &Case<'_>| CureReport {
        codes: case.codes().iter().map(ToString::to_string).collect(),
        now: case.before.clone(),
        endings: Vec::new(),
        cures: if case.before.is_fine() { Vec::new() } else { cures.next().unwrap_or_default() },
    };
    cases.iter().map(of).collect()
}

/// The command that applies objects of a running cluster. `kubectl apply` alone would take all that
/// is there for the user's own, and remove it the next time.
const APPLY: &str = "kubectl apply --server-side --field-manager=uturn --force-conflicts -f -";

/// Prints the objects of the first cure that changes some, to be applied. The other steps go to
/// stderr.
fn yaml(reports: &[CureReport], printer: &Printer) {
    let offered = reports.iter().flat_map(|report| &report.cures).filter(|cure| cure.is_offered());
    let to_apply = |cure: &&cure::Cure| {
        cure.objects.iter().any(|(object, _)| object.kind != ObjectKind::Facts)
    };
    let mut offered = offered.peekable();
    let Some(first) = offered.clone().find(to_apply).or_else(|| offered.peek().copied()) else {
        let all = reports.iter().flat_map(|report| &report.cures);
        let untried: Vec<&str> = all.filter(|cure| cure.is_untried).map(|cure| cure.name).collect();
        printer.note(&match untried.as_slice() {
            [] => "no cure works here: nothing to apply".to_owned(),
            some => {
                let names = some.join(", ");
                format!("no cure that was tried works here: nothing to apply; not tried: {names}")
            }
        });
        return;
    };
    printer.note(&format!("{}: {}", first.name, first.title));
    let open = |condition: &&cure::Condition| condition.answer == cure::Answer::Unknown;
    for condition in first.conditions.iter().filter(open) {
        printer.note(&format!("make sure {}: {}", condition.what, condition.because));
    }
    for command in &first.commands {
        printer.note(&format!("and do: {command}"));
    }
    let objects = first.objects.iter().filter(|(object, _)| object.kind != ObjectKind::Facts);
    let (text, is_given) = report::manifests(objects);
    if is_given {
        printer.note(&format!(
            "apply it with {APPLY} (a server-side apply leaves the fields of controllers alone)"
        ));
    }
    printer.result(&text);
}
