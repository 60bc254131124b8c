//! `uturn lab`: scenarios on a real kernel.

#[cfg(feature = "live")]
mod cluster;
mod cure;
mod explanation;
mod fuzz;
mod health;
mod kernels;
mod machine;
mod options;
mod parallel;
mod protocol;
mod random_scenario;
mod watch;

use std::env;
use std::io::ErrorKind;

use uturn_lab::agree::{Agreement, agrees, outcomes_within, within};
use uturn_lab::{LabError, MeasuredFlow, Plan, Unavailable};
use uturn_model::{Flow, Mechanism, Outcome, Share, Verdict};
use uturn_path::Engine;
use uturn_report::lab::{CaseReport, FlowReport, Predicted};
use uturn_report::schema::lab::{Lab as LabOutput, List, Listed};
use uturn_report::{lab, table, words};
use uturn_snapshot::Source;
use uturn_snapshot::scenario::{Case, ExpectedFlow, Scenario};

use kernels::{Kernels, Native};
use machine::Named;
use options::MeasureOptions;
use parallel::Measured;

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
        Lab::Fuzz(args) => fuzz::run(args, printer),
        #[cfg(feature = "live")]
        Lab::Up(args) => cluster::up(args, printer),
        #[cfg(feature = "live")]
        Lab::Exec(args) => cluster::exec(args),
        #[cfg(feature = "live")]
        Lab::Down => cluster::down(printer),
        #[cfg(feature = "live")]
        Lab::KeepCluster => cluster::keep(),
        #[cfg(not(feature = "live"))]
        Lab::Up(_) | Lab::Exec(_) | Lab::Down | Lab::KeepCluster => Err(super::left_out("live")),
        Lab::MeasureInMachine => machine::serve(printer),
    }
}

fn list(args: &LabList, printer: &Printer) -> Result<Status, Failure> {
    let scenarios = scenarios::read(scenarios::own(&args.files)?)?;
    print(
        printer,
        args.output,
        |style| {
            let rows: Vec<Vec<String>> = scenarios
                .iter()
                .map(|scenario| {
                    let nodes = scenario.cases.iter().map(|case| case.nodes.to_string());
                    let modes = scenario.cases.iter().map(|case| case.cluster.proxy.mode.value);
                    vec![
                        scenario.name.to_string(),
                        distinct(nodes).join(" "),
                        distinct(modes.map(|mode| mode.to_string())).join(" "),
                        scenario.shows.to_string(),
                    ]
                })
                .collect();
            table::render(&["SCENARIO", "NODES", "MODES", "SHOWS"], &rows, style)
        },
        || List { scenarios: scenarios.iter().map(listed).collect() },
    );
    Ok(Status::Clean)
}

fn listed(scenario: &Scenario) -> Listed<'_> {
    Listed {
        name: &scenario.name,
        cases: scenario.cases.iter().map(|case| &*case.label).collect(),
        shows: &scenario.shows,
        seed: &scenario.seed,
        file: scenario.origin.to_string(),
    }
}

/// Removes duplicates and keeps the order.
fn distinct(all: impl Iterator<Item = String>) -> Vec<String> {
    let mut seen: Vec<String> = Vec::new();
    for word in all {
        if !seen.contains(&word) {
            seen.push(word);
        }
    }
    seen
}

fn measure(args: &LabRun, predicts: bool, printer: &Printer) -> Result<Status, Failure> {
    let options = MeasureOptions::of(args)?;
    let captures = options.captures()?;
    let (own, names) = cure::with_cured(scenarios::own(&args.files)?, args)?;
    let mut scenarios = scenarios::pick(scenarios::read(own.clone())?, &names)?;
    for scenario in &mut scenarios {
        scenario.cases.retain(|case| {
            let mode = case.cluster.proxy.mode.value;
            (args.nodes.is_empty() || args.nodes.contains(&case.nodes))
                && (args.modes.is_empty() || args.modes.contains(&mode))
        });
        // The engine walks the captured rules too.
        for case in &mut scenario.cases {
            let cluster = &mut case.cluster;
            let there = captures.iter().filter(|(name, _)| cluster.nodes.contains_key(*name));
            cluster.captures.extend(there.map(|(name, capture)| (name.clone(), capture.clone())));
        }
    }
    let cases: Vec<Named<'_>> = scenarios
        .iter()
        .flat_map(|scenario| {
            scenario.cases.iter().map(|case| Named { scenario: &scenario.name, case })
        })
        .collect();
    if cases.is_empty() {
        return Err(Failure::usage("no case has that many nodes and that mode"));
    }
    sweep(printer)?;
    if watch::is_wanted(args) {
        return watch::run(args, predicts, &cases, &own, &options, printer);
    }
    let size = args.jobs.map_or_else(parallel::usual_size, |jobs| jobs as usize);
    let kernels = Kernels::find(args.vm)?;
    let mut rounds =
        Rounds { cases: &cases, own: &own, options: &options, predicts, printer, kernels };
    let all: Vec<usize> = (0..cases.len()).collect();
    let mut reports = rounds.run(&all, size)?;
    // Delays on a busy machine do not recur if each case is measured alone.
    let again: Vec<usize> = all.into_iter().filter(|at| !reports[*at].agrees()).collect();
    for (at, second) in again.iter().zip(rounds.run(&again, 1)?) {
        let first = std::mem::replace(&mut reports[*at], second);
        reports[*at].first_try = first.differences();
    }
    printer.progress_done();
    print(
        printer,
        args.output,
        |style| lab::text(&reports, style),
        || LabOutput::new(&reports, Vec::new()),
    );
    if !reports.iter().all(CaseReport::agrees) {
        return Ok(Status::Found);
    }
    // A requested case that could not run is no agreement.
    let ran = |ran_case: &(CaseReport, &Named<'_>)| ran_case.0.not_run.is_none();
    let all: Vec<_> = reports.into_iter().zip(&cases).collect();
    // With --vm, only cases that the machine can run count.
    let all_ran = all
        .iter()
        .all(|ran_case| ran(ran_case) || args.vm && !kernels::in_any_machine(ran_case.1.case));
    Ok(if all_ran && all.iter().any(ran) { Status::Clean } else { Status::NotHere })
}

/// Cases that are measured, here and in the machine, and judged.
struct Rounds<'a> {
    cases: &'a [Named<'a>],
    own: &'a [Source],
    options: &'a MeasureOptions,
    predicts: bool,
    printer: &'a Printer,
    kernels: Kernels,
}

