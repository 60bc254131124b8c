//! The results of the lab's measurements, beside expectations and predictions.

use std::net::SocketAddr;

use uturn_model::{Flow, Mechanism, Outcome, Protocol, Share};

use crate::lines::Lines as _;
use crate::style::Style;
use crate::{table, words};

/// One case of a scenario.
#[derive(Clone, Debug)]
pub struct CaseReport {
    /// The scenario.
    pub scenario: String,
    /// The case: `3 nodes`.
    pub case: String,
    /// Its flows; empty if it did not run.
    pub flows: Vec<FlowReport>,
    /// The results of health checks, if the scenario expects something of them.
    pub probes: Vec<ProbeReport>,
    /// The duration of the case in seconds.
    pub seconds: f64,
    /// The place where it ran: `kernel 6.18 here`.
    pub place: Option<String>,
    /// The differences of a first try. Everything else is of the last try then.
    pub first_try: Vec<String>,
    /// The reason why it did not run.
    pub not_run: Option<String>,
}

/// One flow of a case.
#[derive(Clone, Debug)]
pub struct FlowReport {
    /// The flow.
    pub flow: Flow,
    /// The outcomes that the scenario states.
    pub expected: Vec<(Outcome, Share)>,
    /// The engine's prediction, if it was asked.
    pub predicted: Option<Predicted>,
    /// The measured outcomes with their counts.
    pub measured: Vec<(Outcome, u64)>,
    /// The differences.
    pub differences: Vec<String>,
}

/// The results of health checks of one listener's targets.
#[derive(Clone, Debug)]
pub struct ProbeReport {
    /// The load balancer's address and port.
    pub listener: SocketAddr,
    /// Each target, and whether the engine predicts that it is alive. `None` if the engine was not
    /// asked.
    pub predicted: Option<Vec<(SocketAddr, bool)>>,
    /// Each target, and whether it was found alive.
    pub measured: Vec<(SocketAddr, bool)>,
    /// The differences.
    pub differences: Vec<String>,
}

/// The engine's prediction for a flow.
#[derive(Clone, Debug)]
pub struct Predicted {
    /// The outcomes with their shares.
    pub outcomes: Vec<(Outcome, Share)>,
    /// The reasons.
    pub mechanisms: Vec<Mechanism>,
}

impl CaseReport {
    /// Returns whether everything in the case agrees.
    pub fn agrees(&self) -> bool {
        self.flows.iter().all(|flow| flow.differences.is_empty())
            && self.probes.iter().all(|probe| probe.differences.is_empty())
    }
}

impl CaseReport {
    /// Returns the differences, each with its place.
    pub fn differences(&self) -> Vec<String> {
        let flows = self.flows.iter().flat_map(|flow| {
            let place = format!("{} → {}", flow.flow.from, flow.flow.to);
            flow.differences.iter().map(move |difference| format!("{place}: {difference}"))
        });
        let probes = self.probes.iter().flat_map(|probe| {
            let place = format!("health checks of {}", probe.listener);
            probe.differences.iter().map(move |difference| format!("{place}: {difference}"))
        });
        flows.chain(probes).collect()
    }
}

/// Formats the cases as a table.
pub fn text(cases: &[CaseReport], style: Style) -> String {
    let verifies = cases.iter().flat_map(|case| &case.flows).any(|flow| flow.predicted.is_some());
    let mut places: Vec<&str> = cases.iter().filter_map(|case| case.place.as_deref()).collect();
    places.sort_unstable();
    places.dedup();
    // A place that all cases share is printed once, below.
    let shows_place = places.len() > 1 || style.wide;
    let mut rows = Vec::new();
    let mut notes = String::new();
    for case in cases {
        if let Some(why) = &case.not_run {
            notes.line(&format!("not run: {} ({}): {why}", case.scenario, case.case));
        }
        let mut first = true;
        let mut add = |mut row: Vec<String>, differences: &[String]| {
            let names = if std::mem::take(&mut first) {
                [&*case.scenario, &*case.case, case.place.as_deref().unwrap_or_default()]
            } else {
                [""; 3]
            };
            let names = names[..if shows_place { 3 } else { 2 }].iter().map(ToString::to_string);
            row.splice(0..0, names);
            let agrees = differences.is_empty();
            row.push(if agrees { style.green("agrees") } else { style.red("DIFFERS") });
            rows.push(row);
        };
        for (flow, more) in alike(&case.flows) {
            let from = match more {
                0 => flow.flow.from.to_string(),
                more => format!("{} + {more} more", flow.flow.from),
            };
            let to = match flow.flow.protocol {
                Protocol::Tcp => flow.flow.to.to_string(),
                other => format!("{} by {other}", flow.flow.to),
            };
            let mut row = vec![from, to];
            row.extend(flow.predicted.as_ref().map(|predicted| shares(&predicted.outcomes)));
            row.push(counts(&flow.measured));
            add(row, &flow.differences);
        }
        for probe in &case.probes {
            let mut row = vec!["health checks".to_owned(), probe.listener.to_string()];
            row.extend(probe.predicted.as_deref().map(alive));
            row.push(alive(&probe.measured));
            add(row, &probe.differences);
        }
        for difference in case.differences() {
            notes.line(&format!("{} ({}): {difference}", case.scenario, case.case));
        }
        for difference in &case.first_try {
            notes.line(&format!(
                "{} ({}), measured twice; at first: {difference}",
                case.scenario, case.case
            ));
        }
    }
    let mut heading = vec!["SCENARIO", "CASE", "FROM", "TO"];
    if shows_place {
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
    text.paragraph(&format!(
        "{} in {seconds:.1} s{}, {}",
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

/// Merges flows to one target with equal results: returns the first of each, and how many more.
fn alike(flows: &[FlowReport]) -> Vec<(&FlowReport, usize)> {
    let mut rows: Vec<(&FlowReport, usize)> = Vec::new();
    for flow in flows {
        let same = |row: &&mut (&FlowReport, usize)| {
            let predicted = |flow: &FlowReport| {
                flow.predicted.as_ref().map(|predicted| predicted.outcomes.clone())
            };
            row.0.flow.to == flow.flow.to
                && row.0.flow.protocol == flow.flow.protocol
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

fn shares(outcomes: &[(Outcome, Share)]) -> String {
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

/// Formats the number of alive targets: `none of 2 alive`.
fn alive(targets: &[(SocketAddr, bool)]) -> String {
    let alive = targets.iter().filter(|(_, alive)| *alive).count();
    match alive {
        0 => format!("none of {} alive", targets.len()),
        all if all == targets.len() => format!("all {all} alive"),
        some => format!("{some} of {} alive", targets.len()),
    }
}
