//! A workload that gets another number of pods.
//!
//! Of several pods, the controllers' own order decides which go: a StatefulSet's last ordinals; of a
//! ReplicaSet first those without a node, those that do not run, those that are not ready, those of the lowest
//! deletion cost, then those on the nodes with the most of them. Beyond that, the age of pods decides, which is not known.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use uturn_model::pod::Phase;
use uturn_model::{Cluster, Name, NamespacedName, Pod, Text, WorkloadKind};

use super::Changed;
use super::error::{LifeError, likest};
use super::pods::{self, PodSet};

/// The annotation of pods that the lowest of go first.
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";

pub(super) fn scale(
    cluster: &Cluster,
    kind: WorkloadKind,
    name: &NamespacedName,
    replicas: u32,
) -> Result<Changed, LifeError> {
    let key = (kind, name.clone());
    let Some(workload) = cluster.workloads.get(&key) else {
        let of_kind = cluster.workloads.keys().filter(|(own, _)| *own == kind);
        let names = of_kind.map(|(_, name)| name.to_string().into());
        let known = likest(names, &name.to_string());
        return Err(LifeError::NoWorkload { kind, name: name.clone(), known });
    };
    let why = match kind {
        WorkloadKind::DaemonSet => Some("a DaemonSet has a pod on each node"),
        kind if kind.ends() => Some("its pods run to completion"),
        _ => None,
    };
    if let Some(why) = why {
        return Err(LifeError::NotScalable { kind, name: name.clone(), why });
    }
    let owner = workload.object();
    let mut own: Vec<&Pod> = cluster
        .pods
        .values()
        .filter(|pod| pod.owner.as_ref() == Some(&owner))
        .filter(|pod| !matches!(pod.phase, Phase::Succeeded | Phase::Failed))
        .collect();
    let mut after = cluster.clone();
    let mut assumed: Vec<Text> = Vec::new();
    if let Some(workload) = after.workloads.get_mut(&key) {
        workload.replicas = replicas;
    }
    let wanted = replicas as usize;
    if own.len() < wanted {
        assumed.push(
            format!(
                "{} new pods of {owner} are on no node yet, and serve nothing",
                wanted - own.len()
            )
            .into(),
        );
        return Ok(Changed { cluster: after, assumed });
    }
    let gone = own.len() - wanted;
    if gone == 0 {
        return Ok(Changed { cluster: after, assumed });
    }
    let is_open = sort_first_gone(&mut own, kind, gone);
    if is_open && wanted > 0 {
        let names: Vec<&str> = own[..gone].iter().map(|pod| pod.name.name.as_str()).collect();
        assumed.push(
            format!("of equal pods of {owner}, these go: {} (their ages decide)", names.join(", "))
                .into(),
        );
    }
    let names: BTreeSet<NamespacedName> = own[..gone].iter().map(|pod| pod.name.clone()).collect();
    pods::remove(&mut after, &PodSet::of(cluster, names));
    if pods::forget_captures(&mut after) {
        assumed.push(pods::WITHOUT_CAPTURES.into());
    }
    Ok(Changed { cluster: after, assumed })
}

/// Sorts pods by when they go. Returns whether pods that go equal, as far as it is known, pods that stay.
fn sort_first_gone(pods: &mut [&Pod], kind: WorkloadKind, gone: usize) -> bool {
    if kind == WorkloadKind::StatefulSet {
        pods.sort_by_key(|pod| (Reverse(ordinal(pod)), Reverse(pod.name.clone())));
        return false;
    }
    let mut on: BTreeMap<&Name, usize> = BTreeMap::new();
    for node in pods.iter().filter_map(|pod| pod.node.as_ref()) {
        *on.entry(node).or_default() += 1;
    }
    let rank = |pod: &Pod| {
        let phase = match pod.phase {
            Phase::Pending => 0,
            Phase::Unknown => 1,
            _ => 2,
        };
        let crowd = pod.node.as_ref().and_then(|node| on.get(node)).copied().unwrap_or_default();
        let cost =
            pod.spec.annotations.get(DELETION_COST).and_then(|cost| cost.parse::<i32>().ok());
        (pod.node.is_some(), phase, pod.ready, cost.unwrap_or_default(), Reverse(crowd))
    };
    pods.sort_by_key(|pod| (rank(pod), Reverse(pod.name.clone())));
    match (pods.get(gone - 1), pods.get(gone)) {
        (Some(last), Some(next)) => rank(last) == rank(next),
        _ => false,
    }
}

/// Returns the number at the end of the name of a StatefulSet's pod.
fn ordinal(pod: &Pod) -> Option<u32> {
    pod.name.name.as_str().rsplit_once('-')?.1.parse().ok()
}
