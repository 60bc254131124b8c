//! Baselines: lists of known findings that do not count again.
//!
//! Two findings are equal if code, object, mechanism and outcome are equal. Order, shares, clients
//! and lines of files do not matter, so that a cluster that grows or a manifest that is sorted anew
//! has no new findings. One more target, or a higher severity, is new.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use uturn_diagnose::{Finding, Severity};
use uturn_model::Outcome;

use crate::schema::baseline::{BaselineFile, KnownFinding};

/// The identity of a finding. Fingerprints are made of it: names and order of the fields must stay.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Identity {
    code: String,
    kind: String,
    namespace: Option<String>,
    name: String,
    mechanism: Option<String>,
    outcome: String,
}

impl Identity {
    /// Returns the identity of a finding.
    pub fn of(finding: &Finding) -> Self {
        let outcome = match finding.outcome {
            Outcome::Status { code, .. } => format!("status {code}"),
            other => other.word().to_owned(),
        };
        Self {
            code: finding.code.to_string(),
            kind: finding.subject.kind.as_str().to_owned(),
            namespace: finding.subject.namespace.as_ref().map(ToString::to_string),
            name: finding.subject.name.to_string(),
            mechanism: finding.mechanism.map(|mechanism| mechanism.as_str().to_owned()),
            outcome,
        }
    }
}

/// Returns the fingerprints of findings. The same finding has the same fingerprint in every run,
/// and no other finding has it.
pub fn fingerprints<'f>(findings: impl Iterator<Item = &'f Finding>) -> Vec<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let fingerprint = |finding: &Finding| {
        let mut targets = finding.targets.clone();
        targets.sort_unstable();
        let conditions: Vec<&str> =
            finding.conditions.iter().map(|condition| &**condition).collect();
        let what = serde_json::to_string(&(Identity::of(finding), targets, conditions))
            .expect("an identity has only text in it");
        let hash: String =
            Sha256::digest(what).iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        let count = seen.entry(hash.clone()).or_default();
        *count += 1;
        format!("{hash}:{count}")
    };
    findings.map(fingerprint).collect()
}

/// The known findings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Baseline(BTreeMap<Identity, Known>);

/// The known severity and targets of a finding.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Known {
    severity: Severity,
    targets: BTreeSet<String>,
}

/// The version of the file format.
const VERSION: u64 = 1;

impl Baseline {
    /// Makes a baseline of these findings.
    pub fn of<'f>(findings: impl Iterator<Item = &'f Finding>) -> Self {
        let mut all = BTreeMap::new();
        for finding in findings {
            let known = all
                .entry(Identity::of(finding))
                .or_insert_with(|| Known { severity: finding.severity, targets: BTreeSet::new() });
            known.severity = known.severity.max(finding.severity);
            known.targets.extend(finding.targets.iter().cloned());
        }
        Self(all)
    }

    /// Returns the number of findings.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether nothing in a finding is new.
    pub fn knows(&self, finding: &Finding) -> bool {
        self.0.get(&Identity::of(finding)).is_some_and(|known| {
            finding.severity <= known.severity
                && finding.targets.iter().all(|target| known.targets.contains(target))
        })
    }

    /// Returns the number of the baseline's findings that are not among these.
    pub fn gone<'f>(&self, findings: impl Iterator<Item = &'f Finding>) -> usize {
        let here: BTreeSet<Identity> = findings.map(Identity::of).collect();
        self.0.keys().filter(|identity| !here.contains(identity)).count()
    }

    /// Returns the text of a baseline file.
    pub fn text(&self) -> String {
        let findings = self.0.iter().map(|(identity, known)| known.entry(identity.clone()));
        crate::json::document(&BaselineFile { version: VERSION, findings: findings.collect() })
    }

    /// Parses the text that [`text`](Self::text) wrote.
    ///
    /// # Errors
    /// Returns a description of the fault, with its place in the file.
    pub fn parse(text: &str, file: &str) -> Result<Self, String> {
        let invalid = |why: serde_json::Error| {
            format!("{file}:{}:{}: not a baseline: {why}", why.line(), why.column())
        };
        let value: Value = serde_json::from_str(text).map_err(invalid)?;
        match value["uturnBaseline"].as_u64() {
            Some(VERSION) => {}
            Some(other) => {
                return Err(format!(
                    "{file}: found a baseline of version {other}, expected version {VERSION}: \
                     write it again with --write-baseline"
                ));
            }
            None => {
                return Err(format!(
                    "{file}: not a baseline: expected \"uturnBaseline\": {VERSION}, as \
                     --write-baseline writes"
                ));
            }
        }
        if !value["findings"].is_array() {
            return Err(format!("{file}: \"findings\": expected a list"));
        }
        let read: BaselineFile = serde_json::from_str(text).map_err(invalid)?;
        Ok(Self(read.findings.into_iter().map(Known::of_entry).collect()))
    }
}

