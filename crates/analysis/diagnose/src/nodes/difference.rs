//! Differences between a node and what the cluster's objects require.

use uturn_model::Evidence;

use crate::{Code, Severity};

/// A difference between a node and what the objects require.
#[derive(Clone, Debug)]
pub(crate) struct Difference {
    /// The code of the difference.
    pub(crate) code: Code,
    /// The severity of the difference.
    pub(crate) severity: Severity,
    /// The place of the difference, what is expected, and what was found.
    pub(crate) what: String,
    /// The rule or setting that differs.
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
    /// The question in words.
    pub(crate) what: String,
    /// The answer to the question.
    pub(crate) answer: Answer,
}

/// The answer to a question about a captured node.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// The node is as required; the text has the evidence.
    Agrees(String),
    /// The node is not as required.
    Differs(Vec<Difference>),
    /// The capture or the objects do not answer the question; each text names what is missing.
    Unknown(Vec<String>),
}

impl Question {
    /// A question that either agrees or has differences.
    pub(crate) fn of(what: &str, agrees: impl Into<String>, differences: Vec<Difference>) -> Self {
        let answer = if differences.is_empty() {
            Answer::Agrees(agrees.into())
        } else {
            Answer::Differs(differences)
        };
        Self { what: what.to_owned(), answer }
    }

    /// A question without an answer.
    pub(crate) fn unknown(what: &str, why: impl Into<String>) -> Self {
        Self { what: what.to_owned(), answer: Answer::Unknown(vec![why.into()]) }
    }
}