impl Rounds<'_> {
    /// Measures some of the cases, `size` at a time on this kernel. Returns a report for each.
    fn run(&mut self, which: &[usize], size: usize) -> Result<Vec<CaseReport>, Failure> {
        let cases: Vec<Named<'_>> = which.iter().map(|at| self.cases[*at]).collect();
        let mut reports: Vec<Option<CaseReport>> = cases.iter().map(|_| None).collect();
        let (here, mut elsewhere): (Vec<usize>, Vec<usize>) =
            (0..cases.len()).partition(|at| self.kernels.native(cases[*at].case) == Native::Yes);
        let native_cases: Vec<Named<'_>> = here.iter().map(|at| cases[*at]).collect();
        let mut failed = None;
        parallel::measure(
            &native_cases,
            self.options,
            size,
            self.printer,
            &mut |at, measured, seconds| {
                let (case, at) = (&native_cases[at], here[at]);
                let measured = match measured {
                    // Nothing is built then.
                    Ok(Err(LabError::Unavailable(Unavailable::Part(part)))) => {
                        self.kernels.lacks(part);
                        elsewhere.push(at);
                        return true;
                    }
                    Ok(Err(LabError::Plan(why))) => Ok(Err(why)),
                    Ok(Err(why)) => Err(broken(&why)),
                    Ok(Ok(flows)) => Ok(Ok(flows)),
                    Err(why) => Err(why),
                };
                let made = measured
                    .and_then(|found| report(case, found, kernels::here(), seconds, self.predicts));
                match made {
                    Ok(made) => reports[at] = Some(made),
                    Err(why) => drop(failed.get_or_insert(why)),
                }
                failed.is_none()
            },
        );
        if let Some(why) = failed {
            return Err(why);
        }
        elsewhere.sort_unstable();
        let mut for_machine = Vec::new();
        for at in elsewhere {
            match self.kernels.machine(cases[at].case) {
                Ok(()) => for_machine.push(at),
                Err(why) => reports[at] = Some(cases[at].not_run(why)),
            }
        }
        self.in_machine(&cases, &for_machine, &mut reports)?;
        Ok(reports.into_iter().flatten().collect())
    }

    fn in_machine(
        &self,
        cases: &[Named<'_>],
        which: &[usize],
        reports: &mut [Option<CaseReport>],
    ) -> Result<(), Failure> {
        let Some(found) = self.kernels.found().filter(|_| !which.is_empty()) else { return Ok(()) };
        let there: Vec<Named<'_>> = which.iter().map(|at| cases[*at]).collect();
        let show_progress = |at: usize| {
            if let Some(next) = there.get(at) {
                self.printer.progress(&format!("{next} in a small machine …"));
            }
        };
        show_progress(0);
        let mut judged = Ok(());
        machine::measure(
            found,
            &there,
            self.own,
            self.options,
            self.printer,
            &mut |at, watched, seconds| {
                let flows = watched.map(|watched| watched.flows);
                match report(&there[at], flows, kernels::in_machine(found), seconds, self.predicts)
                {
                    Ok(made) => reports[which[at]] = Some(made),
                    Err(why) => judged = Err(why),
                }
                show_progress(at + 1);
            },
        )?;
        judged
    }
}

/// Measures a case on this kernel.
fn measure_here(case: &Case, options: &MeasureOptions, progress: &mut dyn FnMut(&str)) -> Measured {
    with_plan(case, options, |plan| uturn_lab::measure(plan, progress))
}

