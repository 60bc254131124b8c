//! Pods that lack addresses, as in every cluster where pods are being made.

use uturn_model::pod::Phase;
use uturn_model::{Cluster, Family};
use uturn_path::Engine;
use uturn_scan::ScanTarget;

use super::dice::Dice;

/// Takes addresses from some pods outside their nodes' networks: all, or those of a family.
pub(crate) fn take_away(cluster: &mut Cluster, dice: &mut Dice) {
    for pod in cluster.pods.values_mut().filter(|pod| !pod.spec.host_network) {
        match dice.below(6) {
            0 | 1 => {
                pod.ips.clear();
                (pod.phase, pod.ready) = (Phase::Pending, false);
            }
            2 => pod.ips.retain(|ip| Family::of(*ip) == Family::V4),
            3 => pod.ips.retain(|ip| Family::of(*ip) == Family::V6),
            _ => {}
        }
    }
}

/// How many pods have an address to call a target from.
pub(crate) fn callers(engine: &Engine<'_>, target: &ScanTarget) -> usize {
    let resolved = engine.resolve_outside(&target.to).expect("a target");
    let family = Family::of(resolved.addresses()[0].ip());
    let cluster = engine.cluster();
    let is_placed = |pod: &&uturn_model::Pod| {
        pod.node.as_ref().is_some_and(|name| cluster.nodes.contains_key(name))
    };
    let pods = cluster.pods.values().filter(|pod| pod.is_alive()).filter(is_placed);
    pods.filter(|pod| pod.address(family).is_some()).count()
}
