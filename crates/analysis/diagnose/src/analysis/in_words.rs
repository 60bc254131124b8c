//! What findings say in words: who calls in vain, and what is the reason.

use uturn_model::{Cluster, Text};
use uturn_path::WalkError;
use uturn_scan::Scanner;

use crate::{Finding, Observation, callers, reason};

/// A finding in words, as far as there are better ones than numbers and the names of mechanisms.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InWords {
    /// The callers by their workloads; `None` if they are too many.
    pub who: Option<Text>,
    /// The reason, beginning with the object that has to change; `None` if nothing shows it.
    pub because: Option<Text>,
}

impl InWords {
    fn of(cluster: &Cluster, finding: &Finding, evidence: &[Observation]) -> Self {
        Self {
            who: callers::describe(cluster, &finding.clients).map(Text::from),
            because: reason::of_finding(finding, evidence),
        }
    }
}

/// Puts findings into words. Those that are shown in full are walked if their evidence is not known
/// yet and only a walk shows the reason.
pub(super) fn all(
    scanners: &[Scanner<'_, '_>],
    findings: &[(usize, Finding)],
    in_full: &[usize],
    evidence: &[Vec<Observation>],
) -> Result<Vec<InWords>, WalkError> {
    let mut shown = vec![false; findings.len()];
    in_full.iter().for_each(|index| shown[*index] = true);
    let of = |(index, (reading, finding)): (usize, &(usize, Finding))| {
        let scanner = &scanners[*reading];
        let known = evidence.get(index).map_or(&[][..], Vec::as_slice);
        let walked;
        let evidence = if known.is_empty() && shown[index] && reason::needs_walk(finding) {
            walked = finding.evidence(scanner)?;
            &walked
        } else {
            known
        };
        Ok(InWords::of(scanner.engine().cluster(), finding, evidence))
    };
    findings.iter().enumerate().map(of).collect()
}
