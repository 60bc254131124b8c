//! `whatif -o json` and `diff -o json`.

use serde::Serialize;
use uturn_model as model;
use uturn_whatif::{Effect, Entry as ModelEntry, Side as ModelSide, result};

use super::common::{OutcomeShare, Severity, Supposition};
use super::scan::{Evidence, NotJudged, Subject, Untried};
use crate::whatif::WhatIfReport;
use crate::words;

/// What `uturn whatif -o json` and `uturn diff -o json` print.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct WhatIf<'a> {
    /// The changes, in the order in which they are made; of `diff`, the objects that differ.
    pub changes: Vec<Change<'a>>,
    /// The calls that get worse, the worst first.
    pub worse: Vec<Entry<'a>>,
    /// The calls that get better.
    pub better: Vec<Entry<'a>>,
    /// The calls that go otherwise, neither better nor worse.
    pub other: Vec<Entry<'a>>,
    /// What keeps calls from being judged, before the changes or after them.
    pub not_judged: Vec<NotJudgedSide<'a>>,
    /// How many calls were compared: of a client to a target.
    pub calls: usize,
    /// What was supposed because nothing stated it.
    pub supposed: Vec<Supposition>,
    /// How the changes were made, where that is not plain.
    pub notes: &'a [String],
}

impl<'a> From<&'a WhatIfReport> for WhatIf<'a> {
    fn from(report: &'a WhatIfReport) -> Self {
        let comparison = &report.comparison;
        let count = comparison.worse.len() + comparison.better.len() + comparison.other.len();
        let most = words::most_names(count);
        let entries = |all: &'a [ModelEntry]| -> Vec<Entry<'a>> {
            all.iter().map(|entry| Entry::new(entry, most)).collect()
        };
        Self {
            changes: report.changes.iter().map(Change::from).collect(),
            worse: entries(&comparison.worse),
            better: entries(&comparison.better),
            other: entries(&comparison.other),
            not_judged: comparison.not_judged.iter().map(NotJudgedSide::from).collect(),
            calls: comparison.calls,
            supposed: Supposition::all(&comparison.supposed),
            notes: &comparison.notes,
        }
    }
}

/// A change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Change<'a> {
    /// The change as it was typed, or what differs.
    pub change: &'a str,
    /// The objects that it concerns.
    pub objects: &'a [String],
}

impl<'a> From<&'a crate::whatif::Change> for Change<'a> {
    fn from(change: &'a crate::whatif::Change) -> Self {
        Self { change: &change.change, objects: &change.objects }
    }
}

/// Calls that change alike, for the same cause.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Entry<'a> {
    /// The code of the finding about these calls, after the changes where they get worse, before them
    /// where they get better; null where there is none.
    pub code: Option<String>,
    /// How bad that finding is; null where there is none.
    pub severity: Option<Severity>,
    /// What the code means, in a few words; null where there is none.
    pub title: Option<&'a str>,
    /// What becomes of the calls.
    pub effect: Effect,
    /// The object that is called, or that is at fault.
    pub subject: Subject<'a>,
    /// The ports, hosts and paths of the object.
    pub targets: &'a [String],
    /// The clients, by name; of very many only some.
    pub clients: Vec<String>,
    /// How many clients there are.
    pub client_count: usize,
    /// The workloads of the clients, with the number of pods of each.
    pub workloads: Vec<Workload<'a>>,
    /// What has to hold, where that is not known; empty where it is always so.
    #[serde(rename = "if")]
    pub conditions: Vec<&'a str>,
    /// The share of the calls that is not answered at once after the changes; of what gets better,
    /// before them.
    pub share_failing: f64,
    /// Why they are not; null where nothing is lost on the way.
    pub mechanism: Option<&'static str>,
    /// The same in words; null where nothing shows it.
    pub because: Option<&'a str>,
    /// How the calls ended before the changes.
    pub before: Side<'a>,
    /// How the calls end after the changes.
    pub after: Side<'a>,
    /// What the finding rests on.
    pub evidence: Vec<Evidence>,
    /// What helps after the changes, the least intrusive first.
    pub cures: Vec<&'a str>,
    /// What was not tried, so that nobody knows whether it helps; null where every cure was tried.
    pub untried: Option<Untried<'a>>,
}

impl<'a> Entry<'a> {
    fn new(entry: &'a ModelEntry, most_names: usize) -> Self {
        let said = entry.subjected.as_ref();
        let is_better = entry.effect.list() == result::List::Better;
        let side = if is_better { &entry.before } else { &entry.after };
        let pods = entry.who.pods.iter().take(most_names);
        let pods = pods.map(|pod| model::Client::Pod(pod.clone()).to_string());
        Self {
            code: said.map(|said| said.code.to_string()),
            severity: said.map(|said| said.severity.into()),
            title: said.map(|said| said.code.title()),
            effect: entry.effect,
            subject: Subject::from(&entry.subject),
            targets: &entry.targets,
            clients: pods.chain(entry.who.others.iter().cloned()).collect(),
            client_count: entry.who.len(),
            workloads: entry.who.workloads.iter().map(Workload::from).collect(),
            conditions: entry.conditions.iter().map(|condition| &**condition).collect(),
            share_failing: side.share_failing().get(),
            mechanism: side.mechanisms.first().map(|mechanism| mechanism.as_str()),
            because: said.and_then(|said| said.because.as_deref()),
            before: Side::from(&entry.before),
            after: Side::from(&entry.after),
            evidence: said
                .map(|said| said.evidence.iter().map(Evidence::from).collect())
                .unwrap_or_default(),
            cures: said
                .filter(|_| !is_better)
                .map(|said| said.cures.iter().map(|cure| &*cure.text).collect())
                .unwrap_or_default(),
            untried: said
                .filter(|_| !is_better)
                .and_then(|said| said.untried.as_ref())
                .map(Untried::from),
        }
    }
}

/// A workload whose pods call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Workload<'a> {
    /// Its name, as `--from` takes it: `deploy/NAMESPACE/NAME`; a pod that no workload makes stands
    /// for itself.
    pub name: &'a str,
    /// How many of its pods call.
    pub pods: usize,
}

impl<'a> From<&'a (String, usize)> for Workload<'a> {
    fn from((name, pods): &'a (String, usize)) -> Self {
        Self { name, pods: *pods }
    }
}

/// How calls end on one side of the changes.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Side<'a> {
    /// The outcomes with their shares; empty where there is no such call.
    pub outcomes: Vec<OutcomeShare>,
    /// Why some are not answered at once.
    pub mechanisms: Vec<&'static str>,
    /// How the calls go, where that is what differs; absent elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub way: Option<&'a str>,
}

impl<'a> From<&'a ModelSide> for Side<'a> {
    fn from(side: &'a ModelSide) -> Self {
        Self {
            outcomes: OutcomeShare::all(&side.outcomes),
            mechanisms: side.mechanisms.iter().map(|mechanism| mechanism.as_str()).collect(),
            way: side.way.as_deref(),
        }
    }
}

/// Something that keeps calls from being judged, and on which side of the changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct NotJudgedSide<'a> {
    /// What it is.
    #[serde(flatten)]
    pub what: NotJudged<'a>,
    /// Whether it is so before the changes.
    pub before: bool,
    /// Whether it is so after the changes.
    pub after: bool,
}

impl<'a> From<&'a result::NotJudged> for NotJudgedSide<'a> {
    fn from(own: &'a result::NotJudged) -> Self {
        Self { what: NotJudged::from(&own.unjudged), before: own.before, after: own.after }
    }
}
