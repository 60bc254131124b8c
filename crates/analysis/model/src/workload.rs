//! Workloads: objects that create pods.

use std::fmt;
use std::sync::Arc;

use crate::pod::PodSpec;
use crate::{NamespacedName, ObjectKind, ObjectRef, Origin, Selector};

/// A Deployment, StatefulSet, DaemonSet, ReplicaSet, Job, CronJob or any other object that
/// creates pods from a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Its kind.
    pub kind: WorkloadKind,
    /// Its name.
    pub name: NamespacedName,
    /// The desired number of pods; a DaemonSet has one per node.
    pub replicas: u32,
    /// The selector of its pods.
    pub selector: Selector,
    /// The template of its pods.
    pub template: Arc<PodSpec>,
    /// Where it was written.
    pub origin: Origin,
}

impl Workload {
    /// Returns a reference to the workload.
    pub fn object(&self) -> ObjectRef {
        ObjectRef::namespaced(self.kind.into(), &self.name)
    }
}

/// The kinds of workload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is the Kubernetes kind of that name")]
pub enum WorkloadKind {
    Deployment,
    StatefulSet,
    DaemonSet,
    ReplicaSet,
    Job,
    CronJob,
    ReplicationController,
    /// OpenShift's.
    DeploymentConfig,
    /// Argo's.
    Rollout,
    /// OpenKruise's.
    CloneSet,
    /// Any other.
    Other,
}

impl WorkloadKind {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Deployment,
        Self::StatefulSet,
        Self::DaemonSet,
        Self::ReplicaSet,
        Self::Job,
        Self::CronJob,
        Self::ReplicationController,
        Self::DeploymentConfig,
        Self::Rollout,
        Self::CloneSet,
        Self::Other,
    ];

    /// Returns whether its pods run to completion.
    pub fn ends(self) -> bool {
        matches!(self, Self::Job | Self::CronJob)
    }

    /// Returns the value of `kind:`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Deployment => "Deployment",
            Self::StatefulSet => "StatefulSet",
            Self::DaemonSet => "DaemonSet",
            Self::ReplicaSet => "ReplicaSet",
            Self::Job => "Job",
            Self::CronJob => "CronJob",
            Self::ReplicationController => "ReplicationController",
            Self::DeploymentConfig => "DeploymentConfig",
            Self::Rollout => "Rollout",
            Self::CloneSet => "CloneSet",
            Self::Other => "Workload",
        }
    }

    /// Returns the short form on the command line: `deploy`.
    pub fn short(self) -> &'static str {
        match self {
            Self::Deployment => "deploy",
            Self::StatefulSet => "sts",
            Self::DaemonSet => "ds",
            Self::ReplicaSet => "rs",
            Self::Job => "job",
            Self::CronJob => "cronjob",
            Self::ReplicationController => "rc",
            Self::DeploymentConfig => "dc",
            Self::Rollout => "rollout",
            Self::CloneSet => "cloneset",
            Self::Other => "workload",
        }
    }

    /// Parses the kind on the command line: `deploy`, `deployment`, `deployments`.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| {
            let long = kind.as_str();
            let singular = word.strip_suffix('s').unwrap_or(word);
            word == kind.short()
                || word.eq_ignore_ascii_case(long)
                || singular.eq_ignore_ascii_case(long)
        })
    }
}

impl From<WorkloadKind> for ObjectKind {
    fn from(kind: WorkloadKind) -> Self {
        Self::Workload(kind)
    }
}

impl fmt::Display for WorkloadKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
