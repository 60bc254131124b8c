//! `uturn lab fuzz`: compares predictions with measurements for random scenarios.
//!
//! A scenario that disagrees is measured again, because flaky disagreements are reported
//! separately. A scenario that keeps disagreeing is shrunk and saved as a file.

mod judge;
mod measure;
mod shrink;
mod summary;

use std::fs;
use std::path::PathBuf;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use serde_json::Value;
use uturn_cli::{Failure, Printer, Status, print};
use uturn_model::ProxyMode;
use uturn_model::shell::Command;
use uturn_report::yaml;
use uturn_snapshot::Source;
use uturn_snapshot::scenario::{self, Case, Scenario};

use super::machine::Named;
use super::options::MeasureOptions;
use super::{parallel, random_scenario, sweep};
use crate::cli::LabFuzz;
use judge::{Judged, judge};
use measure::{Lab, Measured};
use summary::{Found, Summary};

/// The number of times that a disagreement is measured again.
const AGAIN: usize = 2;

pub(super) fn run(args: &LabFuzz, printer: &Printer) -> Result<Status, Failure> {
    let began = Instant::now();
    let seed = args.seed.unwrap_or_else(any_seed);
    printer.note(&format!("seed {seed}: {} scenarios from number {}", args.count, args.first));
    if !args.folder.is_dir() {
        let folder = args.folder.display();
        return Err(Failure::usage(format!("there is no folder {folder} to save files in")));
    }
    let mut modes = args.modes.clone();
    if modes.is_empty() {
        modes = vec![ProxyMode::Iptables, ProxyMode::Nftables];
    }
    let mut trials = Vec::new();
    for number in args.first..args.first.saturating_add(args.count) {
        let generated = random_scenario::scenario(seed, number, &modes);
        trials.push(Trial::new(generated.name, generated.document).map_err(Failure::input)?);
    }
    if args.generate_only {
        return save_all(args, &trials, printer);
    }
    sweep(printer)?;
    let options = MeasureOptions::plain(args.connects);
    let jobs = args.jobs.map_or_else(parallel::usual_size, |jobs| jobs as usize);
    let mut lab = Lab::find(options, jobs, *printer)?;
    let mut summary = Summary::new(seed);
    let mut suspects = Vec::new();
    for (trial, measured) in trials.iter().zip(lab.measure(&trials)?) {
        match judged(trial, measured)? {
            Verdict::NotRun(why) => summary.not_run(&trial.name, why),
            Verdict::Failed(why) => summary.failed(keep(args, trial, vec![why])?),
            Verdict::Judged(flows) => {
                summary.add(&flows);
                if flows.iter().any(|flow| !flow.agrees()) {
                    print_trial(printer, trial, &flows);
                    suspects.push(trial);
                }
            }
        }
    }
    lab.pace();
    for trial in suspects {
        retry_disagreement(args, trial, &mut lab, &mut summary, printer)?;
    }
    printer.progress_done();
    summary.seconds = began.elapsed().as_secs_f64();
    print(printer, args.output, |_| summary.text(), || summary.output());
    Ok(match (summary.is_clean(), summary.flows > 0) {
        (false, _) => Status::Found,
        (true, true) => Status::Clean,
        (true, false) => Status::Unavailable,
    })
}

/// Saves every scenario and prints the paths.
fn save_all(args: &LabFuzz, trials: &[Trial], printer: &Printer) -> Result<Status, Failure> {
    for trial in trials {
        let found = keep(args, trial, Vec::new())?;
        printer.result(&format!("{}\n", found.file.display()));
    }
    Ok(Status::Clean)
}

