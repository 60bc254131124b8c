//! `probe -o json`.

use std::time::Duration;

use serde::Serialize;
use uturn_probe::Fit;

use super::common::{Flow, Outcome, OutcomeShare};
use super::lab::OutcomeCount;
use crate::probe::{Learned as LearnedText, ProbeCase, ProbeReport};

/// What `uturn probe -o json` prints.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Probe<'a> {
    /// The flow, with the pod that has made the calls as its client.
    pub flow: Flow,
    /// What was called: a URL, or a host and port; with the address, where it was called by that.
    pub called: &'a str,
    /// The container in which the calls were made; null for the pod's default one.
    pub container: Option<&'a str>,
    /// The program that made them.
    pub with: &'static str,
    /// Whether requests were sent, or only connections opened.
    pub sent_requests: bool,
    /// How many calls were to be made.
    pub wanted: u32,
    /// How many were made.
    pub made: usize,
    /// Why fewer were made than wanted; null where all were.
    pub stopped: Option<String>,
    /// How long all of them took, in milliseconds.
    pub took_ms: u64,
    /// Why the end of some calls is not known.
    pub failed: Vec<&'a str>,
    /// How calls ended.
    pub measured: Vec<Measured>,
    /// What was predicted: one case, or several where something that is not known decides.
    pub cases: Vec<Case<'a>>,
    /// Whether the calls fit a case; null where nothing was measured or predicted.
    pub agrees: Option<bool>,
    /// What the calls have shown of what was not known.
    pub learned: Vec<Learned<'a>>,
    /// What would have to be so for the calls to fit, where they fit no case.
    pub would_fit: Vec<Learned<'a>>,
    /// The codes of what goes wrong, in the cases that the calls do not contradict.
    pub findings: Vec<&'a str>,
}

impl<'a> From<&'a ProbeReport> for Probe<'a> {
    fn from(report: &'a ProbeReport) -> Self {
        Self {
            flow: Flow::from(&report.flow),
            called: &report.called,
            container: report.container.as_deref(),
            with: report.tool.word(),
            sent_requests: report.sends_requests,
            wanted: report.wanted,
            made: report.measurement.calls.len(),
            stopped: report.measurement.stopped.as_ref().map(ToString::to_string),
            took_ms: milliseconds(report.measurement.took),
            failed: report.failed(),
            measured: report.shown_case().map_or_else(Vec::new, Measured::of),
            cases: report.cases.iter().map(Case::from).collect(),
            agrees: report.agrees(),
            learned: report.learned.iter().map(Learned::from).collect(),
            would_fit: report.would_fit.iter().map(Learned::from).collect(),
            findings: report.findings(),
        }
    }
}

/// An outcome, and the calls that ended so.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Measured {
    /// How the calls ended, and how many of them.
    #[serde(flatten)]
    pub outcome: OutcomeCount,
    /// The shortest time that one took, in milliseconds.
    pub least_ms: u64,
    /// The longest time that one took, in milliseconds.
    pub most_ms: u64,
}

impl Measured {
    fn of(case: &ProbeCase) -> Vec<Self> {
        let rows = case.judgement.rows.iter();
        rows.filter_map(|row| {
            let (least, most) = row.waited?;
            let outcome = OutcomeCount { outcome: row.outcome.into(), count: row.count };
            Some(Self { outcome, least_ms: milliseconds(least), most_ms: milliseconds(most) })
        })
        .collect()
    }
}

/// A prediction, and whether the calls fit it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Case<'a> {
    /// What has to hold for it, where that is not known; empty where it always holds.
    #[serde(rename = "if")]
    pub conditions: Vec<&'a str>,
    /// How calls end; the shares add up to 1.
    pub predicted: Vec<OutcomeShare>,
    /// Why some of them are not answered at once.
    pub mechanisms: Vec<&'static str>,
    /// Whether the calls fit.
    pub fit: FitWord,
    /// The probability of counts that are as far from the shares or farther; null where counts were
    /// not compared.
    pub chance: Option<f64>,
    /// Whether the counts are exactly those of targets that are taken in turns.
    pub in_turns: bool,
    /// How calls ended that end otherwise by this prediction.
    pub unpredicted: Vec<OutcomeCount>,
}

impl<'a> From<&'a ProbeCase> for Case<'a> {
    fn from(case: &'a ProbeCase) -> Self {
        let verdict = &case.verdict;
        let (fit, chance, unpredicted) = match &case.judgement.fit {
            Fit::NothingMeasured => (FitWord::NothingMeasured, None, &[][..]),
            Fit::NotPredicted => (FitWord::NotPredicted, None, &[][..]),
            Fit::Agrees { chance } => (FitWord::Agrees, Some(*chance), &[][..]),
            Fit::Unpredicted(all) => (FitWord::Unpredicted, None, all.as_slice()),
            Fit::Unlikely { chance } => (FitWord::Unlikely, Some(*chance), &[][..]),
        };
        let unpredicted = unpredicted.iter().map(|(outcome, count)| OutcomeCount {
            outcome: Outcome::from(*outcome),
            count: *count,
        });
        Self {
            conditions: verdict.conditions.iter().map(|condition| &**condition).collect(),
            predicted: OutcomeShare::all(&verdict.outcomes),
            mechanisms: verdict.mechanisms.iter().map(|mechanism| mechanism.as_str()).collect(),
            fit,
            chance,
            in_turns: case.judgement.in_turns,
            unpredicted: unpredicted.collect(),
        }
    }
}

/// Whether calls fit a prediction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum FitWord {
    /// They fit.
    Agrees,
    /// Calls ended as the prediction says that none does.
    Unpredicted,
    /// The counts are too unlikely by the shares that are predicted.
    Unlikely,
    /// The prediction leaves open how calls end.
    NotPredicted,
    /// No call was made whose end is known.
    NothingMeasured,
}

/// Something that was not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Learned<'a> {
    /// What is so.
    pub what: &'a str,
    /// The `spec` of Facts that states it, as YAML on one line; null where Facts have no word for it.
    pub facts: Option<&'a str>,
}

impl<'a> From<&'a LearnedText> for Learned<'a> {
    fn from(learned: &'a LearnedText) -> Self {
        Self { what: &learned.what, facts: learned.facts.as_deref() }
    }
}

fn milliseconds(time: Duration) -> u64 {
    time.as_millis().try_into().unwrap_or(u64::MAX)
}
