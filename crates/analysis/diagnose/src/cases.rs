//! Merges the findings of all readings of unknown facts: a finding that holds in all of them is
//! listed once, a finding that holds in some is listed with its condition.

use uturn_model::Cluster;
use uturn_path::what_if::conditions;

use crate::{Finding, Severity};

/// Merges findings, given as a list for each reading; the first list is that of the assumed
/// reading. Each finding is returned with the index of its reading. A finding that does not hold in
/// the assumed reading is at most a warning.
pub fn together(cluster: &Cluster, all: Vec<Vec<Finding>>) -> Vec<(usize, Finding)> {
    let mut found: Vec<(Vec<usize>, Finding)> = Vec::new();
    for (at, findings) in all.into_iter().enumerate() {
        for new in findings {
            match found
                .iter_mut()
                .find(|(places, known)| places.last() != Some(&at) && is_same(known, &new))
            {
                Some((places, _)) => places.push(at),
                None => found.push((vec![at], new)),
            }
        }
    }
    let findings = found.into_iter().map(|(places, mut finding)| {
        finding.conditions.splice(0..0, conditions(cluster, &places));
        if places[0] > 0 {
            finding.severity = finding.severity.min(Severity::Warning);
        }
        (places[0], finding)
    });
    findings.collect()
}

/// Returns whether two findings are the same.
fn is_same(finding: &Finding, other: &Finding) -> bool {
    (finding.code, &finding.subject, &finding.targets)
        == (other.code, &other.subject, &other.targets)
        && (finding.mechanism, finding.outcome) == (other.mechanism, other.outcome)
        && finding.clients.len() == other.clients.len()
        && finding.share_failing.is_about(other.share_failing)
}
