//! The differences between the findings of two states of a cluster.

use std::collections::BTreeMap;
use std::fmt;

use uturn_diagnose::{Code, Finding, Severity};
use uturn_model::Text;

use super::{because, failing, with_targets};
use crate::words;

/// The findings of a state, as one line each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FindingLines(BTreeMap<FindingKey, Vec<String>>);

/// The key by which a finding is recognised in another state.
type FindingKey = (Code, String, Vec<String>, Vec<Text>);

/// The difference of a finding from the state before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// The finding is new.
    New,
    /// The finding had other clients, or calls ended differently.
    Changed,
    /// The finding is gone.
    Gone,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::New => "new",
            Self::Changed => "changed",
            Self::Gone => "gone",
        })
    }
}

impl FindingLines {
    /// Makes the lines of these findings.
    pub fn of(findings: &[Finding]) -> Self {
        let mut all: BTreeMap<FindingKey, Vec<String>> = BTreeMap::new();
        for finding in findings {
            let (subject, targets) = (finding.subject.to_string(), finding.targets.clone());
            let key = (finding.code, subject, targets, finding.conditions.clone());
            all.entry(key).or_default().push(line(finding));
        }
        all.values_mut().for_each(|lines| lines.sort_unstable());
        Self(all)
    }

    /// Returns the lines that differ from those before, with the kind of difference.
    pub fn since<'l>(&'l self, before: &'l Self) -> Vec<(Difference, &'l str)> {
        let mut found = Vec::new();
        for (key, now) in &self.0 {
            let old = before.0.get(key).map_or(&[][..], Vec::as_slice);
            let new = now.iter().filter(|line| !old.contains(line));
            let mut missing = old.iter().filter(|line| !now.contains(line));
            // A line that replaces another counts as changed.
            found.extend(new.map(|line| match missing.next() {
                Some(_) => (Difference::Changed, line.as_str()),
                None => (Difference::New, line.as_str()),
            }));
            found.extend(missing.map(|line| (Difference::Gone, line.as_str())));
        }
        let gone = before.0.iter().filter(|(key, _)| !self.0.contains_key(*key));
        let gone = gone.flat_map(|(_, lines)| lines);
        found.extend(gone.map(|line| (Difference::Gone, line.as_str())));
        found
    }
}

/// Formats a finding as a line: `error UT101 ingress/shop/front :80: 1 in 3 after 4 s, 3 pods: …`.
fn line(finding: &Finding) -> String {
    let severity = match finding.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "info",
    };
    let who = words::who(&finding.clients);
    let who = if who.is_empty() { String::new() } else { format!(", {who}") };
    let (what, failing, because) = (with_targets(finding), failing(finding), because(finding));
    format!("{severity} {} {what}: {failing}{who}: {because}", finding.code)
}
