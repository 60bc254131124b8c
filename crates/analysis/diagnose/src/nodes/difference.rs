//! What a node has otherwise than the cluster's objects promise.

use uturn_model::Evidence;

use crate::{Code, Severity};

/// One thing that differs.
#[derive(Clone, Debug)]
pub(crate) struct Difference {
    /// What it is.
    pub(crate) code: Code,
    /// How bad it is.
    pub(crate) severity: Severity,
    /// Where, and how: what is expected, and what was found.
    pub(crate) what: String,
    /// The rule, or the setting.
    pub(crate) by: Evidence,
}

impl Difference {
    pub(crate) fn new(code: Code, what: impl Into<String>, by: Evidence) -> Self {
        Self { code, severity: code.severity(), what: what.into(), by }
    }
}

/// A question about a captured node.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    /// What is asked.
    pub(crate) what: String,
    /// The answer.
    pub(crate) answer: Answer,
}

/// The answer to a question about a captured node.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// As promised; the text says by what.
    Agrees(String),
    /// Not as promised.
    Differs(Vec<Difference>),
    /// The capture or the objects do not say; each text says what of it.
    Unknown(Vec<String>),
}

impl Question {
    /// A question that either agrees or has differences.
    pub(crate) fn of(what: &str, agrees: impl Into<String>, differences: Vec<Difference>) -> Self {
        let answer = match differences.is_empty() {
            true => Answer::Agrees(agrees.into()),
            false => Answer::Differs(differences),
        };
        Self { what: what.to_owned(), answer }
    }

    /// A question without an answer.
    pub(crate) fn unknown(what: &str, why: impl Into<String>) -> Self {
        Self { what: what.to_owned(), answer: Answer::Unknown(vec![why.into()]) }
    }
}
