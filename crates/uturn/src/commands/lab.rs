//! `uturn lab`: scenarios on a real kernel.

use std::env;
use std::time::Instant;

use serde_json::json;
use uturn_lab::agree::{Agreement, agrees};
use uturn_lab::{LabError, MeasuredFlow, Plan, Unavailable};
use uturn_model::{Flow, Mechanism, Outcome, Verdict};
use uturn_path::Engine;
use uturn_report::lab::{CaseReport, FlowReport, Predicted};
use uturn_report::{lab, table, words};
use uturn_snapshot::scenario::{Case, ExpectedFlow, Scenario};

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
    }
}

fn list(args: &LabList, printer: &Printer) -> Result<Status, Failure> {
    sweep(printer)?;
    let scenarios = scenarios::load(&args.files, &[])?;
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
    let mut scenarios = scenarios::load(&args.files, &args.names)?;
    for scenario in &mut scenarios {
        scenario.cases.retain(|case| args.nodes.is_empty() || args.nodes.contains(&case.nodes));
    }
    if scenarios.iter().all(|one| one.cases.is_empty()) {
        return Err(Failure::usage("no case has that many nodes"));
    }
    sweep(printer)?;
    uturn_lab::available().map_err(|why| Failure::not_here(why.to_string()))?;
    let mut reports = Vec::new();
    for scenario in &scenarios {
        for case in &scenario.cases {
            let began = Instant::now();
            printer.progress(&format!("{} ({}) …", scenario.name, case.label));
            let ran = one_case(args, case, predicts, printer)?;
            let (flows, not_run) = match ran {
                Ran::Measured(flows) => (flows, None),
                Ran::Not(why) => (Vec::new(), Some(why)),
            };
            reports.push(CaseReport {
                scenario: scenario.name.to_string(),
                case: case.label.clone(),
                flows,
                seconds: began.elapsed().as_secs_f64(),
                not_run,
            });
        }
    }
    printer.progress_done();
    print(printer, args.output, |style| lab::text(&reports, style), || lab::json(&reports));
    if !reports.iter().all(CaseReport::agrees) {
        return Ok(Status::Found);
    }
    // What was asked for and could not be run is no agreement.
    let all_ran = reports.iter().all(|one| one.not_run.is_none());
    Ok(if all_ran { Status::Clean } else { Status::NotHere })
}

/// What became of a case.
enum Ran {
    Measured(Vec<FlowReport>),
    /// This lab cannot build it.
    Not(String),
}

fn one_case(args: &LabRun, case: &Case, predicts: bool, printer: &Printer) -> Result<Ran, Failure> {
    let engine = Engine::new(&case.cluster)?;
    let flows: Vec<Flow> = case.flows.iter().map(|one| one.flow.clone()).collect();
    let program = env::current_exe()
        .map_err(|why| Failure::not_here(format!("cannot tell where uturn itself is: {why}")))?;
    let plan = Plan {
        cluster: &case.cluster,
        load_balancers: engine.balancers(),
        flows: &flows,
        connects: args.connects as usize,
        program,
    };
    let measured = match uturn_lab::measure(&plan, &mut |what| printer.detail(what)) {
        Ok(measured) => measured,
        Err(LabError::Plan(why)) => return Ok(Ran::Not(why)),
        Err(why) => return Err(broken(&why)),
    };
    let judged = case
        .flows
        .iter()
        .zip(measured)
        .map(|(expected, measured)| judge(&engine, expected, measured, predicts));
    judged.collect::<Result<_, _>>().map(Ran::Measured)
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
        Err(why) => Err(broken(&why)),
    }
}

fn broken(why: &LabError) -> Failure {
    Failure::not_here(why.to_string())
}
