//! Findings of each reading of what is not known, put together: what holds in all of them is
//! said once, and what holds in some with its condition. What a load balancer does is only
//! known of a cloud: where that is supposed, it is a condition too, and a guess is no worse than
//! a warning.

use uturn_model::{Cluster, Kind};
use uturn_path::cases::conditions;

use crate::{Code, Example, Finding, Severity};

/// Puts findings together, a list for each reading; the first is of what is taken for true.
/// Each comes with the reading that it is of. What only holds where something else is true
/// is no worse than a warning.
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
    let told = found.into_iter().map(|(places, mut finding)| {
        finding.conditions.splice(0..0, conditions(cluster, &places));
        if cluster.provider.is_supposed() && rests_on_cloud(&finding) {
            finding.conditions.push(format!("the cloud is {}", cluster.provider.value).into());
            // What is written is fine in most other clouds.
            let is_written =
                matches!(finding.example, Example::Written) || finding.code == Code::new(203);
            let most = if is_written { Severity::Info } else { Severity::Warning };
            finding.severity = finding.severity.min(most);
        }
        if places[0] > 0 {
            finding.severity = finding.severity.min(Severity::Warning);
        }
        (places[0], finding)
    });
    told.collect()
}

/// Whether it tells what a load balancer of the cloud does.
fn rests_on_cloud(finding: &Finding) -> bool {
    // What an Ingress names is there or not, whoever reads it.
    let is_written = finding.code == Code::new(402) && !finding.written.is_empty();
    finding.subject.kind == Kind::Ingress && !is_written || finding.code.is_of_balancer()
}

/// Whether two findings say the same.
fn is_same(one: &Finding, other: &Finding) -> bool {
    (one.code, &one.subject, &one.targets) == (other.code, &other.subject, &other.targets)
        && (one.mechanism, one.outcome) == (other.mechanism, other.outcome)
        && one.clients.len() == other.clients.len()
        && (one.share_failing - other.share_failing).abs() < 1e-6
}
