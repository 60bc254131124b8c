//! The results of real calls beside their predictions.

use std::time::Duration;

use uturn_model::{Flow, NamespacedName, Outcome, Share, Verdict};
use uturn_probe::{CallEnd, Fit, Judgement, Measurement, Row, Tool};

use crate::lines::Lines as _;
use crate::style::Style;
use crate::{table, words};

/// The measurement of a flow.
#[derive(Clone, Debug)]
pub struct ProbeReport {
    /// The flow, with the pod that made the calls as its client.
    pub flow: Flow,
    /// The pod that made the calls.
    pub pod: NamespacedName,
    /// The container, if it is not the pod's default one.
    pub container: Option<String>,
    /// The called URL, or host and port; with the address, if it was called by that.
    pub called: String,
    /// Whether requests were sent.
    pub sends_requests: bool,
    /// The program that made the calls.
    pub tool: Tool,
    /// The part of a call that the program shows.
    pub shows: &'static str,
    /// The number of calls that were to be made.
    pub wanted: u32,
    /// The calls.
    pub measurement: Measurement,
    /// The predictions, each with the judgement of the calls.
    pub cases: Vec<ProbeCase>,
    /// The facts, unknown before, that the calls have shown.
    pub learned: Vec<Learned>,
    /// The facts under which the calls would fit, if they fit no case.
    pub would_fit: Vec<Learned>,
}

/// A prediction, and the judgement whether the calls fit it.
#[derive(Clone, Debug)]
pub struct ProbeCase {
    /// The prediction.
    pub verdict: Verdict,
    /// The codes of the findings in the prediction.
    pub codes: Vec<String>,
    /// The judgement whether the calls fit the prediction.
    pub judgement: Judgement,
}

/// A fact that was not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Learned {
    /// The fact.
    pub what: String,
    /// The `spec` of Facts that states it, on one line.
    pub facts: Option<String>,
}

impl ProbeReport {
    /// Returns whether the calls fit a case. Returns `None` if nothing was measured or predicted.
    pub fn agrees(&self) -> Option<bool> {
        let fits = || self.cases.iter().map(|case| &case.judgement.fit);
        match fits().any(Fit::agrees) {
            true => Some(true),
            false if fits().any(|fit| !fit.is_contradiction()) => None,
            false => (!self.cases.is_empty()).then_some(false),
        }
    }

    /// Returns the case by which calls are shown: the first that they fit best.
    pub fn shown_case(&self) -> Option<&ProbeCase> {
        let fits = |case: &&ProbeCase| case.judgement.fit.agrees();
        let stands = |case: &&ProbeCase| !case.judgement.fit.is_contradiction();
        let cases = || self.cases.iter();
        cases().find(fits).or_else(|| cases().find(stands)).or_else(|| cases().next())
    }

    /// Returns why the end of some calls is not known.
    pub fn failed(&self) -> Vec<&str> {
        let calls = self.measurement.calls.iter();
        let failed = calls.filter_map(|call| match &call.end {
            CallEnd::Failed(why) => Some(&**why),
            _ => None,
        });
        failed.collect()
    }

    /// Returns whether a call was not answered at once.
    pub fn has_bad_calls(&self) -> bool {
        let rows = self.shown_case().into_iter().flat_map(|case| &case.judgement.rows);
        rows.into_iter().any(|row| row.count > 0 && row.outcome.is_bad())
    }

    /// Returns the codes of the findings in the cases that the calls do not contradict.
    pub fn findings(&self) -> Vec<&str> {
        let stand = self.cases.iter().filter(|case| !case.judgement.fit.is_contradiction());
        let mut codes: Vec<&str> =
            stand.flat_map(|case| case.codes.iter().map(String::as_str)).collect();
        codes.sort_unstable();
        codes.dedup();
        codes
    }
}

