//! The kinds of objects that create pods.

use std::fmt;

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

impl fmt::Display for WorkloadKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
