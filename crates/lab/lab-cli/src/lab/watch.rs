//! `uturn lab run --keep`, `--pcap`, `--explain`: runs cases one by one, on this kernel and in
//! the small machine, and observes them.

use std::time::Instant;

use uturn_cli::{Failure, Output, Printer, Status, print};
use uturn_lab::{
    Explanation, KernelPart, LabError, LabNamespace, OnReady, Subject, Unavailable, Watched,
};
use uturn_model::Mechanism;
use uturn_report::lab;
use uturn_report::lab::CaseReport;
use uturn_report::schema::lab::{Explained as ExplainedOutput, Lab as LabOutput};
use uturn_snapshot::Source;

use super::broken;
use super::explanation;
use super::judge::report;
use super::kernels::{self, Kernels, Native};
use super::machine::{self, Named};
use super::options::MeasureOptions;
use super::plan::with_plan;
use crate::cli::LabRun;

/// Returns whether any of these options was given.
pub(super) fn is_wanted(args: &LabRun) -> bool {
    args.keep || args.explain || args.pcap.is_some()
}

pub(super) fn run(
    args: &LabRun,
    predicts: bool,
    cases: &[Named<'_>],
    own: &[Source],
    options: &MeasureOptions,
    printer: &Printer,
) -> Result<Status, Failure> {
    if args.vm && args.keep {
        return Err(Failure::usage(
            "--keep leaves namespaces of this kernel up to be looked into, and those of the \
             small machine go with it: run it without --vm, or with --pcap or --explain instead",
        ));
    }
    let mut kernels = Kernels::find(args.vm)?;
    let view = View { args, predicts, options, printer };
    let mut seen: Vec<Option<Seen>> = cases.iter().map(|_| None).collect();
    let mut elsewhere = Vec::new();
    for (at, case) in cases.iter().enumerate() {
        if kernels.native(case.case) == Native::No {
            elsewhere.push(at);
            continue;
        }
        match view.here(case)? {
            Ok(here) => seen[at] = Some(here),
            Err(part) => {
                kernels.lacks(part);
                elsewhere.push(at);
            }
        }
    }
    let mut there = Vec::new();
    for at in elsewhere {
        let machine =
            if args.keep { Err(NOT_KEPT.to_owned()) } else { kernels.machine(cases[at].case) };
        match machine {
            Ok(()) => there.push(at),
            Err(why) => seen[at] = Some(Seen::not_run(&cases[at], why)),
        }
    }
    view.in_machine(&kernels, cases, &there, own, &mut seen)?;
    printer.progress_done();
    let seen: Vec<Seen> = seen.into_iter().flatten().collect();
    // Cases that were kept have been printed already.
    let unprinted: Vec<&Seen> =
        seen.iter().filter(|seen| !args.keep || seen.report.not_run.is_some()).collect();
    if !unprinted.is_empty() {
        print_report(&unprinted, args.output, printer);
    }
    if seen.iter().any(|seen| !seen.report.agrees() || predicts && seen.has_other_mechanism()) {
        return Ok(Status::Found);
    }
    let ran = |seen: &Seen| seen.report.not_run.is_none();
    let all_ran = seen
        .iter()
        .zip(cases)
        .all(|(seen, case)| ran(seen) || args.vm && !kernels::in_any_machine(case.case));
    Ok(if all_ran && seen.iter().any(ran) { Status::Clean } else { Status::Unavailable })
}

/// The reason why a case is not kept that this kernel cannot run.
const NOT_KEPT: &str = "this kernel cannot run it, and --keep leaves namespaces of this kernel up";

/// The settings for observing cases.
struct View<'a> {
    args: &'a LabRun,
    predicts: bool,
    options: &'a MeasureOptions,
    printer: &'a Printer,
}

/// A case and its explanations.
struct Seen {
    report: CaseReport,
    explanations: Vec<Explained>,
}

/// An explanation and the engine's prediction.
struct Explained {
    measured: Explanation,
    predicted: Vec<Mechanism>,
}

