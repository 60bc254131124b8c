//! Reads annotations that ignore findings: `uturn.dev/ignore: "UT101: reason"`, with several
//! entries separated by commas or on separate lines.

use thiserror::Error;
use uturn_model::{Cluster, Labels, ObjectKind, ObjectRef, Origin, Text};

use super::{Note, Suppression};
use crate::{Code, Finding};

pub(super) const ANNOTATION: &str = "uturn.dev/ignore";

/// The findings that annotations of a cluster ignore.
#[derive(Debug, Default)]
pub struct IgnoreRules(Vec<IgnoreRule>);

/// A code that an object's annotation ignores.
#[derive(Debug)]
struct IgnoreRule {
    object: ObjectRef,
    code: Code,
    reason: Text,
}

/// The error that an annotation cannot be understood.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{origin}: {object}: {annotation}: {why}", annotation = ANNOTATION)]
pub struct IgnoreError {
    origin: Origin,
    object: ObjectRef,
    why: String,
}

impl IgnoreRules {
    /// Reads the annotations of all objects that findings can be about.
    ///
    /// # Errors
    /// Returns each entry that has no known code or no reason.
    pub fn read(cluster: &Cluster) -> Result<Self, Vec<IgnoreError>> {
        let mut rules = Vec::new();
        let mut errors = Vec::new();
        for (object, annotations, origin) in annotated(cluster) {
            let Some(text) = annotations.get(ANNOTATION) else { continue };
            for entry in entries(text) {
                match parse(entry) {
                    Ok((code, reason)) => {
                        let (object, reason) = (object.clone(), reason.into());
                        rules.push(IgnoreRule { object, code, reason });
                    }
                    Err(why) => {
                        let (origin, object) = (origin.clone(), object.clone());
                        errors.push(IgnoreError { origin, object, why });
                    }
                }
            }
        }
        if errors.is_empty() { Ok(Self(rules)) } else { Err(errors) }
    }

    /// Returns why a finding is ignored. Returns `None` if no annotation ignores it.
    pub(super) fn reason(&self, finding: &Finding) -> Option<Suppression> {
        let rule = self.0.iter().find(|rule| rule.matches(finding))?;
        Some(Suppression::Ignored { reason: rule.reason.clone() })
    }

    /// Iterates over the rules that match none of these findings.
    pub(super) fn unused<'f>(
        &self,
        findings: impl Iterator<Item = &'f Finding> + Clone,
    ) -> impl Iterator<Item = Note> {
        let unused = self.0.iter().filter(move |rule| !findings.clone().any(|f| rule.matches(f)));
        unused.map(|rule| Note::IgnoresNothing { object: rule.object.clone(), code: rule.code })
    }
}

impl IgnoreRule {
    fn matches(&self, finding: &Finding) -> bool {
        finding.code == self.code && finding.subject == self.object
    }
}

/// Iterates over the objects that findings can be about, with their annotations.
fn annotated(cluster: &Cluster) -> impl Iterator<Item = (ObjectRef, &Labels, &Origin)> {
    let services = cluster.services.values();
    let services =
        services.map(|service| (service.object(), &service.annotations, &service.origin));
    let ingresses = cluster.ingresses.values();
    let ingresses =
        ingresses.map(|ingress| (ingress.object(), &ingress.annotations, &ingress.origin));
    let nodes = cluster.nodes.values().map(|node| {
        (ObjectRef::global(ObjectKind::Node, node.name.as_str()), &node.annotations, &node.origin)
    });
    services.chain(ingresses).chain(nodes)
}

/// Returns the entries of an annotation. An entry ends with its line, or before a comma that is
/// followed by a code: reasons may have commas.
fn entries(text: &str) -> Vec<&str> {
    let mut all = Vec::new();
    for line in text.lines() {
        let mut rest = line;
        let mut from = 0;
        while let Some(at) = rest[from..].find(',').map(|at| at + from) {
            if starts_with_code(rest[at + 1..].trim_start()) {
                all.push(&rest[..at]);
                rest = &rest[at + 1..];
                from = 0;
            } else {
                from = at + 1;
            }
        }
        all.push(rest);
    }
    all.retain(|entry| !entry.trim().is_empty());
    all
}

fn starts_with_code(text: &str) -> bool {
    let digits = text.strip_prefix("UT").unwrap_or_default();
    digits.starts_with(|c: char| c.is_ascii_digit())
}

fn parse(entry: &str) -> Result<(Code, &str), String> {
    let (code, reason) = entry.split_once(':').unwrap_or((entry, ""));
    let (code, reason) = (code.trim(), reason.trim());
    let known = code.parse::<Code>().map_err(|_| {
        format!("found {code:?}, expected CODE: reason, with a code that uturn explain lists")
    })?;
    match reason {
        "" => Err(format!("{code} has no reason: expected \"{code}: why it may stay\"")),
        reason => Ok((known, reason)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_end_at_lines_and_before_codes() {
        let text = "UT101: by name, always, UT102:x,UT103 : y\n\n  UT105: z\n";
        let all: Vec<_> = entries(text).into_iter().map(|entry| parse(entry).unwrap()).collect();
        let pairs: Vec<String> = all.iter().map(|(code, why)| format!("{code}={why}")).collect();
        assert_eq!(pairs, ["UT101=by name, always", "UT102=x", "UT103=y", "UT105=z"]);
        assert!(entries(" \n").is_empty());
    }

    #[test]
    fn a_reason_is_needed() {
        for (entry, expected) in [
            ("UT101", "UT101 has no reason"),
            ("UT101:  ", "UT101 has no reason"),
            ("UT999: x", "found \"UT999\""),
            ("all: x", "found \"all\""),
        ] {
            assert!(parse(entry).unwrap_err().contains(expected), "{entry}");
        }
    }
}
