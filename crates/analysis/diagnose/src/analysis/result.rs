//! The result of an analysis.

use std::collections::BTreeMap;
use std::fmt;

use uturn_model::{Assumption, Flow, NamespacedName, Origin, Text, Unjudged, Verdict};
use uturn_scan::ScanResult;

#[cfg(doc)]
use super::Detail;
use super::Note;
use crate::group::Group;
use crate::{Cure, Finding, Observation};

/// The result of an analysis.
#[derive(Debug)]
pub struct Analysis {
    /// The findings that count, the worst first.
    pub findings: Vec<Finding>,
    /// The findings grouped by cause.
    pub groups: Vec<Group>,
    /// What each finding rests on, in the order of the findings. Empty with
    /// [`Detail::Findings`]; with [`Detail::InFull`], entries of other findings are empty.
    pub evidence: Vec<Vec<Observation>>,
    /// Where the object of each finding is written, in the order of the findings.
    pub origins: Vec<Origin>,
    /// More about the findings that are shown in full, by their indices. Empty unless
    /// [`Detail::InFull`] was asked for.
    pub in_full: BTreeMap<usize, InFull>,
    /// The findings that do not count.
    pub suppressed: Vec<Suppressed>,
    /// How many flows were looked at.
    pub flows: FlowCounts,
    /// Pods on nodes that have no address yet, in order of their names: their calls are not judged.
    pub without_address: Vec<NamespacedName>,
    /// Calls that are not judged for other reasons than an object of the cluster's that is not.
    pub unjudged: Vec<Unjudged>,
    /// Assumptions that the result rests on.
    pub supposed: Vec<Assumption>,
    /// What the user should know about the analysis itself.
    pub notes: Vec<Note>,
}

/// More about one finding.
#[derive(Clone, Debug, Default)]
pub struct InFull {
    /// The flow that shows it.
    pub flow: Option<Flow>,
    /// The verdicts on that flow, with every hop.
    pub verdicts: Vec<Verdict>,
    /// All cures that were tried, the ones that work first.
    pub cures: Vec<Cure>,
}

/// A finding that does not count.
#[derive(Clone, Debug)]
pub struct Suppressed {
    /// The finding.
    pub finding: Finding,
    /// Where its object is written.
    pub origin: Origin,
    /// Why it does not count.
    pub why: Suppression,
}

/// Why a finding does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Suppression {
    /// An annotation of its object says so.
    Ignored {
        /// The reason that the annotation gives.
        reason: Text,
    },
    /// It was there before.
    Known {
        /// The list that has it.
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

/// How many flows a scan looked at. Pods of one node that are treated alike are one client,
/// unless they are endpoints of the target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FlowCounts {
    /// All of them.
    pub all: usize,
    /// How many are answered at once.
    pub fine: usize,
    /// How many cannot be judged.
    pub open: usize,
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
        }
    }
}