impl Known {
    fn entry(&self, identity: Identity) -> KnownFinding {
        let Identity { code, kind, namespace, name, mechanism, outcome } = identity;
        let (severity, targets) = (self.severity.into(), self.targets.clone());
        KnownFinding { code, kind, namespace, name, mechanism, outcome, severity, targets }
    }

    fn of_entry(entry: KnownFinding) -> (Identity, Self) {
        let KnownFinding { code, kind, namespace, name, mechanism, outcome, severity, targets } =
            entry;
        let identity = Identity { code, kind, namespace, name, mechanism, outcome };
        (identity, Self { severity: severity.into(), targets })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::finding;

    #[test]
    fn what_is_written_is_read_back() {
        let all = [finding("front", &[":80 a/", ":80 b/"]), finding("back", &[":443"])];
        let baseline = Baseline::of(all.iter());
        assert_eq!(baseline.len(), 2);
        assert_eq!(Baseline::parse(&baseline.text(), "b.json"), Ok(baseline.clone()));
        let turned = [finding("back", &[":443"]), finding("front", &[":80 b/", ":80 a/"])];
        assert_eq!(Baseline::of(turned.iter()).text(), baseline.text());
        let prints = |all: &[Finding]| fingerprints(all.iter());
        let (first, second) = (prints(&all), prints(&turned));
        assert_eq!((&first[0], &first[1]), (&second[1], &second[0]));
    }

    #[test]
    fn more_is_new_and_less_is_not() {
        let baseline = Baseline::of([finding("front", &[":80 a/", ":80 b/"])].iter());
        assert!(baseline.knows(&finding("front", &[":80 b/"])));
        assert!(!baseline.knows(&finding("front", &[":80 b/", ":80 c/"])));
        assert!(!baseline.knows(&finding("other", &[":80 b/"])));
        let mut other = finding("front", &[":80 a/"]);
        other.share_failing = uturn_model::Share::new(0.9);
        assert!(baseline.knows(&other), "a share that moved is nothing new");
        other.outcome = Outcome::Hangs;
        assert!(!baseline.knows(&other));
        let mut warning = finding("front", &[":80 a/"]);
        warning.severity = Severity::Warning;
        let mild = Baseline::of([warning].iter());
        assert!(!mild.knows(&finding("front", &[":80 a/"])));
        assert_eq!(baseline.gone([finding("other", &[])].iter()), 1);
    }

    #[test]
    fn faults_say_where() {
        for (text, expected) in [
            ("{\n \"uturnBaseline\": ,", "b.json:2:19: not a baseline"),
            ("[]", "b.json: not a baseline: expected"),
            (r#"{"uturnBaseline": 7}"#, "version 7, expected version 1"),
            (r#"{"uturnBaseline": 1}"#, "\"findings\": expected a list"),
            (r#"{"uturnBaseline": 1, "findings": [{"code": 3}]}"#, "b.json:1:44: "),
        ] {
            let fault = Baseline::parse(text, "b.json").unwrap_err();
            assert!(fault.contains(expected), "{fault}");
        }
    }

    #[test]
    fn two_alike_are_still_two() {
        let all = [finding("front", &[":80"]), finding("front", &[":80"])];
        let prints = fingerprints(all.iter());
        assert_ne!(prints[0], prints[1]);
    }
}