impl View<'_> {
    /// Observes a case on this kernel, or returns what this kernel lacks for the case.
    fn here(&self, named: &Named<'_>) -> Result<Result<Seen, KernelPart>, Failure> {
        let Self { args, printer, .. } = *self;
        let began = Instant::now();
        printer.progress(&format!("{named} …"));
        let watching = self.options.watching(named.scenario, &named.case.label);
        let judged = |watched: &Watched| {
            self.judge(named, watched, kernels::here(), began.elapsed().as_secs_f64())
        };
        let mut shown = Ok(());
        let mut show = |watched: &Watched, namespaces: &[LabNamespace]| {
            printer.progress_done();
            shown = judged(watched).map(|seen| {
                print_report(&[&seen], args.output, printer);
                printer.note(&namespace_list(namespaces));
            });
        };
        let standing: Option<OnReady<'_>> = if args.keep { Some(&mut show) } else { None };
        let measured = with_plan(named.case, self.options, |plan| {
            uturn_lab::watch(plan, &watching, standing, &mut |what| printer.detail(what))
        })?;
        shown?;
        match measured {
            Ok(watched) => judged(&watched).map(Ok),
            Err(LabError::Plan(why)) => Ok(Ok(Seen::not_run(named, why))),
            Err(LabError::Unavailable(Unavailable::Part(part))) => Ok(Err(part)),
            Err(LabError::Unavailable(why)) => Ok(Ok(Seen::not_run(named, why.to_string()))),
            // Ctrl-C ends the kept case and all following ones.
            Err(why @ LabError::Interrupted) if args.keep => {
                Ok(Ok(Seen::not_run(named, why.to_string())))
            }
            Err(why) => Err(broken(&why)),
        }
    }

    /// Observes cases in the machine.
    fn in_machine(
        &self,
        kernels: &Kernels,
        cases: &[Named<'_>],
        which: &[usize],
        own: &[Source],
        seen: &mut [Option<Seen>],
    ) -> Result<(), Failure> {
        let Some(machine) = kernels.found().filter(|_| !which.is_empty()) else { return Ok(()) };
        let there: Vec<Named<'_>> = which.iter().map(|at| cases[*at]).collect();
        let printer = self.printer;
        printer.progress(&format!("{} in a small machine …", there.len()));
        let mut judged = Ok(());
        machine::measure(
            machine,
            &there,
            own,
            self.options,
            printer,
            &mut |at, watched, seconds| {
                let case = &there[at];
                let made = match watched {
                    Ok(watched) => {
                        self.judge(case, &watched, kernels::in_machine(machine), seconds)
                    }
                    Err(why) => Ok(Seen::not_run(case, why)),
                };
                match made {
                    Ok(made) => seen[which[at]] = Some(made),
                    Err(why) => judged = Err(why),
                }
            },
        )?;
        judged
    }

    fn judge(
        &self,
        named: &Named<'_>,
        watched: &Watched,
        place: String,
        seconds: f64,
    ) -> Result<Seen, Failure> {
        let report = report(named, Ok(watched.flows.clone()), place, seconds, self.predicts)?;
        let explained = |measured: &Explanation| {
            let predicted = predicted(named, &measured.subject)?;
            Ok(Explained { measured: measured.clone(), predicted })
        };
        let explanations = watched.explanations.iter().map(explained);
        Ok(Seen { report, explanations: explanations.collect::<Result<_, Failure>>()? })
    }
}

impl Seen {
    fn not_run(named: &Named<'_>, why: String) -> Self {
        Self { report: named.not_run(why), explanations: Vec::new() }
    }

    fn has_other_mechanism(&self) -> bool {
        self.explanations.iter().any(|explanation| !explanation.agrees())
    }
}

impl Explained {
    fn agrees(&self) -> bool {
        match self.measured.mechanism {
            Some(mechanism) => self.predicted.contains(&mechanism),
            // An unknown mechanism does not contradict the prediction.
            None => true,
        }
    }

    fn output<'a>(&self, case: &'a CaseReport) -> ExplainedOutput<'a> {
        ExplainedOutput {
            explanation: explanation::to_output(&self.measured),
            scenario: &case.scenario,
            case: &case.case,
            predicted: self.predicted.iter().map(|mechanism| mechanism.as_str()).collect(),
            agrees: self.agrees(),
        }
    }
}