/// Calls `work` with the plan of a case.
fn with_plan<T>(
    case: &Case,
    options: &MeasureOptions,
    work: impl FnOnce(&Plan<'_>) -> T,
) -> Result<T, Failure> {
    let mut rules = case.cluster.captures.clone();
    rules.extend(options.captures()?);
    let engine = Engine::new(&case.cluster)?;
    let flows: Vec<Flow> = case.flows.iter().map(|flow| flow.flow.clone()).collect();
    let program = env::current_exe()
        .map_err(|why| Failure::not_here(format!("cannot tell where uturn itself is: {why}")))?;
    let plan = Plan {
        cluster: &case.cluster,
        load_balancers: engine.balancers(),
        flows: &flows,
        connects: options.connects as usize,
        program,
        rules: &rules,
        coredns: options.coredns.clone(),
    };
    Ok(work(&plan))
}

/// The report of a case. Without flows, it says why the case could not be built.
fn report(
    named: &Named<'_>,
    measured: Result<Vec<MeasuredFlow>, String>,
    place: String,
    seconds: f64,
    predicts: bool,
) -> Result<CaseReport, Failure> {
    let measured = match measured {
        Ok(measured) => measured,
        Err(why) => return Ok(named.not_run(why)),
    };
    let engine = Engine::new(&named.case.cluster)?;
    let probes = named
        .case
        .probes
        .iter()
        .map(|expected| health::judge(&engine, expected, &measured, predicts))
        .collect::<Result<_, _>>()?;
    let judged = named
        .case
        .flows
        .iter()
        .zip(measured)
        .map(|(expected, measured)| judge(&engine, expected, measured, predicts));
    Ok(CaseReport {
        scenario: named.scenario.to_owned(),
        case: named.case.label.clone(),
        flows: judged.collect::<Result<_, _>>()?,
        probes,
        seconds,
        place: Some(place),
        first_try: Vec::new(),
        not_run: None,
    })
}

/// Compares measurements with what the scenario expects and the engine predicts.
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
    // A scenario may expect nothing.
    let states = !expected.outcomes.is_empty();
    let wanted = outcomes_within(&expected.outcomes, measured.limit);
    if states && let Agreement::Differs(all) = agrees(&wanted, &measured.counts, exact) {
        differences.extend(all.iter().map(|difference| {
            format!("measured against expected: {}", difference.describe("expected"))
        }));
    }
    if predicts {
        differences.extend(unlike(expected, &verdict));
        let seen = within(&verdict, measured.limit);
        if let Agreement::Differs(all) = agrees(&seen, &measured.counts, exact) {
            differences.extend(
                all.iter().map(|difference| format!("measured against predicted: {difference}")),
            );
        }
    }
    Ok(FlowReport {
        flow: measured.flow,
        expected: expected.outcomes.clone(),
        predicted: predicts.then_some(Predicted {
            outcomes: verdict.outcomes.clone(),
            mechanisms: verdict.mechanisms,
        }),
        measured: measured.counts,
        differences,
    })
}

/// The differences between prediction and expectation.
fn unlike(expected: &ExpectedFlow, verdict: &Verdict) -> Vec<String> {
    let mut differences = Vec::new();
    let share_in = |list: &[(Outcome, Share)], outcome: Outcome| {
        list.iter().find(|(known, _)| *known == outcome).map_or(Share::NONE, |(_, share)| *share)
    };
    if expected.outcomes.is_empty() {
        return differences;
    }
    let predicted = &verdict.outcomes;
    let outcomes = expected.outcomes.iter().chain(predicted).map(|(outcome, _)| *outcome);
    let mut seen: Vec<Outcome> = Vec::new();
    for outcome in outcomes {
        if seen.contains(&outcome) {
            continue;
        }
        seen.push(outcome);
        let (wanted, share) = (share_in(&expected.outcomes, outcome), share_in(predicted, outcome));
        if !wanted.is_about(share) {
            differences
                .push(format!("{outcome}: a share of {wanted:.4} expected, {share:.4} predicted"));
        }
    }
    if let Some(wanted) = &expected.mechanisms {
        let mut wanted = wanted.clone();
        wanted.sort_unstable();
        if wanted != verdict.mechanisms {
            let names = |list: &[Mechanism]| {
                let names: Vec<&str> = list.iter().map(|mechanism| mechanism.as_str()).collect();
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

/// Removes what dead runs left.
fn sweep(printer: &Printer) -> Result<(), Failure> {
    match uturn_lab::sweep() {
        Ok(removed) => {
            for thing in &removed {
                printer.detail(&format!("taken down: {thing}"));
            }
            if !removed.is_empty() {
                let what = words::count(removed.len(), "thing");
                printer.note(&format!(
                    "took down what runs that died left behind: {what} (-v names them)"
                ));
            }
            Ok(())
        }
        // Without a lab here there is nothing to remove.
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
