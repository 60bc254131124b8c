//! The clients of a finding by the workloads that people know them by.

use std::collections::BTreeMap;

use uturn_model::wording::count;
use uturn_model::{Cluster, ObjectKind, ObjectRef, Pod, WorkloadKind};

use crate::clients::Clients;

/// The maximum number of pods that are looked up. More pods are only counted.
const MAX_PODS: usize = 2_000;
/// The maximum number of workloads that are named. More are counted.
const MAX_NAMED: usize = 3;

/// Returns whether a pod belongs to the cluster's own equipment: it serves all applications, and
/// its own calls say little about theirs.
pub(crate) fn is_of_system(pod: &Pod) -> bool {
    let namespace = pod.name.namespace.as_str();
    let is_on_each_node =
        pod.owner.as_ref().is_some_and(|owner| owner.kind == WorkloadKind::DaemonSet.into());
    namespace.starts_with("kube-")
        || namespace.ends_with("-system") && is_on_each_node && pod.spec.host_network
}

/// Describes clients by their workloads: `deploy/shop/web + 2 more (9 pods), 4 system pods`.
///
/// Returns `None` if there are too many to name.
pub(crate) fn describe(cluster: &Cluster, clients: &Clients) -> Option<String> {
    if clients.pod_count() == 0 || clients.pod_count() > MAX_PODS {
        return None;
    }
    let (mut own, mut of_system) = (BTreeMap::new(), BTreeMap::new());
    for name in clients.iter() {
        let pod = cluster.pods.get(name)?;
        let all = if is_of_system(pod) { &mut of_system } else { &mut own };
        *all.entry(workload_of(pod)).or_insert(0_usize) += 1;
        if own.len() > MAX_NAMED {
            return None;
        }
    }
    let pods: usize = of_system.values().sum();
    let mut parts = Vec::from_iter(named(&own));
    match own.len() {
        0 if of_system.len() <= MAX_NAMED => parts.extend(named(&of_system)),
        0 => return None,
        _ if pods > 0 => parts.push(count(pods, "system pod")),
        _ => {}
    }
    parts.extend(clients.others().iter().map(ToString::to_string));
    Some(parts.join(", "))
}

/// Names the workload with most pods, and counts the others.
fn named(all: &BTreeMap<ObjectRef, usize>) -> Option<String> {
    let mut sorted: Vec<(&ObjectRef, &usize)> = all.iter().collect();
    sorted.sort_by_key(|(_, pods)| std::cmp::Reverse(**pods));
    let (first, _) = sorted.first()?;
    let more = match all.len() - 1 {
        0 => String::new(),
        more => format!(" + {more} more"),
    };
    let pods: usize = all.values().sum();
    // A pod without a workload is named itself.
    let are_pods = all.keys().all(|object| object.kind == ObjectKind::Pod);
    let pods = if are_pods { String::new() } else { format!(" ({})", count(pods, "pod")) };
    Some(format!("{}{more}{pods}", short(first)))
}

/// Returns the workload that makes a pod; the pod itself if none does.
pub fn workload_of(pod: &Pod) -> ObjectRef {
    let Some(owner) = &pod.owner else { return pod.object() };
    let hash = pod.spec.labels.get("pod-template-hash");
    let of_deployment = hash.and_then(|hash| owner.name.strip_suffix(hash)?.strip_suffix('-'));
    match of_deployment {
        Some(name) if owner.kind == WorkloadKind::ReplicaSet.into() => ObjectRef {
            kind: WorkloadKind::Deployment.into(),
            namespace: owner.namespace.clone(),
            name: name.into(),
        },
        _ => owner.clone(),
    }
}

/// Returns the form in which a client is named on the command line: `deploy/shop/web`.
pub fn short(object: &ObjectRef) -> String {
    let word = match object.kind {
        ObjectKind::Workload(kind) => kind.short(),
        _ => "pod",
    };
    match &object.namespace {
        Some(namespace) => format!("{word}/{namespace}/{}", object.name),
        None => format!("{word}/{}", object.name),
    }
}