/// Returns the mechanisms that the engine predicts.
fn predicted(named: &Named<'_>, subject: &Subject) -> Result<Vec<Mechanism>, Failure> {
    let engine = super::engine(&named.case.cluster)?;
    let mut all: Vec<Mechanism> = match subject {
        Subject::Flow { of, .. } => engine.verdict(&named.case.flows[*of].flow)?.mechanisms,
        Subject::Probe { listener, protocol, target } => {
            let found = engine.health(*listener, *protocol)?.unwrap_or_default();
            let its = found.into_iter().filter(|health| health.target == *target);
            its.flat_map(|health| health.mechanisms).collect()
        }
    };
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

fn print_report(all: &[&Seen], output: Output, printer: &Printer) {
    let reports: Vec<CaseReport> = all.iter().map(|seen| seen.report.clone()).collect();
    print(
        printer,
        output,
        |style| {
            let explained = all.iter().flat_map(|seen| {
                seen.explanations
                    .iter()
                    .map(move |explanation| explanation_text(&seen.report, explanation))
            });
            lab::text(&reports, style) + &explained.collect::<String>()
        },
        || {
            let explained = all.iter().flat_map(|seen| {
                seen.explanations.iter().map(move |explained| explained.output(&seen.report))
            });
            LabOutput::new(&reports, explained.collect())
        },
    );
}

/// Describes one connection, with a line for each packet.
fn explanation_text(case: &CaseReport, explained: &Explained) -> String {
    let Explained { measured, .. } = explained;
    let outcome =
        measured.outcome.map_or_else(|| "did not fail".into(), |explained| explained.to_string());
    let mut text = format!(
        "\n{} ({}): {}: {outcome}{}\n",
        case.scenario,
        case.case,
        subject(&measured.subject),
        match measured.subject {
            Subject::Flow { .. } => format!(" (connection {})", measured.connects),
            Subject::Probe { .. } => String::new(),
        }
    );
    let width = |of: fn(&uturn_lab::Sighting) -> usize| {
        measured.sightings.iter().map(of).max().unwrap_or_default()
    };
    let (place, link) = (
        width(|explained| explained.place.chars().count()),
        width(|explained| explained.link.chars().count()),
    );
    for explained in &measured.sightings {
        let way = if explained.leaves { "out" } else { "in " };
        let again = if explained.times > 1 {
            format!(" ({} times)", explained.times)
        } else {
            String::new()
        };
        text += &format!(
            "{:>10.6} s  {:place$}  {:link$} {way}  {}{again}\n",
            explained.after.as_secs_f64(),
            explained.place,
            explained.link,
            explained.packet,
        );
        if let Some(dropped) = &explained.dropped {
            text += &format!("{:12}  {:place$}  {:link$}      ends here: {dropped}\n", "", "", "");
        }
    }
    for note in &measured.notes {
        text += &format!("  {note}\n");
    }
    let mechanism = measured.mechanism.map_or("not seen", Mechanism::as_str);
    text += &format!("mechanism as measured: {mechanism}: {}\n", measured.because);
    text + &format!("predicted: {}: {}\n", names(&explained.predicted), comparison(explained))
}

fn names(all: &[Mechanism]) -> String {
    let names: Vec<&str> = all.iter().map(|mechanism| mechanism.as_str()).collect();
    if names.is_empty() { "no mechanism".into() } else { names.join(", ") }
}

fn comparison(explained: &Explained) -> &'static str {
    match (explained.measured.mechanism, explained.agrees()) {
        (None, _) => "the packets do not show it",
        (_, true) => "agrees",
        (_, false) => "DIFFERS",
    }
}

fn subject(subject: &Subject) -> String {
    match subject {
        Subject::Flow { flow, .. } => format!("{} → {}", flow.from, flow.to),
        Subject::Probe { listener, protocol, target } => {
            format!("health check of {listener} ({protocol}) → {target}")
        }
    }
}

/// Lists the namespaces of a lab, with commands to enter them.
fn namespace_list(namespaces: &[LabNamespace]) -> String {
    let mut text = String::from("the lab is up; look inside, for example with\n");
    let width =
        namespaces.iter().map(|namespace| namespace.namespace.len()).max().unwrap_or_default();
    for namespace in namespaces {
        let listens = match &namespace.listens[..] {
            [] => "no process listens".into(),
            all => format!("listens: {}", all.join(", ")),
        };
        text += &format!(
            "  ip netns exec {:width$} ip address   # {}; {listens}\n",
            namespace.namespace, namespace.what
        );
    }
    text + "Enter or Ctrl-C takes it down; what a killed run leaves, the next `uturn lab list` \
            removes"
}
