//! `uturn lab`: scenarios on a real kernel.

mod again;
mod cluster;
mod cure;
mod explanation;
mod fuzz;
mod health;
mod judge;
mod kernels;
mod list;
mod machine;
mod options;
mod parallel;
mod plan;
mod protocol;
mod random_scenario;
mod rounds;
mod watch;

use std::io::ErrorKind;

use uturn_cli::{Failure, Printer, Status, print};
use uturn_lab::{LabError, Unavailable};
use uturn_model::Cluster;
use uturn_path::{Engine, WalkError};
use uturn_report::lab::CaseReport;
use uturn_report::schema::lab::Lab as LabOutput;
use uturn_report::{lab, words};

use kernels::Kernels;
use machine::Named;
use options::MeasureOptions;
use rounds::Rounds;

use crate::cli::{Lab, LabRun};
use crate::scenarios;

pub(super) fn run(args: &Lab, printer: &Printer) -> Result<Status, Failure> {
    match args {
        Lab::List(args) => list::list(args, printer),
        Lab::Run(args) => measure(args, false, printer),
        Lab::Verify(args) => measure(args, true, printer),
        Lab::Fuzz(args) => fuzz::run(args, printer),
        Lab::Up(args) => cluster::up(args, printer),
        Lab::Exec(args) => cluster::exec(args),
        Lab::Down => cluster::down(printer),
        Lab::KeepCluster => cluster::keep(),
        Lab::MeasureInMachine => machine::serve(printer),
    }
}

/// Prepares a case's cluster for walking. Its load balancers are the lab's.
fn engine(cluster: &Cluster) -> Result<Engine<'_>, Vec<WalkError>> {
    Engine::new(cluster).map(Engine::with_known_hash)
}

fn measure(args: &LabRun, predicts: bool, printer: &Printer) -> Result<Status, Failure> {
    let options = MeasureOptions::of(args)?;
    let captures = options.captures()?;
    let own = scenarios::own(&args.files)?;
    let names = scenarios::wanted(&args.names, &own)?;
    let (own, names) = cure::with_cured(own, names, args)?;
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
    let mut rounds = Rounds {
        cases: &cases,
        own: &own,
        options: &options,
        paced: false,
        predicts,
        printer,
        kernels,
    };
    let all: Vec<usize> = (0..cases.len()).collect();
    let mut reports = rounds.run(&all, size)?;
    again::measure_again(&mut rounds, &mut reports)?;
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
    Ok(if all_ran && all.iter().any(ran) { Status::Clean } else { Status::Unavailable })
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
                    "removed what dead runs had left behind: {what} (-v names them)"
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
    Failure::unavailable(why.to_string())
}
