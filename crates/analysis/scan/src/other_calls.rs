//! Calls of clients that are not pods. Each is walked in the whole cluster, so they are walked only
//! if they are few.

use std::collections::HashMap;

use uturn_model::{Client, Cluster, Flow, NamespacedName, ObjectKind, Verdict};
use uturn_path::Engine;

use crate::targets::ScanTarget;

/// The maximum number of flows of clients that are not pods. If there are more, none is walked.
const MAX: usize = 400;

/// The maximum number of endpoints to which these flows may lead together, since each flow is
/// walked in the whole cluster. If there are more, none is walked.
const MAX_ENDPOINTS: usize = 10_000;

/// Walks the calls of nodes that are not down, and of a client outside, to targets. Returns those
/// that can be walked, each with its target.
pub fn other_calls<'t>(
    engine: &Engine<'_>,
    targets: &[&'t ScanTarget],
) -> Vec<(&'t ScanTarget, Flow, Verdict)> {
    let cluster = engine.cluster();
    let nodes = cluster.nodes.values().filter(|node| node.loss.is_none());
    let nodes = nodes.map(|node| Client::Node(node.name.clone()));
    let clients: Vec<Client> = nodes.chain([Client::Outside(None)]).collect();
    if clients.len() * targets.len() > MAX
        || clients.len() * endpoints_behind(cluster, targets) > MAX_ENDPOINTS
    {
        return Vec::new();
    }
    let mut walked = Vec::new();
    for target in targets {
        for from in &clients {
            if target.is_cluster_ip() && matches!(from, Client::Outside(_)) {
                continue;
            }
            let (from, to) = (from.clone(), target.to.clone());
            let flow = Flow { from, to, protocol: target.protocol };
            if let Ok(verdict) = engine.verdict(&flow) {
                walked.push((*target, flow, verdict));
            }
        }
    }
    walked
}

/// Returns the number of endpoints to which the targets lead, each target by itself. A target that
/// is not a Service is assumed to lead to the Service with the most endpoints.
fn endpoints_behind(cluster: &Cluster, targets: &[&ScanTarget]) -> usize {
    let count = |service: &NamespacedName| {
        cluster.slices(service).iter().map(|slice| slice.endpoints.len()).sum::<usize>()
    };
    let counts: HashMap<&NamespacedName, usize> =
        cluster.services.keys().map(|name| (name, count(name))).collect();
    let most = counts.values().copied().max().unwrap_or_default();
    let behind = |target: &&ScanTarget| {
        let is_service = target.object.kind == ObjectKind::Service;
        let service = target.object.namespaced_name().filter(|_| is_service);
        service.map_or(most, |name| counts.get(&name).copied().unwrap_or_else(|| count(&name)))
    };
    targets.iter().map(behind).sum()
}
