//! What the lab measured, beside what was expected and predicted.

use serde_json::{Value, json};
use uturn_model::{Flow, Mechanism, Outcome};

use crate::style::Style;
use crate::{json, table, words};

/// One case of a scenario.
#[derive(Clone, Debug)]
pub struct CaseReport {
    /// The scenario.
    pub scenario: String,
    /// The case: `3 nodes`.
    pub case: String,
    /// Its flows; empty when it did not run.
    pub flows: Vec<FlowReport>,
    /// How long it took.
    pub seconds: f64,
    /// Where it ran: `kernel 6.18 here`.
    pub place: Option<String>,
    /// Why it did not run.
    pub not_run: Option<String>,
}

/// One flow of a case.
#[derive(Clone, Debug)]
pub struct FlowReport {
    /// The flow.
    pub flow: Flow,
    /// What the scenario says.
    pub expected: Vec<(Outcome, f64)>,
    /// What the engine says, where it was asked.
    pub predicted: Option<Predicted>,
    /// What the kernel did.
    pub measured: Vec<(Outcome, u64)>,
    /// What does not agree.
    pub differences: Vec<String>,
}

/// What the engine says of a flow.
#[derive(Clone, Debug)]
pub struct Predicted {
    /// Outcomes with their shares.
    pub outcomes: Vec<(Outcome, f64)>,
    /// Why.
    pub mechanisms: Vec<Mechanism>,
}

impl CaseReport {
    /// Whether everything in it agrees.
    pub fn agrees(&self) -> bool {
        self.flows.iter().all(|flow| flow.differences.is_empty())
    }
}

/// The table.
pub fn text(cases: &[CaseReport], style: Style) -> String {
    let verifies = cases.iter().flat_map(|case| &case.flows).any(|flow| flow.predicted.is_some());
    let mut places: Vec<&str> = cases.iter().filter_map(|case| case.place.as_deref()).collect();
    places.sort_unstable();
    places.dedup();
    // One place for all is said once, below.
    let says_where = places.len() > 1 || style.wide;
    let mut rows = Vec::new();
    let mut notes = String::new();
    for case in cases {
        if let Some(why) = &case.not_run {
            notes.push_str(&format!("not run: {} ({}): {why}\n", case.scenario, case.case));
        }
        for (i, (flow, more)) in alike(&case.flows).into_iter().enumerate() {
            let first = |text: &str| if i == 0 { text.to_owned() } else { String::new() };
            let from = match more {
                0 => flow.flow.from.to_string(),
                more => format!("{} + {more} more", flow.flow.from),
            };
            let mut row =
                vec![first(&case.scenario), first(&case.case), from, flow.flow.to.to_string()];
            if says_where {
                row.insert(2, first(case.place.as_deref().unwrap_or_default()));
            }
            if let Some(predicted) = &flow.predicted {
                row.push(shares(&predicted.outcomes));
            }
            row.push(counts(&flow.measured));
            let agrees = flow.differences.is_empty();
            row.push(if agrees { style.green("agrees") } else { style.red("DIFFERS") });
            rows.push(row);
            for difference in &flow.differences {
                notes.push_str(&format!(
                    "{} ({}): {} → {}: {difference}\n",
                    case.scenario, case.case, flow.flow.from, flow.flow.to
                ));
            }
        }
    }
    let mut heading = vec!["SCENARIO", "CASE", "FROM", "TO"];
    if says_where {
        heading.insert(2, "WHERE");
    }
    if verifies {
        heading.push("PREDICTED");
    }
    heading.extend(["MEASURED", ""]);
    let mut text =
        if rows.is_empty() { String::new() } else { table::render(&heading, &rows, style) };
    if !notes.is_empty() {
        text.push_str(&format!("\n{notes}"));
    }
    let ran = cases.iter().filter(|case| case.not_run.is_none());
    let differ = ran.clone().filter(|case| !case.agrees()).count();
    let seconds: f64 = cases.iter().map(|case| case.seconds).sum();
    text.push_str(&format!(
        "\n{} in {seconds:.1} s{}, {}\n",
        words::count(ran.clone().count(), "case"),
        if places.is_empty() { String::new() } else { format!(" ({})", places.join("; ")) },
        match differ {
            0 if ran.count() == 0 => "nothing was measured".to_owned(),
            0 => style.green("all agree"),
            some => style.red(&format!("{some} with a difference")),
        }
    ));
    text
}

/// Flows to one target that came out alike are one row: the first, and how many more.
fn alike(flows: &[FlowReport]) -> Vec<(&FlowReport, usize)> {
    let mut rows: Vec<(&FlowReport, usize)> = Vec::new();
    for flow in flows {
        let same = |row: &&mut (&FlowReport, usize)| {
            let predicted =
                |one: &FlowReport| one.predicted.as_ref().map(|one| one.outcomes.clone());
            row.0.flow.to == flow.flow.to
                && row.0.measured == flow.measured
                && predicted(row.0) == predicted(flow)
                && row.0.differences.is_empty()
                && flow.differences.is_empty()
        };
        match rows.iter_mut().find(same) {
            Some(row) => row.1 += 1,
            None => rows.push((flow, 0)),
        }
    }
    rows
}

fn shares(outcomes: &[(Outcome, f64)]) -> String {
    let parts: Vec<String> = outcomes
        .iter()
        .map(|(outcome, share)| format!("{} {outcome}", words::share(*share)))
        .collect();
    parts.join(", ")
}

fn counts(measured: &[(Outcome, u64)]) -> String {
    let parts: Vec<String> =
        measured.iter().map(|(outcome, count)| format!("{count} {outcome}")).collect();
    parts.join(", ")
}

/// `lab verify -o json`.
pub fn json(cases: &[CaseReport]) -> Value {
    let scenarios: Vec<Value> = cases
        .iter()
        .map(|case| {
            json!({
                "name": case.scenario,
                "case": case.case,
                "flows": case.flows.iter().map(flow).collect::<Vec<_>>(),
                "seconds": case.seconds,
                "ran_on": case.place,
                "not_run": case.not_run,
                "agrees": case.not_run.is_none() && case.agrees(),
            })
        })
        .collect();
    json!({ "scenarios": scenarios })
}

fn flow(one: &FlowReport) -> Value {
    let share_list =
        |list: &[(Outcome, f64)]| list.iter().copied().map(json::share_of).collect::<Vec<_>>();
    let measured: Vec<Value> = one
        .measured
        .iter()
        .map(|(outcome, count)| {
            let mut value = json::outcome(*outcome);
            json::extend(&mut value, json!({ "count": count }));
            value
        })
        .collect();
    let mut value = json::flow(&one.flow);
    json::extend(
        &mut value,
        json!({
            "expected": share_list(&one.expected),
            "predicted": one.predicted.as_ref().map(|predicted| share_list(&predicted.outcomes)),
            "mechanisms": one.predicted.as_ref().map(|predicted| {
                predicted.mechanisms.iter().map(|one| one.as_str()).collect::<Vec<_>>()
            }),
            "measured": measured,
            "agrees": one.differences.is_empty(),
            "differences": one.differences,
        }),
    );
    value
}
