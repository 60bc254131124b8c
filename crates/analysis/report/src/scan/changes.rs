//! What differs between the findings of two states of a cluster.

use std::collections::BTreeMap;
use std::fmt;

use uturn_diagnose::{Code, Finding, Severity};
use uturn_model::Text;

use super::{because, failing, targets};
use crate::words;

/// The findings of a state, a line for each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FindingLines(BTreeMap<FindingKey, Vec<String>>);

/// What makes a finding the same one in another state.
type FindingKey = (Code, String, Vec<String>, Vec<Text>);

/// How a finding differs from the state before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    /// It was not there.
    New,
    /// It was there with other clients, or calls ended otherwise.
    Changed,
    /// It is not there any more.
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
    /// Of these findings.
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

    /// The lines that differ from those before, with how.
    pub fn since<'l>(&'l self, before: &'l Self) -> Vec<(Difference, &'l str)> {
        let mut found = Vec::new();
        for (key, now) in &self.0 {
            let old = before.0.get(key).map_or(&[][..], Vec::as_slice);
            let new = now.iter().filter(|line| !old.contains(line));
            let mut missing = old.iter().filter(|line| !now.contains(line));
            // What replaces a line is that line, changed.
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

/// A finding on a line: `error UT101 ingress/shop/front :80: 1 in 3 after 4 s, 3 pods: …`.
fn line(finding: &Finding) -> String {
    let severity = match finding.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "info",
    };
    let what = format!("{} {}", finding.subject.short(), targets(finding));
    let who = words::who(&finding.clients);
    let who = if who.is_empty() { String::new() } else { format!(", {who}") };
    let (what, failing, because) = (what.trim_end(), failing(finding), because(finding));
    format!("{severity} {} {what}: {failing}{who}: {because}", finding.code)
}
