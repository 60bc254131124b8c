//! A node that is drained: cordoned, and its pods evicted. The node itself goes on forwarding.

use uturn_model::{Cluster, Name, Pod, Text, WorkloadKind};

use super::error::LifeError;
use super::pods::{self, PodSet};
use super::{Changed, lose};

/// The annotation of pods that a kubelet runs from files of its own, which stay.
const MIRROR: &str = "kubernetes.io/config.mirror";

pub(super) fn drain(cluster: &Cluster, node: &Name) -> Result<Changed, LifeError> {
    lose::known(cluster, node)?;
    let mut after = cluster.clone();
    if let Some(own) = after.nodes.get_mut(node) {
        own.unschedulable = true;
    }
    let evicted = cluster.pods_on(node).filter(|pod| is_evicted(pod)).map(|pod| pod.name.clone());
    let pods = PodSet::of(cluster, evicted.collect());
    let mut assumed: Vec<Text> = Vec::new();
    if !pods.is_empty() {
        assumed.push("the evicted pods run nowhere else yet".into());
        assumed.push("no PodDisruptionBudget stops the eviction".into());
        if pods::forget_captures(&mut after) {
            assumed.push(pods::WITHOUT_CAPTURES.into());
        }
    }
    let mut bare = pods.names().iter().filter_map(|name| cluster.pods.get(name));
    if bare.any(|pod| pod.owner.is_none() && !pod.supposed) {
        assumed.push("pods that nothing would create again are deleted too (--force)".into());
    }
    pods::remove(&mut after, &pods);
    Ok(Changed { cluster: after, assumed })
}

/// Returns whether `kubectl drain --ignore-daemonsets --force` evicts a pod.
fn is_evicted(pod: &Pod) -> bool {
    let is_of_each_node =
        pod.owner.as_ref().is_some_and(|owner| owner.kind == WorkloadKind::DaemonSet.into());
    !is_of_each_node && pod.spec.annotations.get(MIRROR).is_none()
}
