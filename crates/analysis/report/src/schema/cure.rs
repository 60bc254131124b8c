//! `cure -o json`.

use serde::Serialize;
use serde_json::{Map, Value};
use uturn_diagnose::cure;
use uturn_document::edit::Tree;

use super::common::{Flow, OutcomeShare};
use super::scan::Subject;
use crate::cure::CureReport;

/// What `uturn cure -o json` prints.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cures<'a> {
    /// What is to be cured: one case for each finding or flow.
    pub cases: Vec<Case<'a>>,
}

impl<'a> From<&'a [CureReport]> for Cures<'a> {
    fn from(reports: &'a [CureReport]) -> Self {
        Self { cases: reports.iter().map(Case::from).collect() }
    }
}

/// What is to be cured, and how.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Case<'a> {
    /// The codes of what is wrong; empty where nothing is.
    pub codes: &'a [String],
    /// How the flow or the health checks come out now.
    pub now: Standing<'a>,
    /// All cures that are known for it, those that work first.
    pub cures: Vec<Cure<'a>>,
}

impl<'a> From<&'a CureReport> for Case<'a> {
    fn from(report: &'a CureReport) -> Self {
        Self {
            codes: &report.codes,
            now: Standing::from(&report.now),
            cures: report.cures.iter().map(Cure::from).collect(),
        }
    }
}

/// A change that may help.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Cure<'a> {
    /// Its name, as `--cure` takes it.
    pub name: &'static str,
    /// What it does, in a line.
    pub title: &'a str,
    /// How much it changes for others: the least intrusive has the lowest rank.
    pub rank: u8,
    /// Whether it works here.
    pub offered: bool,
    /// Why it does not work here; null where it does.
    pub refused: Option<&'a str>,
    /// Whether it is not known to work because it was not tried.
    pub untried: bool,
    /// What has to hold for it.
    pub conditions: Vec<Condition<'a>>,
    /// What else it does.
    pub effects: &'a [String],
    /// What to type where no manifest can be edited.
    pub commands: Vec<&'a str>,
    /// How the flow or the health checks come out without it.
    pub before: Standing<'a>,
    /// How they come out with it; null where it was not tried.
    pub after: Option<Standing<'a>>,
    /// The edits of the manifests, as a unified diff.
    pub diff: String,
    /// The edited objects, whole, ready to apply.
    #[cfg_attr(feature = "schema", schemars(with = "Vec<Map<String, Value>>"))]
    pub objects: Vec<Value>,
}

impl<'a> From<&'a cure::Cure> for Cure<'a> {
    fn from(cure: &'a cure::Cure) -> Self {
        Self {
            name: cure.name,
            title: &cure.title,
            rank: cure.rank,
            offered: cure.is_offered(),
            refused: cure.refused.as_deref(),
            untried: cure.is_untried,
            conditions: cure.conditions.iter().map(Condition::from).collect(),
            effects: &cure.effects,
            commands: cure.commands.iter().map(|command| &**command).collect(),
            before: Standing::from(&cure.before),
            after: cure.after.as_ref().map(Standing::from),
            diff: cure.diffs.concat(),
            objects: cure.objects.iter().map(|(_, tree)| value(tree)).collect(),
        }
    }
}

/// Something that has to hold for a cure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Condition<'a> {
    /// What has to hold.
    pub what: &'a str,
    /// Whether it does.
    pub answer: Answer,
    /// The source of the answer, or where to find it.
    pub because: &'a str,
}

impl<'a> From<&'a cure::Condition> for Condition<'a> {
    fn from(condition: &'a cure::Condition) -> Self {
        Self {
            what: &condition.what,
            answer: Answer::from(condition.answer),
            because: &condition.because,
        }
    }
}

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Answer {
    /// It does.
    Holds,
    /// It does not.
    Fails,
    /// The input does not say.
    Unknown,
}

impl From<cure::Answer> for Answer {
    fn from(answer: cure::Answer) -> Self {
        match answer {
            cure::Answer::Holds => Self::Holds,
            cure::Answer::Fails => Self::Fails,
            cure::Answer::Unknown => Self::Unknown,
        }
    }
}

/// How a flow, or the health checks of a listener, come out, or what is wrong with an object.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Standing<'a> {
    /// A flow.
    Flow {
        /// The flow.
        flow: Flow,
        /// What has to hold for this, where that is not known; empty where it always holds.
        #[serde(rename = "if")]
        conditions: Vec<&'a str>,
        /// How calls end; the shares add up to 1.
        outcomes: Vec<OutcomeShare>,
        /// Why some of them are not answered at once.
        mechanisms: Vec<&'static str>,
    },
    /// The health checks of a load balancer's listener.
    Probes {
        /// The load balancer's address and port.
        listener: String,
        /// `tcp` or `udp`.
        protocol: &'static str,
        /// How many targets answer.
        alive: usize,
        /// How many targets there are.
        targets: usize,
    },
    /// An object.
    Object {
        /// The object.
        subject: Subject<'a>,
        /// What has to hold for this, where that is not known; empty where it always holds.
        #[serde(rename = "if")]
        conditions: Vec<&'a str>,
        /// What is wrong with it; empty where nothing is.
        faults: Vec<&'a str>,
    },
}

impl<'a> From<&'a cure::CaseState> for Standing<'a> {
    fn from(standing: &'a cure::CaseState) -> Self {
        match standing {
            cure::CaseState::Flow { flow, outcomes, mechanisms, conditions, .. } => Self::Flow {
                flow: Flow::from(flow),
                conditions: conditions.iter().map(|condition| &**condition).collect(),
                outcomes: OutcomeShare::all(outcomes),
                mechanisms: mechanisms.iter().map(|mechanism| mechanism.as_str()).collect(),
            },
            cure::CaseState::Probes { listener, protocol, alive, of } => Self::Probes {
                listener: listener.to_string(),
                protocol: protocol.lower(),
                alive: *alive,
                targets: *of,
            },
            cure::CaseState::Object { object, faults, conditions, .. } => Self::Object {
                subject: Subject::from(object),
                conditions: conditions.iter().map(|condition| &**condition).collect(),
                faults: faults.iter().map(|fault| &**fault).collect(),
            },
        }
    }
}

/// A manifest as it is written; a number keeps its digits where JSON can hold them.
fn value(tree: &Tree) -> Value {
    match tree {
        Tree::Text(text) => Value::from(text.as_str()),
        Tree::Bare(text) => {
            serde_json::from_str(text).unwrap_or_else(|_| Value::from(text.as_str()))
        }
        Tree::List(items) => items.iter().map(value).collect(),
        Tree::Map(entries) => {
            let entries = entries.iter().map(|(key, entry)| (key.clone(), value(entry)));
            Value::Object(entries.collect::<Map<_, _>>())
        }
    }
}
