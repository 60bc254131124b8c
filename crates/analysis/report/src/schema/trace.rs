//! `trace -o json`.

use serde::Serialize;
use uturn_model as model;
use uturn_model::route;

use super::common::{Flow, Hop, Outcome, OutcomeShare, Supposition};
use super::scan::Subject;
use crate::trace;

/// What `uturn trace -o json` prints.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Trace<'a> {
    /// The flow that was traced.
    pub flow: Flow,
    /// What comes of it: one verdict, or one for each case where something that is not known
    /// decides.
    pub verdicts: Vec<Verdict<'a>>,
    /// The routes of all verdicts, hop by hop.
    pub routes: Vec<Route<'a>>,
    /// The codes of what goes wrong.
    pub findings: &'a [String],
    /// What helps, the least intrusive first.
    pub cures: Vec<&'a str>,
    /// What a scan warns of about what is called, where walks do not show that the calls fail. Each is
    /// a case of its own among the verdicts. Left out where there is nothing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub doubts: Vec<Doubt<'a>>,
}

impl<'a> Trace<'a> {
    /// Of a flow with its verdicts, the codes of what goes wrong, what helps, and what a scan warns
    /// of under a condition.
    pub fn new(
        flow: &model::Flow,
        verdicts: &'a [model::Verdict],
        findings: &'a [String],
        cures: Vec<&'a str>,
        doubts: &'a [trace::Doubt],
    ) -> Self {
        let routes = verdicts.iter().flat_map(|verdict| {
            verdict.routes.iter().map(|route| Route::of(route, &verdict.conditions))
        });
        Self {
            flow: Flow::from(flow),
            verdicts: verdicts.iter().map(Verdict::from).collect(),
            routes: routes.collect(),
            findings,
            cures,
            doubts: doubts.iter().map(Doubt::from).collect(),
        }
    }
}

/// What makes calls fail that a walk supposes to be answered, or does not know.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Doubt<'a> {
    /// The code of the scan's finding.
    pub code: String,
    /// What the code means, in a few words.
    pub title: &'static str,
    /// The object of the finding.
    pub subject: Subject<'a>,
    /// What has to hold for the calls to fail, where that is not known; empty where it always holds.
    #[serde(rename = "if")]
    pub conditions: Vec<&'a str>,
    /// How the calls then end.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// What the object shows.
    pub because: Option<&'a str>,
    /// What helps, the least intrusive first.
    pub cures: Vec<&'a str>,
}

impl<'a> From<&'a trace::Doubt> for Doubt<'a> {
    fn from(doubt: &'a trace::Doubt) -> Self {
        let finding = &doubt.finding;
        let because = finding.other_evidence.first();
        Self {
            code: finding.code.to_string(),
            title: finding.code.title(),
            subject: Subject::from(&finding.subject),
            conditions: finding.conditions.iter().map(|condition| &**condition).collect(),
            outcome: finding.outcome.into(),
            because: because.map(|observed| &*observed.what),
            cures: doubt.cures.iter().map(|cure| &*cure.text).collect(),
        }
    }
}

/// What comes of a flow.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Verdict<'a> {
    /// What has to hold for it, where that is not known; empty where it always holds.
    #[serde(rename = "if")]
    pub conditions: Vec<&'a str>,
    /// How calls end; the shares add up to 1.
    pub outcomes: Vec<OutcomeShare>,
    /// Why some of them are not answered at once.
    pub mechanisms: Vec<&'static str>,
    /// What was supposed because nothing stated it.
    pub supposed: Vec<Supposition>,
}

impl<'a> From<&'a model::Verdict> for Verdict<'a> {
    fn from(verdict: &'a model::Verdict) -> Self {
        Self {
            conditions: verdict.conditions.iter().map(|condition| &**condition).collect(),
            outcomes: OutcomeShare::all(&verdict.outcomes),
            mechanisms: verdict.mechanisms.iter().map(|mechanism| mechanism.as_str()).collect(),
            supposed: Supposition::all(&verdict.supposed),
        }
    }
}

/// One way that a call can go.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Route<'a> {
    /// What has to hold for it, as in its verdict; left out where it always holds.
    #[serde(rename = "if", skip_serializing_if = "Vec::is_empty")]
    pub conditions: Vec<&'a str>,
    /// How it ends, and its share of the calls.
    #[serde(flatten)]
    pub outcome: OutcomeShare,
    /// Why it is not answered at once.
    pub mechanisms: Vec<&'static str>,
    /// Whether it stands for others that end alike: its hops are those of one of them, and `--all`
    /// lists each.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub has_others: bool,
    /// Where it goes, out and back, in order.
    pub hops: Vec<Hop<'a>>,
}

impl<'a> Route<'a> {
    fn of(route: &'a route::Route, conditions: &'a [model::Text]) -> Self {
        Self {
            conditions: conditions.iter().map(|condition| &**condition).collect(),
            outcome: OutcomeShare { outcome: route.outcome.into(), share: route.share.get() },
            mechanisms: route.mechanisms.iter().map(|mechanism| mechanism.as_str()).collect(),
            has_others: route.has_others,
            hops: route.hops.iter().map(Hop::from).collect(),
        }
    }
}
