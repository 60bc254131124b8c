//! What the evidence of a finding ends with.

use uturn_diagnose::{Finding, Observation};
use uturn_model::Evidence;

/// Panics unless the evidence ends with a rule of the security groups that the finding is about.
pub(crate) fn assert_ends_at_its_security_groups(finding: &Finding, evidence: &[Observation]) {
    let last = evidence.last().map(|last| &last.by);
    let Some(Evidence::SecurityGroups { names, .. }) = last else { panic!("{evidence:#?}") };
    assert_eq!(names.join(", "), *finding.subject.name);
}
