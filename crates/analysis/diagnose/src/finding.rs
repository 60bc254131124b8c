//! What a finding is.

use std::fmt;
use std::ops::Deref;

use uturn_model::{FailurePoint, Mechanism, ObjectRef, Outcome, Share, Text};

use crate::clients::{Clients, Example};
use crate::{Code, Observation, Severity};

/// Something that people have to act on.
#[derive(Clone, Debug)]
pub struct Finding {
    /// What it is.
    pub code: Code,
    /// How bad it is.
    pub severity: Severity,
    /// The object that cannot be reached as it should be, or that keeps others from it.
    pub subject: ObjectRef,
    /// Where exactly: `:80 shop.example.com/`, and others that fail alike.
    pub targets: Vec<String>,
    /// The clients that are affected.
    pub clients: Clients,
    /// The share of their calls that is not answered at once.
    pub share_failing: Share,
    /// How such a call ends.
    pub outcome: Outcome,
    /// Why; none where nothing is lost on the way.
    pub mechanism: Option<Mechanism>,
    /// What shows it.
    pub example: Example,
    /// Where calls of the example fail, if another object than the target may be the cause.
    pub failure: Option<FailurePoint>,
    /// The evidence for it, besides the example.
    pub other_evidence: Vec<Observation>,
    /// What helps, the least intrusive first.
    pub cures: Vec<CureTitle>,
    /// The cures of which nobody knows whether they help, because they were not tried; `None` if all were.
    pub untried: Option<Untried>,
    /// What must hold for the finding to be true, if it depends on something unknown.
    pub conditions: Vec<Text>,
}

/// A cure in a line.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CureTitle {
    /// Its name: `call-service`. The same cure of another object has the same name.
    pub name: &'static str,
    /// What it does here: `call svc/shop/front:80`.
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
    /// Which; empty if no cure was tried at all.
    pub cures: Vec<CureTitle>,
    /// Why not.
    pub why: WhyUntried,
}

/// Why cures were not tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhyUntried {
    /// The trials before them took all the work that trials may take.
    Work,
    /// There are too many findings: cures are tried on some of them.
    ManyFindings,
    /// There are no manifests to edit, or they are too long to be read anew for each cure.
    LongManifests,
    /// The finding does not hold in the assumed reading of what is not known, in which cures are tried.
    OtherReading,
}

impl Untried {
    /// In a line: `not tried: call svc/shop/front:80; …`, and why.
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
            Self::Work => "the trials before took all the work that trials may take",
            Self::ManyFindings => "cures are tried on the worst findings only",
            Self::LongManifests => "a scan tries cures in manifests of up to 1 MiB",
            Self::OtherReading => "the finding holds only under its condition",
        })
    }
}

/// How many clients fail how often. Rounded: of shares that are the same, sums differ in their last
/// digits.
pub(crate) fn harm(share_failing: Share, clients: usize) -> u64 {
    (share_failing.get() * clients as f64 * 1e6).round() as u64
}

impl Finding {
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
