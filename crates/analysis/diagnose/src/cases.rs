//! Merges the findings of all readings of unknown facts: a finding that holds in all of them is
//! listed once, a finding that holds in some is listed with its condition.

use std::collections::HashMap;

use uturn_model::{Cluster, ObjectRef};
use uturn_path::what_if::Configurations;

use crate::{Code, Finding, Severity};

/// Merges findings, given as a list for each reading; the first list is that of the assumed
/// reading. Each finding is returned with the index of its reading. A finding that does not hold in
/// the assumed reading is at most a warning.
pub fn together(cluster: &Cluster, all: Vec<Vec<Finding>>) -> Vec<(usize, Finding)> {
    let mut found: Vec<(Vec<usize>, Finding)> = Vec::new();
    let mut of_objects: HashMap<(Code, ObjectRef), Vec<usize>> = HashMap::new();
    for (at, findings) in all.into_iter().enumerate() {
        for new in findings {
            let alike = of_objects.entry((new.code, new.subject.clone())).or_default();
            let known = alike.iter().copied().find(|known| {
                let (places, known) = &found[*known];
                places.last() != Some(&at) && is_same(known, &new)
            });
            match known {
                Some(known) => found[known].0.push(at),
                None => {
                    alike.push(found.len());
                    found.push((vec![at], new));
                }
            }
        }
    }
    let configurations = Configurations::of(cluster);
    let findings = found.into_iter().map(|(places, mut finding)| {
        finding.conditions.splice(0..0, configurations.conditions(&places));
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
