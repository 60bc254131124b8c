//! `uturn lab run --keep`, `--pcap`, `--explain`: cases one after the other on this kernel,
//! with everything that can be seen of them.

use std::path::{Path, absolute};
use std::time::Instant;

use serde_json::{Value, json};
use uturn_lab::{Explanation, Inside, LabError, Standing, Watched, Watching};
use uturn_model::{Flow, Mechanism};
use uturn_path::Engine;
use uturn_report::json as form;
use uturn_report::lab;
use uturn_report::lab::CaseReport;

use super::how::How;
use super::machine::Named;
use super::place;
use super::{broken, report, with_plan};
use crate::cli::{LabRun, Output};
use crate::commands::print;
use crate::printer::Printer;
use crate::status::{Failure, Status};

/// Whether anything of this was asked for.
pub(super) fn is_wanted(args: &LabRun) -> bool {
    args.keep || args.explain || args.pcap.is_some()
}

pub(super) fn run(
    args: &LabRun,
    predicts: bool,
    cases: &[Named<'_>],
    how: &How,
    printer: &Printer,
) -> Result<Status, Failure> {
    if args.vm {
        return Err(Failure::usage(
            "--keep, --pcap and --explain look into namespaces of this kernel, and those of \
             the small machine are out of reach: run them without --vm",
        ));
    }
    uturn_lab::available().map_err(|why| Failure::not_here(why.to_string()))?;
    let mut seen = Vec::new();
    for one in cases {
        seen.push(Seen::of(one, args, predicts, how, printer)?);
    }
    printer.progress_done();
    if !args.keep {
        tell(&seen, args.output, printer);
    }
    if seen.iter().any(|one| !one.report.agrees() || predicts && one.has_other_mechanism()) {
        return Ok(Status::Found);
    }
    let all_ran = seen.iter().all(|one| one.report.not_run.is_none());
    Ok(if all_ran { Status::Clean } else { Status::NotHere })
}

/// A case and what was seen of it.
struct Seen {
    report: CaseReport,
    explanations: Vec<Explained>,
}

/// An explanation beside the engine's.
struct Explained {
    measured: Explanation,
    predicted: Vec<Mechanism>,
}

impl Seen {
    fn of(
        one: &Named<'_>,
        args: &LabRun,
        predicts: bool,
        how: &How,
        printer: &Printer,
    ) -> Result<Self, Failure> {
        let began = Instant::now();
        printer.progress(&format!("{one} …"));
        let watching = Watching {
            captures: args.pcap.as_deref().map(|folder| place_of(folder, one)).transpose()?,
            explain: args.explain,
        };
        let judged = |watched: &Watched| -> Result<Self, Failure> {
            let seconds = began.elapsed().as_secs_f64();
            let measured = Ok(watched.flows.clone());
            let report = report(one, measured, place::here(), seconds, predicts)?;
            let explanations = watched.explanations.iter();
            let explanations = explanations.map(|explained| {
                Ok(Explained {
                    measured: explained.clone(),
                    predicted: predicted(one, &one.case.flows[explained.of].flow)?,
                })
            });
            Ok(Self { report, explanations: explanations.collect::<Result<_, Failure>>()? })
        };
        let mut shown = Ok(());
        let mut show = |watched: &Watched, insides: &[Inside]| {
            printer.progress_done();
            shown = judged(watched).map(|seen| {
                tell(&[seen], args.output, printer);
                printer.note(&ways_in(insides));
            });
        };
        let standing: Option<Standing<'_>> = if args.keep { Some(&mut show) } else { None };
        let measured = with_plan(one.case, how, |plan| {
            uturn_lab::watch(plan, &watching, standing, &mut |what| printer.detail(what))
        })?;
        shown?;
        match measured {
            Ok(watched) => judged(&watched),
            Err(LabError::Plan(why)) => Ok(Self::not_run(one, why)),
            Err(LabError::Unavailable(why)) => Ok(Self::not_run(one, why.to_string())),
            // After one that was kept: Ctrl-C ended that, and all that would follow.
            Err(why @ LabError::Interrupted) if args.keep => {
                Ok(Self::not_run(one, why.to_string()))
            }
            Err(why) => Err(broken(&why)),
        }
    }

    fn not_run(one: &Named<'_>, why: String) -> Self {
        Self { report: one.not_run(why), explanations: Vec::new() }
    }

    fn has_other_mechanism(&self) -> bool {
        self.explanations.iter().any(|one| !one.agrees())
    }
}

impl Explained {
    fn agrees(&self) -> bool {
        match self.measured.mechanism {
            Some(one) => self.predicted.contains(&one),
            // What cannot be seen contradicts nobody.
            None => true,
        }
    }
}

/// The mechanisms that the engine gives for a flow.
fn predicted(one: &Named<'_>, flow: &Flow) -> Result<Vec<Mechanism>, Failure> {
    let engine = Engine::new(&one.case.cluster)?;
    let verdicts = engine.verdicts(flow)?;
    let mut all: Vec<Mechanism> =
        verdicts.into_iter().flat_map(|verdict| verdict.mechanisms).collect();
    all.sort_unstable();
    all.dedup();
    Ok(all)
}

/// A folder for each case.
fn place_of(folder: &Path, one: &Named<'_>) -> Result<std::path::PathBuf, Failure> {
    let words = one.case.label.split(|c: char| !c.is_ascii_alphanumeric());
    let case: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    absolute(folder.join(format!("{}-{}", one.scenario, case.join("-"))))
        .map_err(|why| Failure::usage(format!("--pcap {}: {why}", folder.display())))
}

fn tell(all: &[Seen], output: Output, printer: &Printer) {
    let reports: Vec<CaseReport> = all.iter().map(|one| one.report.clone()).collect();
    print(
        printer,
        output,
        |style| {
            let explained = all
                .iter()
                .flat_map(|seen| seen.explanations.iter().map(move |one| story(&seen.report, one)));
            lab::text(&reports, style) + &explained.collect::<String>()
        },
        || {
            let mut value = lab::json(&reports);
            let explained = all.iter().flat_map(|seen| {
                seen.explanations.iter().map(move |one| to_json(&seen.report, one))
            });
            let explained: Vec<Value> = explained.collect();
            if !explained.is_empty() {
                value["explained"] = Value::from(explained);
            }
            value
        },
    );
}

/// One connection, a line a packet.
fn story(case: &CaseReport, one: &Explained) -> String {
    let Explained { measured, .. } = one;
    let outcome = measured.outcome.map_or_else(|| "did not fail".into(), |one| one.to_string());
    let mut text = format!(
        "\n{} ({}): {} → {}: {outcome} (connection {})\n",
        case.scenario, case.case, measured.flow.from, measured.flow.to, measured.connects
    );
    let width = |of: fn(&uturn_lab::Sighting) -> usize| {
        measured.sightings.iter().map(of).max().unwrap_or_default()
    };
    let (place, link) =
        (width(|one| one.place.chars().count()), width(|one| one.link.chars().count()));
    for one in &measured.sightings {
        let way = if one.leaves { "out" } else { "in " };
        let again = if one.times > 1 { format!(" ({} times)", one.times) } else { String::new() };
        text += &format!(
            "{:>10.6} s  {:place$}  {:link$} {way}  {}{again}\n",
            one.after.as_secs_f64(),
            one.place,
            one.link,
            one.packet,
        );
        if let Some(dropped) = &one.dropped {
            text += &format!("{:12}  {:place$}  {:link$}      ends here: {dropped}\n", "", "", "");
        }
    }
    for note in &measured.notes {
        text += &format!("  {note}\n");
    }
    let mechanism = measured.mechanism.map_or("not seen", Mechanism::as_str);
    text += &format!("mechanism as measured: {mechanism}: {}\n", measured.because);
    text + &format!("predicted: {}: {}\n", names(&one.predicted), opinion(one))
}

fn names(all: &[Mechanism]) -> String {
    let names: Vec<&str> = all.iter().map(|one| one.as_str()).collect();
    if names.is_empty() { "no mechanism".into() } else { names.join(", ") }
}

fn opinion(one: &Explained) -> &'static str {
    match (one.measured.mechanism, one.agrees()) {
        (None, _) => "the packets do not say",
        (_, true) => "agrees",
        (_, false) => "DIFFERS",
    }
}

