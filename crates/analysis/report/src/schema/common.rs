//! What several commands print.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use uturn_model as model;
use uturn_model::route;

/// The flow: its client and its destination.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Flow {
    /// The client: `pod/NAMESPACE/NAME`, `deploy/NAMESPACE/NAME`, `node/NAME`, `outside`.
    pub from: String,
    /// The destination, as `--to` takes it.
    pub to: String,
    /// `tcp` or `udp`.
    pub protocol: &'static str,
}

impl From<&model::Flow> for Flow {
    fn from(flow: &model::Flow) -> Self {
        Self {
            from: flow.from.to_string(),
            to: flow.to.to_string(),
            protocol: flow.protocol.lower(),
        }
    }
}

/// How a call ends, as its client sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Outcome {
    /// How it ends.
    pub outcome: OutcomeWord,
    /// The HTTP status, where the outcome is `status`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// How long the client waits for it; absent where it waits for ever, or where that is not
    /// known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_ms: Option<u64>,
}

/// How a call ends, in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum OutcomeWord {
    /// With a good answer.
    Answered,
    /// With an HTTP status that is an error.
    Status,
    /// The connection is refused.
    Refused,
    /// The connection is reset.
    Reset,
    /// The connection is closed without an answer.
    EmptyReply,
    /// The TLS handshake fails.
    TlsError,
    /// The network or the host is unreachable.
    Unreachable,
    /// There is no answer.
    Hangs,
    /// The name has no address.
    NameNotFound,
    /// It depends on something that is not given or not modelled.
    Unknown,
}

impl From<model::Outcome> for Outcome {
    fn from(outcome: model::Outcome) -> Self {
        let (word, status) = match outcome {
            model::Outcome::Answered { .. } => (OutcomeWord::Answered, None),
            model::Outcome::Status { code, .. } => (OutcomeWord::Status, Some(code)),
            model::Outcome::Refused => (OutcomeWord::Refused, None),
            model::Outcome::Reset => (OutcomeWord::Reset, None),
            model::Outcome::EmptyReply => (OutcomeWord::EmptyReply, None),
            model::Outcome::TlsError => (OutcomeWord::TlsError, None),
            model::Outcome::Unreachable => (OutcomeWord::Unreachable, None),
            model::Outcome::Hangs => (OutcomeWord::Hangs, None),
            model::Outcome::NameNotFound => (OutcomeWord::NameNotFound, None),
            model::Outcome::Unknown => (OutcomeWord::Unknown, None),
        };
        let after_ms = outcome.after().map(|after| after.as_millis() as u64);
        Self { outcome: word, status, after_ms }
    }
}

impl TryFrom<Outcome> for model::Outcome {
    type Error = NotAnOutcome;

    fn try_from(fields: Outcome) -> Result<Self, NotAnOutcome> {
        let after = Duration::from_millis(fields.after_ms.unwrap_or_default());
        Ok(match fields.outcome {
            OutcomeWord::Answered => Self::Answered { after },
            OutcomeWord::Status => Self::Status { code: fields.status.ok_or(NotAnOutcome)?, after },
            OutcomeWord::Refused => Self::Refused,
            OutcomeWord::Reset => Self::Reset,
            OutcomeWord::EmptyReply => Self::EmptyReply,
            OutcomeWord::TlsError => Self::TlsError,
            OutcomeWord::Unreachable => Self::Unreachable,
            OutcomeWord::Hangs => Self::Hangs,
            OutcomeWord::NameNotFound => Self::NameNotFound,
            OutcomeWord::Unknown => Self::Unknown,
        })
    }
}

/// The outcome is an HTTP status, and the status is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotAnOutcome;

impl fmt::Display for NotAnOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an outcome \"status\" without its status")
    }
}

impl std::error::Error for NotAnOutcome {}

/// An outcome and its share of the calls.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct OutcomeShare {
    /// How the calls end.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// The share of the calls that end so: more than 0 and at most 1.
    pub share: f64,
}

impl OutcomeShare {
    pub(crate) fn all(outcomes: &[(model::Outcome, model::Share)]) -> Vec<Self> {
        let share = |(outcome, share): &(model::Outcome, model::Share)| Self {
            outcome: (*outcome).into(),
            share: share.get(),
        };
        outcomes.iter().map(share).collect()
    }
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum Severity {
    /// Worth knowing.
    Info,
    /// Some calls are slow, or may fail.
    Warning,
    /// Calls fail.
    Error,
}

impl From<uturn_diagnose::Severity> for Severity {
    fn from(severity: uturn_diagnose::Severity) -> Self {
        match severity {
            uturn_diagnose::Severity::Info => Self::Info,
            uturn_diagnose::Severity::Warning => Self::Warning,
            uturn_diagnose::Severity::Error => Self::Error,
        }
    }
}

impl From<Severity> for uturn_diagnose::Severity {
    fn from(severity: Severity) -> Self {
        match severity {
            Severity::Info => Self::Info,
            Severity::Warning => Self::Warning,
            Severity::Error => Self::Error,
        }
    }
}

/// A stay of a packet at one place.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Hop<'a> {
    /// Where: `pod/NAMESPACE/NAME`, `node/NAME`, `lb/NAME`, `fabric`, `dns`, `outside`.
    pub place: String,
    /// The direction: `out` to the target, `back` to the client.
    pub way: String,
    /// What happens there, in order.
    pub steps: Vec<Step<'a>>,
}

impl<'a> From<&'a route::Hop> for Hop<'a> {
    fn from(hop: &'a route::Hop) -> Self {
        Self {
            place: hop.place.to_string(),
            way: hop.direction.to_string(),
            steps: hop.steps.iter().map(Step::from).collect(),
        }
    }
}

/// One thing that happens to a packet, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Step<'a> {
    /// What happens: `send`, `route`, `filter`, `translate`, `balance`, `drop` and others.
    pub kind: &'static str,
    /// Why, in words.
    pub why: &'a str,
    /// The rule or object that decides it.
    pub by: By,
    /// The packet before the step, where the step changes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Leg>,
    /// The packet after the step, where there still is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<Leg>,
}

impl<'a> From<&'a route::Step> for Step<'a> {
    fn from(step: &'a route::Step) -> Self {
        Self {
            kind: step.kind.as_str(),
            why: &step.why,
            by: By::from(&step.by),
            before: step.before.map(Leg::from),
            after: step.after.map(Leg::from),
        }
    }
}

/// A rule or an object, and where it is written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct By {
    /// The rule or the object.
    pub rule: String,
    /// `FILE:LINE:COLUMN`, or what it comes from where that is no file.
    pub source: String,
}

impl From<&model::Evidence> for By {
    fn from(by: &model::Evidence) -> Self {
        Self { rule: by.rule().to_string(), source: by.origin().to_string() }
    }
}

/// The addresses and ports of a packet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Leg {
    /// The source, `ADDRESS:PORT`.
    pub src: String,
    /// The destination, `ADDRESS:PORT`.
    pub dst: String,
}

impl From<route::Leg> for Leg {
    fn from(leg: route::Leg) -> Self {
        Self { src: leg.src.to_string(), dst: leg.dst.to_string() }
    }
}

/// Something that was supposed because nothing stated it, and what would settle it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Supposition(pub String);

impl Supposition {
    pub(crate) fn all<'s>(all: impl IntoIterator<Item = &'s model::Assumption>) -> Vec<Self> {
        all.into_iter().map(|supposition| Self(supposition.to_string())).collect()
    }
}
