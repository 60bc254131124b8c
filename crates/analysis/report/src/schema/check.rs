//! `check -o json`.

use serde::Serialize;
use uturn_diagnose::check;
use uturn_model as model;

use super::common::Supposition;

/// What `uturn check -o json` prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Checks<'a> {
    /// A checklist for each object.
    pub checklists: Vec<Checklist<'a>>,
    /// What was supposed because nothing stated it.
    pub supposed: Vec<Supposition>,
}

impl<'a> Checks<'a> {
    /// Of checklists, and what was supposed for them.
    pub fn new(lists: &'a [check::Checklist], supposed: &[model::Assumption]) -> Self {
        Self {
            checklists: lists.iter().map(Checklist::from).collect(),
            supposed: Supposition::all(supposed),
        }
    }
}

/// The checks of one object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Checklist<'a> {
    /// What is checked: `svc/NAMESPACE/NAME`.
    pub subject: &'a str,
    /// The checks, in the order in which they are made.
    pub checks: Vec<Check<'a>>,
}

impl<'a> From<&'a check::Checklist> for Checklist<'a> {
    fn from(list: &'a check::Checklist) -> Self {
        Self { subject: &list.subject, checks: list.checks.iter().map(Check::from).collect() }
    }
}

/// One check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Check<'a> {
    /// What is checked.
    pub check: &'a str,
    /// Whether it is as it should be.
    pub state: State,
    /// What the answer rests on.
    pub evidence: &'a [String],
    /// What to check or do next; null where there is nothing.
    pub next: Option<&'a str>,
}

impl<'a> From<&'a check::Check> for Check<'a> {
    fn from(check: &'a check::Check) -> Self {
        Self {
            check: &check.what,
            state: State::from(check.state),
            evidence: &check.evidence,
            next: check.next.as_deref(),
        }
    }
}

/// Whether something is as it should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum State {
    /// It is.
    Ok,
    /// It is not.
    Failed,
    /// The input does not say.
    Unknown,
}

impl From<check::State> for State {
    fn from(state: check::State) -> Self {
        match state {
            check::State::Ok => Self::Ok,
            check::State::Failed => Self::Failed,
            check::State::Unknown => Self::Unknown,
        }
    }
}
