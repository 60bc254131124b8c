//! Findings that are alike: many objects that fail in the same way for the same reason.
//!
//! In a large cluster they come in thousands. What takes long (cures that are tried, pictures)
//! is done for the worst of those that are alike, and they are told together.

use std::collections::HashMap;

use uturn_model::{Kind, Mechanism, Outcome, Text};

use crate::{Code, Finding, Severity};

/// Up to so many findings each is told by itself.
pub const MOST_APART: usize = 40;

/// Findings that are told together, by their places among all: the first is told in full.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alike {
    /// The first of them.
    pub first: usize,
    /// All of them, in their order.
    pub all: Vec<usize>,
}

/// Whatever two findings that are alike have in common.
#[derive(PartialEq, Eq, Hash)]
struct Look<'f> {
    code: Code,
    severity: Severity,
    kind: Kind,
    mechanism: Option<Mechanism>,
    /// How a call ends, however long that takes.
    outcome: (&'static str, Option<u16>),
    conditions: &'f [Text],
    has_cure: bool,
}

impl<'f> Look<'f> {
    fn of(finding: &'f Finding) -> Self {
        let code = match finding.outcome {
            Outcome::Status { code, .. } => Some(code),
            _ => None,
        };
        Self {
            code: finding.code,
            severity: finding.severity,
            kind: finding.subject.kind,
            mechanism: finding.mechanism,
            outcome: (finding.outcome.word(), code),
            conditions: &finding.conditions,
            has_cure: !finding.cures.is_empty(),
        }
    }
}

/// Findings in their order, those that are alike together; few findings each by itself.
pub fn alike<'f>(findings: impl ExactSizeIterator<Item = &'f Finding>) -> Vec<Alike> {
    let is_few = findings.len() <= MOST_APART;
    let mut groups: Vec<Alike> = Vec::new();
    let mut known: HashMap<Look<'f>, usize> = HashMap::new();
    for (at, finding) in findings.enumerate() {
        let next = groups.len();
        let group = match is_few {
            true => next,
            false => *known.entry(Look::of(finding)).or_insert(next),
        };
        match groups.get_mut(group) {
            Some(group) => group.all.push(at),
            None => groups.push(Alike { first: at, all: vec![at] }),
        }
    }
    groups
}
