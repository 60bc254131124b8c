//! Workloads: what makes pods.

use std::fmt;

use crate::pod::PodSpec;
use crate::{Kind, NamespacedName, ObjectRef, Origin, Selector};

/// A Deployment, StatefulSet, DaemonSet, ReplicaSet, Job, CronJob or any other object that
/// makes pods from a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workload {
    /// Which of them.
    pub kind: WorkloadKind,
    /// Its name.
    pub name: NamespacedName,
    /// How many pods it wants; a DaemonSet has one a node.
    pub replicas: u32,
    /// Which pods are its own.
    pub selector: Selector,
    /// What its pods look like.
    pub template: PodSpec,
    /// Where it was written.
    pub origin: Origin,
}

impl Workload {
    /// A reference to it.
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
    /// Of OpenShift.
    DeploymentConfig,
    /// Of Argo.
    Rollout,
    /// Of OpenKruise.
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

    /// Whether its pods end when they have done what they are for.
    pub fn ends(self) -> bool {
        matches!(self, Self::Job | Self::CronJob)
    }

    /// The short word of the command line: `deploy`.
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

    /// The kind that a word of the command line means: `deploy`, `deployment`, `deployments`.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| {
            let long = Kind::from(*kind).as_str();
            let singular = word.strip_suffix('s').unwrap_or(word);
            word == kind.short()
                || word.eq_ignore_ascii_case(long)
                || singular.eq_ignore_ascii_case(long)
        })
    }
}

impl From<WorkloadKind> for Kind {
    fn from(kind: WorkloadKind) -> Self {
        match kind {
            WorkloadKind::Deployment => Self::Deployment,
            WorkloadKind::StatefulSet => Self::StatefulSet,
            WorkloadKind::DaemonSet => Self::DaemonSet,
            WorkloadKind::ReplicaSet => Self::ReplicaSet,
            WorkloadKind::Job => Self::Job,
            WorkloadKind::CronJob => Self::CronJob,
            WorkloadKind::ReplicationController => Self::ReplicationController,
            WorkloadKind::DeploymentConfig => Self::DeploymentConfig,
            WorkloadKind::Rollout => Self::Rollout,
            WorkloadKind::CloneSet => Self::CloneSet,
            WorkloadKind::Other => Self::Workload,
        }
    }
}

impl fmt::Display for WorkloadKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Kind::from(*self).fmt(f)
    }
}
