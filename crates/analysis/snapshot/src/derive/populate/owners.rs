//! Determines the top-level workload of each pod: the Deployment rather than its ReplicaSet. Also
//! completes workloads with templates and numbers from other objects.

use uturn_model::{Name, NamespacedName, ObjectKind, ObjectRef, Pod, Workload, WorkloadKind};

use crate::decode::objects::Objects;

/// Replaces the owner of each pod by the workload that created this owner.
pub(super) fn settle(objects: &mut Objects) {
    refer(objects);
    scale(objects);
    let workloads = &objects.workloads.0;
    for pod in objects.pods.0.values_mut() {
        let Some(owner) = &pod.owner else { continue };
        let sure = has_hash(pod, owner);
        let Some(name) = without_suffix(owner) else { continue };
        let known = |above: &&WorkloadKind| workloads.contains_key(&(**above, name.clone()));
        let above = makers(owner.kind).iter().find(known).copied();
        let usual = (owner.kind == WorkloadKind::ReplicaSet.into() && sure)
            .then_some(WorkloadKind::Deployment);
        if let Some(above) = above.or(usual) {
            pod.owner = Some(ObjectRef::namespaced(above.into(), &name));
        }
    }
}

/// Returns the kinds whose controllers create objects of this kind and name these after themselves.
fn makers(kind: ObjectKind) -> &'static [WorkloadKind] {
    let ObjectKind::Workload(kind) = kind else { return &[] };
    match kind {
        WorkloadKind::ReplicaSet => &[WorkloadKind::Deployment, WorkloadKind::Rollout],
        WorkloadKind::Job => &[WorkloadKind::CronJob],
        WorkloadKind::ReplicationController => &[WorkloadKind::DeploymentConfig],
        _ => &[],
    }
}

/// Gives workloads the templates that they take from others. Both create pods, unless the other has
/// zero replicas.
fn refer(objects: &mut Objects) {
    for reference in std::mem::take(&mut objects.references) {
        let deployment = (WorkloadKind::Deployment, reference.deployment);
        let Some(of) = objects.workloads.0.get(&deployment) else { continue };
        let kind = WorkloadKind::Rollout;
        let made = Workload {
            kind,
            replicas: reference.replicas,
            origin: reference.origin,
            name: reference.name.clone(),
            ..of.clone()
        };
        objects.workloads.0.entry((kind, reference.name)).or_insert(made);
    }
}

/// Sets the number of pods to the minimum of the autoscaler, for workloads that state no number,
/// and for those with fewer if the autoscaler raises them from zero.
fn scale(objects: &mut Objects) {
    for (key, autoscaling) in std::mem::take(&mut objects.autoscaled) {
        let Some(workload) = objects.workloads.0.get_mut(&key) else { continue };
        let is_raised = autoscaling.raises_from_zero && workload.replicas < autoscaling.least;
        if is_raised || objects.unscaled.contains(&key) {
            workload.replicas = autoscaling.least;
        }
    }
}

/// Returns whether a workload was created by another known one, to which its pods belong.
pub(in crate::derive) fn is_made_by_another(
    objects: &Objects,
    kind: WorkloadKind,
    name: &NamespacedName,
) -> bool {
    let owner = ObjectRef::namespaced(kind.into(), name);
    let Some(name) = without_suffix(&owner) else { return false };
    makers(owner.kind).iter().any(|above| objects.workloads.0.contains_key(&(*above, name.clone())))
}

/// Returns whether the pod has the hash of its owner's name as a label: a Deployment's controller
/// puts the hash of the ReplicaSet's name on every pod.
fn has_hash(pod: &Pod, owner: &ObjectRef) -> bool {
    let hash = pod.spec.labels.get("pod-template-hash");
    hash.is_some_and(|hash| owner.name.strip_suffix(hash).is_some_and(|rest| rest.ends_with('-')))
}

fn without_suffix(owner: &ObjectRef) -> Option<NamespacedName> {
    let (name, _) = owner.name.rsplit_once('-')?;
    Some(NamespacedName { namespace: owner.namespace.clone()?, name: Name::new(name).ok()? })
}
