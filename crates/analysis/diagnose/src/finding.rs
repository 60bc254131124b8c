//! Findings and their cures, as they are reported.

use std::fmt;
use std::ops::Deref;

use uturn_model::{FailurePoint, Mechanism, ObjectRef, Outcome, Share, Text};

use crate::clients::{Clients, Example};
use crate::{Code, Observation, Severity};

/// A fault that people have to act on.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The code of the finding.
    pub code: Code,
    /// The severity of the finding.
    pub severity: Severity,
    /// The object that cannot be reached as it should be, or that keeps others from it.
    pub subject: ObjectRef,
    /// The targets that fail alike: `:80 shop.example.com/`.
    pub targets: Vec<String>,
    /// The clients that are affected.
    pub clients: Clients,
    /// The share of these clients' calls that is not answered at once.
    pub share_failing: Share,
    /// The outcome of such a call.
    pub outcome: Outcome,
    /// The mechanism of the failure; `None` if no call is lost.
    pub mechanism: Option<Mechanism>,
    /// The example that shows the finding.
    pub example: Example,
    /// The place where calls of the example fail, if another object than the target may be the
    /// cause.
    pub failure: Option<FailurePoint>,
    /// The evidence for the finding besides the example.
    pub other_evidence: Vec<Observation>,
    /// The cures that help, the least intrusive first.
    pub cures: Vec<CureTitle>,
    /// The cures that were not tried, so that it is not known whether they help; `None` if all were
    /// tried.
    pub untried: Option<Untried>,
    /// The conditions under which the finding is true, if it depends on something unknown.
    pub conditions: Vec<Text>,
}

/// The name and text of a cure.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CureTitle {
    /// The name of the cure: `call-service`. The same cure of another object has the same name.
    pub name: &'static str,
    /// The cure for this object, in a line: `call svc/shop/front:80`.
    pub text: String,
}

impl Deref for CureTitle {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for CureTitle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Cures that were not tried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Untried {
    /// The cures; empty if no cure was tried at all.
    pub cures: Vec<CureTitle>,
    /// The reason why they were not tried.
    pub why: WhyUntried,
}

/// The reason why cures were not tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhyUntried {
    /// The trials before them took all the work that trials may take.
    Work,
    /// There are too many findings: cures are tried on some of them only.
    ManyFindings,
    /// One works, and the manifests are long: a scan tries no more.
    OneWorks,
    /// There are no manifests to edit, or they are too long to be kept by a scan.
    LongManifests,
    /// Cures are tried in the assumed reading of unknown facts, in which the finding does not hold.
    OtherReading,
}

impl Untried {
    /// Describes the cures in a line: `not tried: call svc/shop/front:80; …`, with the reason.
    pub fn in_a_line(&self) -> String {
        match self.cures.as_slice() {
            [] => format!("not tried: {}", self.why),
            some => {
                let titles: Vec<&str> = some.iter().map(|cure| &*cure.text).collect();
                format!("not tried: {} ({})", titles.join("; "), self.why)
            }
        }
    }
}

impl fmt::Display for WhyUntried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Work => "earlier trials used up all the work that trials may take",
            Self::ManyFindings => "cures are tried on the worst findings only",
            Self::OneWorks => "in manifests of more than 1 MiB a scan tries cures until one works",
            Self::LongManifests => "a scan tries cures in manifests of up to 64 MiB",
            Self::OtherReading => "the finding holds only under its condition",
        })
    }
}

/// Returns the failing share times the number of clients. The result is rounded, because sums of
/// equal shares may differ in their last digits.
pub(crate) fn harm(share_failing: Share, clients: usize) -> u64 {
    (share_failing.get() * clients as f64 * 1e6).round() as u64
}

impl Finding {
    /// Returns whether this finding about the text of an object replaces a less specific one that a
    /// walk made. A hint does not. A missing port and missing targets do, because the walked
    /// finding holds only under the same conditions.
    pub(crate) fn replaces_walked(&self) -> bool {
        self.conditions.is_empty() || matches!(self.code, Code::NamedPortMissing | Code::NoTargets)
    }

    /// Merges a finding with the same cause into this one.
    pub(crate) fn take(&mut self, new: Self) {
        self.clients = self.clients.and(&new.clients);
        let known = &self.targets;
        let more: Vec<String> =
            new.targets.into_iter().filter(|target| !known.contains(target)).collect();
        self.targets.extend(more);
        let known = &self.other_evidence;
        let more: Vec<Observation> =
            new.other_evidence.into_iter().filter(|finding| !known.contains(finding)).collect();
        self.other_evidence.extend(more);
        self.cures.retain(|cure| new.cures.contains(cure));
        if new.severity > self.severity {
            self.severity = new.severity;
            (self.example, self.failure) = (new.example, new.failure);
        }
        if new.share_failing > self.share_failing {
            self.share_failing = new.share_failing;
            self.outcome = new.outcome;
        }
    }
}