fn to_json(case: &CaseReport, one: &Explained) -> Value {
    let Explained { measured, predicted } = one;
    let sightings: Vec<Value> = measured
        .sightings
        .iter()
        .map(|one| {
            json!({
                "after_us": one.after.as_micros() as u64,
                "place": one.place,
                "link": one.link,
                "way": if one.leaves { "out" } else { "in" },
                "packet": one.packet,
                "times": one.times,
                "dropped": one.dropped,
            })
        })
        .collect();
    json!({
        "scenario": case.scenario,
        "case": case.case,
        "from": measured.flow.from.to_string(),
        "to": measured.flow.to.to_string(),
        "outcome": measured.outcome.map(form::outcome),
        "connects": measured.connects,
        "packets": sightings,
        "notes": measured.notes,
        "mechanism": measured.mechanism.map(Mechanism::as_str),
        "because": measured.because,
        "predicted": predicted.iter().map(|one| one.as_str()).collect::<Vec<_>>(),
        "agrees": one.agrees(),
    })
}

/// How to look inside a lab that stands.
fn ways_in(insides: &[Inside]) -> String {
    let mut text = String::from("the lab is up; look inside, for example with\n");
    let width = insides.iter().map(|one| one.namespace.len()).max().unwrap_or_default();
    for one in insides {
        let listens = match &one.listens[..] {
            [] => "nobody listens".into(),
            all => format!("listens: {}", all.join(", ")),
        };
        text += &format!(
            "  ip netns exec {:width$} ip address   # {}; {listens}\n",
            one.namespace, one.what
        );
    }
    text + "Enter or Ctrl-C takes it down; what a killed run leaves, the next `uturn lab list` \
            removes"
}
