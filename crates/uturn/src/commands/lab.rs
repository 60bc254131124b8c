//! `uturn lab`: scenarios on a real kernel.

mod how;
mod machine;
mod order;
mod place;

use std::env;
use std::io::ErrorKind;
use std::time::Instant;

use serde_json::json;
use uturn_lab::agree::{Agreement, agrees};
use uturn_lab::{LabError, MeasuredFlow, Plan, Unavailable};
use uturn_model::{Flow, Mechanism, Outcome, Verdict};
use uturn_path::Engine;
use uturn_report::lab::{CaseReport, FlowReport, Predicted};
use uturn_report::{lab, table, words};
use uturn_snapshot::scenario::{Case, ExpectedFlow, Scenario};

use how::How;
use machine::Named;
use place::{Native, Places};

use super::print;
use crate::cli::{Lab, LabList, LabRun};
use crate::printer::Printer;
use crate::scenarios;
use crate::status::{Failure, Status};

pub(super) fn run(args: &Lab, printer: &Printer) -> Result<Status, Failure> {
    match args {
        Lab::List(args) => list(args, printer),
        Lab::Run(args) => measure(args, false, printer),
        Lab::Verify(args) => measure(args, true, printer),
        Lab::MeasureInMachine => machine::serve(printer),
    }
}

fn list(args: &LabList, printer: &Printer) -> Result<Status, Failure> {
    sweep(printer)?;
    let scenarios = scenarios::read(scenarios::own(&args.files)?)?;
    let labels =
        |one: &Scenario| one.cases.iter().map(|case| case.label.clone()).collect::<Vec<_>>();
    print(
        printer,
        args.output,
        |style| {
            let rows: Vec<Vec<String>> = scenarios
                .iter()
                .map(|one| {
                    vec![one.name.to_string(), labels(one).join("; "), one.shows.to_string()]
                })
                .collect();
            table::render(&["SCENARIO", "CASES", "SHOWS"], &rows, style)
        },
        || {
            let all: Vec<_> = scenarios
                .iter()
                .map(|one| {
                    json!({
                        "name": &*one.name,
                        "cases": labels(one),
                        "shows": &*one.shows,
                        "seed": &*one.seed,
                        "file": one.origin.to_string(),
                    })
                })
                .collect();
            json!({ "scenarios": all })
        },
    );
    Ok(Status::Clean)
}

