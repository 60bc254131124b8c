//! Which workload a pod belongs to in the end: not the ReplicaSet, but its Deployment.

use uturn_model::{Kind, Name, NamespacedName, ObjectRef, Pod, WorkloadKind};

use crate::objects::Objects;

/// Lifts the owner of each pod to the top, and drops what only stands between.
pub(super) fn settle(objects: &mut Objects) {
    let workloads = &objects.workloads.0;
    for pod in objects.pods.0.values_mut() {
        let Some(owner) = &pod.owner else { continue };
        let (above, sure) = match owner.kind {
            Kind::ReplicaSet => (WorkloadKind::Deployment, has_hash(pod, owner)),
            Kind::Job => (WorkloadKind::CronJob, false),
            _ => continue,
        };
        let Some(name) = without_suffix(owner) else { continue };
        if sure || workloads.contains_key(&(above, name.clone())) {
            pod.owner = Some(ObjectRef::namespaced(above.into(), &name));
        }
    }
}

/// Whether a workload was made by another one that is known: its pods are that one's.
pub(super) fn is_made_by_another(
    objects: &Objects,
    kind: WorkloadKind,
    name: &NamespacedName,
) -> bool {
    let above = match kind {
        WorkloadKind::ReplicaSet => WorkloadKind::Deployment,
        WorkloadKind::Job => WorkloadKind::CronJob,
        _ => return false,
    };
    let owner = ObjectRef::namespaced(kind.into(), name);
    without_suffix(&owner).is_some_and(|name| objects.workloads.0.contains_key(&(above, name)))
}

/// A Deployment's controller writes the end of its ReplicaSet's name on every pod.
fn has_hash(pod: &Pod, owner: &ObjectRef) -> bool {
    let hash = pod.spec.labels.get("pod-template-hash");
    hash.is_some_and(|hash| owner.name.strip_suffix(hash).is_some_and(|rest| rest.ends_with('-')))
}

fn without_suffix(owner: &ObjectRef) -> Option<NamespacedName> {
    let (name, _) = owner.name.rsplit_once('-')?;
    Some(NamespacedName { namespace: owner.namespace.clone()?, name: Name::new(name).ok()? })
}
