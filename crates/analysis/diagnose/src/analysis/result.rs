//! The result of an analysis.

use std::collections::BTreeMap;
use std::fmt;

use uturn_model::{Assumption, Flow, Mechanism, NamespacedName, Origin, Text, Unjudged, Verdict};
use uturn_scan::ScanResult;

#[cfg(doc)]
use super::Detail;
use super::{InWords, Note};
use crate::group::Group;
use crate::{Cure, Finding, Observation};

/// The result of an analysis.
#[derive(Debug)]
pub struct Analysis {
    /// The findings that count, the worst first.
    pub findings: Vec<Finding>,
    /// The findings grouped by cause.
    pub groups: Vec<Group>,
    /// The evidence of each finding, in the order of the findings. Empty with [`Detail::Findings`];
    /// with [`Detail::InFull`], entries of findings that are not shown in full are empty.
    pub evidence: Vec<Vec<Observation>>,
    /// Each finding in words, in the order of the findings.
    pub in_words: Vec<InWords>,
    /// The origin of each finding's object, in the order of the findings.
    pub origins: Vec<Origin>,
    /// Details of the findings that are shown in full, by their indices. Empty unless
    /// [`Detail::InFull`] was asked for.
    pub in_full: BTreeMap<usize, InFull>,
    /// The findings that do not count.
    pub suppressed: Vec<Suppressed>,
    /// The numbers of examined flows.
    pub flows: FlowCounts,
    /// The pods on nodes that have no address yet, ordered by name. Their calls are not judged.
    pub without_address: Vec<NamespacedName>,
    /// Calls that are not judged for other reasons than an unjudged object of the cluster.
    pub unjudged: Vec<Unjudged>,
    /// The assumptions on which the result rests.
    pub supposed: Vec<Assumption>,
    /// Notes about the analysis itself.
    pub notes: Vec<Note>,
}

/// Details of one finding.
#[derive(Clone, Debug, Default)]
pub struct InFull {
    /// The flow that shows the finding.
    pub flow: Option<Flow>,
    /// The verdicts on that flow, with every hop.
    pub verdicts: Vec<Verdict>,
    /// All cures that were tried, those that work first.
    pub cures: Vec<Cure>,
}

/// A finding that does not count.
#[derive(Clone, Debug)]
pub struct Suppressed {
    /// The finding.
    pub finding: Finding,
    /// The origin of the finding's object.
    pub origin: Origin,
    /// The reason why the finding does not count.
    pub why: Suppression,
}

/// The reason why a finding does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Suppression {
    /// An annotation of the object ignores the finding.
    Ignored {
        /// The reason that the annotation gives.
        reason: Text,
    },
    /// The finding was known before.
    Known {
        /// The list that contains the finding.
        baseline: Text,
    },
}

impl fmt::Display for Suppression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ignored { reason } => write!(f, "ignored: {reason}"),
            Self::Known { baseline } => write!(f, "known in {baseline}"),
        }
    }
}

/// The numbers of flows that a scan examined. Pods of one node that are treated alike are one
/// client, unless they are endpoints of the target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCounts {
    /// All flows.
    pub all: usize,
    /// Flows that are answered at once.
    pub fine: usize,
    /// Flows that cannot be judged.
    pub open: usize,
    /// Flows of which NetworkPolicies keep all or some from being answered.
    pub denied: usize,
}

impl FlowCounts {
    pub(super) fn of(scanned: &[ScanResult]) -> Self {
        let count = |counts: &dyn Fn(&ScanResult) -> bool| {
            scanned.iter().filter(|result| counts(result)).map(ScanResult::flows).sum()
        };
        Self {
            all: count(&|_| true),
            fine: count(&|result| result.verdicts.iter().all(Verdict::is_fine)),
            open: count(&|result| result.verdicts.iter().any(Verdict::is_open)),
            denied: count(&|result| {
                let mechanisms = |verdict: &Verdict| verdict.mechanisms.first().copied();
                let mut denied = result.verdicts.iter().filter_map(mechanisms);
                denied.any(|first| first == Mechanism::NetworkPolicy)
            }),
        }
    }
}