/// Finds out whether a disagreement persists, and shrinks its scenario.
fn retry_disagreement(
    args: &LabFuzz,
    trial: &Trial,
    lab: &mut Lab,
    summary: &mut Summary,
    printer: &Printer,
) -> Result<(), Failure> {
    printer.progress(&format!("{}: measuring it again …", trial.name));
    // The scenario is measured several times in parallel, so that effects of a busy machine show.
    let copies = vec![trial.clone(); AGAIN];
    let mut lasting: Option<Vec<Judged>> = None;
    for (copy, measured) in copies.iter().zip(lab.measure(&copies)?) {
        let Verdict::Judged(again) = judged(copy, measured)? else { continue };
        let before = lasting.take();
        let lasts =
            |flow: &Judged| before.as_ref().is_none_or(|all| all.iter().any(|b| b.is_like(flow)));
        lasting = Some(again.into_iter().filter(|flow| !flow.agrees() && lasts(flow)).collect());
    }
    let lasting = lasting.unwrap_or_default();
    let Some(first) = lasting.first() else {
        summary.flaky(keep(args, trial, vec!["measured again, it agreed".to_owned()])?);
        return Ok(());
    };
    let last = |trial: &Trial, measured: Measured| -> Result<bool, Failure> {
        let Verdict::Judged(flows) = judged(trial, measured)? else { return Ok(false) };
        Ok(flows.iter().any(|flow| flow.is_like(first)))
    };
    let small = shrink::shrink(trial, first, lab, printer, &last)?;
    let mut differences = Vec::new();
    for flow in &lasting {
        differences.extend(flow.lines());
    }
    summary.disagrees(keep(args, &small, differences)?);
    Ok(())
}

fn print_trial(printer: &Printer, trial: &Trial, flows: &[Judged]) {
    printer.progress_done();
    for line in flows.iter().flat_map(Judged::lines) {
        printer.note(&format!("{}: {line}", trial.name));
    }
}

/// Saves a scenario.
fn keep(args: &LabFuzz, trial: &Trial, differences: Vec<String>) -> Result<Found, Failure> {
    let path: PathBuf = args.folder.join(format!("uturn-{}.yaml", trial.name));
    let run = Command::new("uturn lab verify").value(&trial.name).words("-f").path(&path);
    let run = run.to_string();
    let mut text = String::new();
    for line in differences.iter().chain([&run]) {
        text.push_str(&format!("# {line}\n"));
    }
    text.push_str(&trial.text);
    fs::write(&path, text)
        .map_err(|why| Failure::unavailable(format!("cannot save {}: {why}", path.display())))?;
    Ok(Found { name: trial.name.clone(), file: path, differences, run })
}

/// The result of a scenario.
enum Verdict {
    NotRun(String),
    Failed(String),
    Judged(Vec<Judged>),
}

fn judged(trial: &Trial, measured: Measured) -> Result<Verdict, Failure> {
    Ok(match measured {
        Measured::NotRun(why) => Verdict::NotRun(why),
        Measured::Failed(why) => Verdict::Failed(why),
        Measured::Flows(flows) => match judge(trial.case(), flows) {
            Ok(flows) => Verdict::Judged(flows),
            Err(why) => Verdict::NotRun(why),
        },
    })
}

/// A scenario as a document, as text, and as it was read.
#[derive(Clone)]
struct Trial {
    name: String,
    document: Value,
    text: String,
    scenario: Scenario,
}

impl Trial {
    fn new(name: String, document: Value) -> Result<Self, Vec<String>> {
        let text = yaml::document(&document);
        let source = Source { name: format!("{name}.yaml").into(), text: text.as_str().into() };
        let mut read = scenario::read_all(vec![source])
            .map_err(|faults| faults.iter().map(ToString::to_string).collect::<Vec<_>>())?;
        match read.pop() {
            Some(scenario) if scenario.cases.len() == 1 => {
                Ok(Self { name, document, text, scenario })
            }
            _ => Err(vec![format!("{name} has not exactly one case")]),
        }
    }

    fn case(&self) -> &Case {
        &self.scenario.cases[0]
    }

    fn named(&self) -> Named<'_> {
        Named { scenario: &self.name, case: self.case() }
    }

    fn source(&self) -> Source {
        Source { name: format!("{}.yaml", self.name).into(), text: self.text.as_str().into() }
    }
}

/// Returns a random seed, short enough to be typed.
fn any_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    (now.as_nanos() as u64 ^ u64::from(std::process::id())) % 1_000_000_000
}