fn measure(args: &LabRun, predicts: bool, printer: &Printer) -> Result<Status, Failure> {
    let how = How::of(args)?;
    let own = scenarios::own(&args.files)?;
    let mut scenarios = scenarios::pick(scenarios::read(own.clone())?, &args.names)?;
    for scenario in &mut scenarios {
        scenario.cases.retain(|case| args.nodes.is_empty() || args.nodes.contains(&case.nodes));
    }
    let cases: Vec<Named<'_>> = scenarios
        .iter()
        .flat_map(|one| one.cases.iter().map(|case| Named { scenario: &one.name, case }))
        .collect();
    if cases.is_empty() {
        return Err(Failure::usage("no case has that many nodes"));
    }
    sweep(printer)?;
    let mut places = Places::find(args.vm)?;
    let mut reports: Vec<Option<CaseReport>> = cases.iter().map(|_| None).collect();
    let mut for_machine = Vec::new();
    for (at, one) in cases.iter().enumerate() {
        let began = Instant::now();
        let measured = match places.native(one.case) {
            Native::No => None,
            Native::Yes => {
                printer.progress(&format!("{} ({}) …", one.scenario, one.case.label));
                match measure_here(one.case, &how, printer)? {
                    // Nothing is built then.
                    Err(LabError::Unavailable(Unavailable::Part(part))) => {
                        places.lacks(part);
                        None
                    }
                    Err(LabError::Plan(why)) => Some(Err(why)),
                    Err(why) => return Err(broken(&why)),
                    Ok(flows) => Some(Ok(flows)),
                }
            }
        };
        match measured {
            None => match places.machine(one.case) {
                Ok(()) => for_machine.push(at),
                Err(why) => reports[at] = Some(one.not_run(why)),
            },
            Some(measured) => {
                let seconds = began.elapsed().as_secs_f64();
                let place = place::here();
                reports[at] = Some(report(one, measured, place, seconds, predicts)?);
            }
        }
    }
    if let Some(found) = places.found().filter(|_| !for_machine.is_empty()) {
        let there: Vec<Named<'_>> = for_machine.iter().map(|at| cases[*at]).collect();
        let first = there.first().map_or_else(String::new, Named::to_string);
        printer.progress(&format!("{first} in a small machine …"));
        let mut judged = Ok(());
        machine::measure(found, &there, &own, &how, printer, &mut |at, flows, seconds| {
            let made = report(&there[at], flows, place::in_machine(found), seconds, predicts);
            match made {
                Ok(made) => reports[for_machine[at]] = Some(made),
                Err(why) => judged = Err(why),
            }
            if let Some(next) = there.get(at + 1) {
                printer.progress(&format!("{next} in a small machine …"));
            }
        })?;
        judged?;
    }
    let reports: Vec<CaseReport> = reports.into_iter().flatten().collect();
    printer.progress_done();
    print(printer, args.output, |style| lab::text(&reports, style), || lab::json(&reports));
    if !reports.iter().all(CaseReport::agrees) {
        return Ok(Status::Found);
    }
    // What was asked for and could not be run is no agreement.
    let ran = |one: &(CaseReport, &Named<'_>)| one.0.not_run.is_none();
    let all: Vec<_> = reports.into_iter().zip(&cases).collect();
    // Who wants the machine wants what a machine can run.
    let all_ran = all.iter().all(|one| ran(one) || args.vm && !place::in_any_machine(one.1.case));
    Ok(if all_ran && all.iter().any(ran) { Status::Clean } else { Status::NotHere })
}

/// Measures a case on this very kernel.
fn measure_here(
    case: &Case,
    how: &How,
    printer: &Printer,
) -> Result<Result<Vec<MeasuredFlow>, LabError>, Failure> {
    let mut rules = case.cluster.captures.clone();
    rules.extend(how.captures()?);
    let engine = Engine::new(&case.cluster)?;
    let flows: Vec<Flow> = case.flows.iter().map(|one| one.flow.clone()).collect();
    let program = env::current_exe()
        .map_err(|why| Failure::not_here(format!("cannot tell where uturn itself is: {why}")))?;
    let plan = Plan {
        cluster: &case.cluster,
        load_balancers: engine.balancers(),
        flows: &flows,
        connects: how.connects as usize,
        program,
        rules: &rules,
        coredns: how.coredns.clone(),
    };
    Ok(uturn_lab::measure(&plan, &mut |what| printer.detail(what)))
}

/// What became of a case; without flows, why it could not be built.
fn report(
    one: &Named<'_>,
    measured: Result<Vec<MeasuredFlow>, String>,
    place: String,
    seconds: f64,
    predicts: bool,
) -> Result<CaseReport, Failure> {
    let measured = match measured {
        Ok(measured) => measured,
        Err(why) => return Ok(one.not_run(why)),
    };
    let engine = Engine::new(&one.case.cluster)?;
    let judged = one
        .case
        .flows
        .iter()
        .zip(measured)
        .map(|(expected, measured)| judge(&engine, expected, measured, predicts));
    Ok(CaseReport {
        scenario: one.scenario.to_owned(),
        case: one.case.label.clone(),
        flows: judged.collect::<Result<_, _>>()?,
        seconds,
        place: Some(place),
        not_run: None,
    })
}

/// Holds what was measured against what the scenario expects and the engine predicts.
fn judge(
    engine: &Engine<'_>,
    expected: &ExpectedFlow,
    measured: MeasuredFlow,
    predicts: bool,
) -> Result<FlowReport, Failure> {
    let mut verdicts = engine.verdicts(&expected.flow)?;
    let verdict = verdicts.pop().filter(|_| verdicts.is_empty()).ok_or_else(|| {
        Failure::usage(format!("{} depends on what the scenario leaves open", expected.flow.to))
    })?;
    let exact = !verdict.is_by_chance();
    let mut differences = Vec::new();
    // A scenario may leave open what must come out.
    let states = !expected.outcomes.is_empty();
    if states && let Agreement::Differs(all) = agrees(&expected.outcomes, &measured.counts, exact) {
        differences.extend(all.iter().map(|one| format!("measured against expected: {one}")));
    }
    if predicts {
        differences.extend(unlike(expected, &verdict));
        if let Agreement::Differs(all) = agrees(&verdict.outcomes, &measured.counts, exact) {
            differences.extend(all.iter().map(|one| format!("measured against predicted: {one}")));
        }
    }
    Ok(FlowReport {
        flow: measured.flow,
        expected: expected.outcomes.clone(),
        predicted: predicts
            .then_some(Predicted { outcomes: verdict.outcomes, mechanisms: verdict.mechanisms }),
        measured: measured.counts,
        differences,
    })
}

/// Where the prediction is not what the scenario expects.
fn unlike(expected: &ExpectedFlow, verdict: &Verdict) -> Vec<String> {
    let mut differences = Vec::new();
    let share_in = |list: &[(Outcome, f64)], outcome: Outcome| {
        list.iter().find(|(one, _)| *one == outcome).map_or(0.0, |(_, share)| *share)
    };
    if expected.outcomes.is_empty() {
        return differences;
    }
    if expected.outcomes.is_empty() {
        return differences;
    }
    let outcomes = expected.outcomes.iter().chain(&verdict.outcomes).map(|(outcome, _)| *outcome);
    let mut seen: Vec<Outcome> = Vec::new();
    for outcome in outcomes {
        if seen.contains(&outcome) {
            continue;
        }
        seen.push(outcome);
        let (wanted, said) =
            (share_in(&expected.outcomes, outcome), share_in(&verdict.outcomes, outcome));
        if (wanted - said).abs() > 1e-6 {
            differences
                .push(format!("{outcome}: a share of {wanted:.4} expected, {said:.4} predicted"));
        }
    }
    if let Some(wanted) = &expected.mechanisms {
        let mut wanted = wanted.clone();
        wanted.sort_unstable();
        if wanted != verdict.mechanisms {
            let names = |list: &[Mechanism]| {
                let names: Vec<&str> = list.iter().map(|one| one.as_str()).collect();
                if names.is_empty() { "none".to_owned() } else { names.join(", ") }
            };
            differences.push(format!(
                "mechanism: {} expected, {} predicted",
                names(&wanted),
                names(&verdict.mechanisms)
            ));
        }
    }
    differences
}

/// Takes down what runs that died left behind.
fn sweep(printer: &Printer) -> Result<(), Failure> {
    match uturn_lab::sweep() {
        Ok(removed) => {
            for one in &removed {
                printer.detail(&format!("taken down: {one}"));
            }
            if !removed.is_empty() {
                let what = words::count(removed.len(), "thing");
                printer.note(&format!(
                    "took down what runs that died left behind: {what} (-v names them)"
                ));
            }
            Ok(())
        }
        // Who cannot run a lab has left none behind.
        Err(LabError::Unavailable(Unavailable::NotLinux | Unavailable::NotRoot)) => Ok(()),
        Err(LabError::System { source, .. }) if source.kind() == ErrorKind::PermissionDenied => {
            Ok(())
        }
        Err(why) => Err(broken(&why)),
    }
}

fn broken(why: &LabError) -> Failure {
    Failure::not_here(why.to_string())
}
