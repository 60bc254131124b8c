//! Findings grouped by cause.

use serde::Serialize;
use uturn_diagnose as diagnose;
use uturn_model as model;

use super::super::common::Severity;

/// Findings that have the same cause.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Group<'a> {
    /// The code of all its findings.
    pub code: String,
    /// Why calls fail; null where nothing is lost on the way.
    pub mechanism: Option<&'static str>,
    /// The severity of its worst finding.
    pub severity: Severity,
    /// The kind of object that its findings are about, as manifests spell it.
    pub kind: &'static str,
    /// What has to hold for its findings, where that is not known; empty where they always hold,
    /// and where each finding has conditions that name its own object.
    #[serde(rename = "if")]
    pub conditions: Vec<&'a str>,
    /// The positions of its findings in `findings`, counted from 0; the worst finding first.
    pub findings: &'a [usize],
    /// How many different objects its findings are about.
    pub objects: usize,
    /// How many different targets fail; a finding that names no target counts as one.
    pub targets: usize,
    /// How many different clients fail.
    pub clients: usize,
    /// The least intrusive cure that all its findings have; null where there is none.
    pub cure: Option<GroupCure>,
}

impl<'a> Group<'a> {
    /// `findings` is the list that was grouped.
    pub(super) fn new(group: &'a diagnose::Group, findings: &[diagnose::Finding]) -> Self {
        let cause = &group.cause;
        Self {
            code: cause.code.to_string(),
            mechanism: cause.mechanism.map(model::Mechanism::as_str),
            severity: group.severity.into(),
            kind: cause.object_kind.as_str(),
            conditions: cause.conditions.iter().map(|condition| &**condition).collect(),
            findings: &group.members,
            objects: group.objects,
            targets: group.targets,
            clients: group.clients.len(),
            cure: group.cure(findings).as_ref().map(GroupCure::from),
        }
    }
}

/// A cure that all findings of a group have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct GroupCure {
    /// What it changes; of a cure for each object, as it reads for the worst finding.
    pub text: String,
    /// How many findings one change cures.
    pub scope: CureScope,
}

impl From<&diagnose::GroupCure> for GroupCure {
    fn from(cure: &diagnose::GroupCure) -> Self {
        let scope = match cure {
            diagnose::GroupCure::Once(_) => CureScope::All,
            diagnose::GroupCure::ForEach(_) => CureScope::Each,
        };
        Self { text: cure.title().to_string(), scope }
    }
}

/// How many findings of a group one change cures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub enum CureScope {
    /// One change cures all of them.
    All,
    /// Each object needs a change of its own.
    Each,
}