/// Formats the report.
pub fn text(report: &ProbeReport, style: Style) -> String {
    let mut text = heading(report);
    if let Some(case) = report.shown_case() {
        text.push('\n');
        text.push_str(&outcomes(report, case, style));
    }
    for why in distinct(&report.failed()) {
        text.paragraph(&format!("not known how it ended: {why}"));
    }
    text.push('\n');
    match &report.cases[..] {
        [] => {}
        [only] => text.line(&only_fit(only, style)),
        cases => {
            for case in cases {
                let conditions = case.verdict.conditions.join(" and ");
                let predicted = words::verdict(&case.verdict, 12);
                text.line(&format!("if {conditions}: {predicted}"));
                text.line(&format!("  {}", case_fit(case, "ruled out", style)));
            }
        }
    }
    if let Some(case) = report.shown_case() {
        text.push_str(&notes(report, case));
    }
    for learned in &report.learned {
        text.paragraph(&format!("settled: {}", style.bold(&learned.what)));
        text.push_str(&facts(learned));
    }
    for learned in &report.would_fit {
        text.paragraph(&format!("the calls would fit if {}", learned.what));
        text.push_str(&facts(learned));
    }
    if report.agrees() == Some(false) {
        text.push_str(&supposed(report));
    }
    text
}

/// Formats the heading: `6 of 12 calls from pod/shop/web-0 to http://10.0.0.100/ by curl, in 8.1 s;
/// stopped`.
fn heading(report: &ProbeReport) -> String {
    let made = report.measurement.calls.len();
    let calls = if made == report.wanted as usize {
        words::count(made, "call")
    } else {
        format!("{made} of {}", words::count(report.wanted as usize, "call"))
    };
    let container = match &report.container {
        Some(container) => format!(" ({container})"),
        None => String::new(),
    };
    let mut text = format!(
        "{calls} from pod/{}{container} to {} by {}, in {:.1} s: {}\n",
        report.pod,
        report.called,
        report.tool,
        report.measurement.took.as_secs_f64(),
        report.shows
    );
    if let Some(why) = &report.measurement.stopped {
        text.line(&format!("no more calls were made: {why}"));
    }
    text
}

fn outcomes(report: &ProbeReport, case: &ProbeCase, style: Style) -> String {
    let of: u64 = case.judgement.rows.iter().map(|row| row.count).sum();
    let rows: Vec<Vec<String>> = case
        .judgement
        .rows
        .iter()
        .filter(|row| row.count > 0 || row.predicted.is_some())
        .map(|row| {
            let measured = match row.count {
                0 => "none".to_owned(),
                count => format!("{count} of {of}"),
            };
            let predicted = row.predicted.map_or_else(|| "never".to_owned(), share);
            vec![row.outcome.to_string(), measured, predicted, times(row)]
        })
        .collect();
    let predicted = match report.cases.len() {
        1 => "PREDICTED".to_owned(),
        _ => "PREDICTED (the case that fits best)".to_owned(),
    };
    table::render(&["OUTCOME", "MEASURED", &predicted, "TOOK"], &rows, style)
}

fn share(share: Share) -> String {
    words::share(share)
}

/// Formats the waiting times of a row: `4.01 s`, `0.01 to 0.03 s`.
fn times(row: &Row) -> String {
    match row.waited {
        None => String::new(),
        Some((least, most)) => match (seconds(least), seconds(most)) {
            (least, most) if least == most => format!("{most} s"),
            (least, most) => format!("{least} to {most} s"),
        },
    }
}

fn seconds(time: Duration) -> String {
    format!("{:.2}", time.as_secs_f64())
}

/// Describes how calls fit the only prediction.
fn only_fit(case: &ProbeCase, style: Style) -> String {
    let mut text = case_fit(case, "measurement and prediction differ", style);
    let mut reasons = case.codes.clone();
    reasons.extend(case.verdict.mechanisms.iter().map(ToString::to_string));
    if !reasons.is_empty() {
        text.push_str(&format!("   {}", reasons.join(" ")));
    }
    text
}

