//! Workloads: objects that create pods.

use std::sync::Arc;

use crate::pod::PodSpec;
use crate::workload_kind::WorkloadKind;
use crate::{NamespacedName, ObjectRef, Origin, Selector};

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