/// Describes how calls fit a case. `contradicted` is printed if they do not.
fn case_fit(case: &ProbeCase, contradicted: &str, style: Style) -> String {
    match &case.judgement.fit {
        Fit::NothingMeasured => style.yellow("nothing was measured"),
        Fit::NotPredicted => style.yellow("nothing was predicted that calls could contradict"),
        Fit::Agrees { chance } => {
            let agrees = style.green("measurement and prediction agree");
            match (case.judgement.in_turns, case.judgement.rows.len()) {
                (true, _) => format!("{agrees}: exactly as targets in turns give it"),
                (false, 0 | 1) => agrees,
                (false, _) => format!("{agrees}: {}", odds(*chance)),
            }
        }
        Fit::Unpredicted(all) => {
            let ended: Vec<String> =
                all.iter().map(|(outcome, count)| unpredicted(*outcome, *count)).collect();
            format!("{}: {}, which is not predicted", style.red(contradicted), ended.join(", "))
        }
        Fit::Unlikely { chance } => format!("{}: {}", style.red(contradicted), odds(*chance)),
    }
}

fn unpredicted(outcome: Outcome, count: u64) -> String {
    format!("{} {outcome}", words::count(count as usize, "call"))
}

/// Describes how often counts come by chance: `counts this far off occur by chance in 1 of 130
/// probes`.
fn odds(chance: f64) -> String {
    match chance {
        chance if chance > 0.5 => "the counts are about as predicted".to_owned(),
        chance if chance < 1e-9 => "such counts never occur by chance".to_owned(),
        chance => {
            let of = words::grouped((1.0 / chance).round() as usize);
            format!("counts this far off occur by chance in 1 of {of} probes")
        }
    }
}

/// Returns notes on calls that fit a prediction or not.
fn notes(report: &ProbeReport, case: &ProbeCase) -> String {
    let mut text = String::new();
    let rows = &case.judgement.rows;
    let of: u64 = rows.iter().map(|row| row.count).sum();
    if case.judgement.fit.agrees() {
        for row in rows.iter().filter(|row| row.count == 0) {
            let share = row.predicted.map_or(0.0, Share::get);
            let missed = (1.0 - share).powi(i32::try_from(of).unwrap_or(i32::MAX));
            text.line(&format!(
                "none {}, which {} calls miss by chance {:.0} times in 100: make more calls (-n)",
                row.outcome,
                of,
                missed * 100.0
            ));
        }
    }
    if let Some(slow) = case.judgement.slow {
        text.push_str(&format!(
            "an answer took {} s more than its wait: the server's own time, or something that \
             uturn does not predict\n",
            seconds(slow)
        ));
    }
    let standing = report.cases.iter().filter(|case| !case.judgement.fit.is_contradiction());
    if report.cases.len() > 1 && standing.count() > 1 && report.learned.is_empty() {
        text.push_str("the calls do not distinguish these cases\n");
    }
    text
}

fn facts(learned: &Learned) -> String {
    match &learned.facts {
        Some(facts) => format!("  state it in Facts: spec: {facts}\n"),
        None => String::new(),
    }
}

/// Lists the assumptions, one of which may be wrong if measurement and prediction differ.
fn supposed(report: &ProbeReport) -> String {
    let all = report.cases.iter().flat_map(|case| &case.verdict.supposed);
    let all: Vec<String> = all.map(ToString::to_string).collect();
    let all: Vec<&str> = all.iter().map(String::as_str).collect();
    let mut text = String::new();
    for assumption in distinct(&all) {
        text.push_str(&format!("\nsupposed, and perhaps wrong: {assumption}"));
    }
    if !text.is_empty() {
        text.push('\n');
    }
    text
}

fn distinct<'t>(texts: &[&'t str]) -> Vec<&'t str> {
    let mut seen: Vec<&str> = Vec::new();
    for text in texts {
        if !seen.contains(text) {
            seen.push(text);
        }
    }
    seen
}
