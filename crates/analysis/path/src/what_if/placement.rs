//! The kinds of nodes on which unplaced pods may run.

use std::collections::BTreeSet;
use std::net::IpAddr;

use uturn_model::{Client, Cluster, EndpointSlice, Name, NamespacedName, Pod};

/// The largest number of node kinds that are tried for unplaced pods.
const MAX_KINDS: usize = 6;

/// A kind of node that pods may run on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NodeKind {
    /// An example of the kind.
    pub(super) node: Name,
    /// The Services with endpoints on such nodes.
    pub(super) serves: BTreeSet<NamespacedName>,
}

/// Returns the unplaced pods of a client. Returns none if they serve a Service: placing them moves
/// more than the client.
pub(super) fn movers(cluster: &Cluster, client: &Client) -> Vec<NamespacedName> {
    let pods: Vec<&Pod> = match client {
        Client::Pod(name) => cluster.pods.get(name).into_iter().collect(),
        Client::Workload(kind, name) => {
            let workload = cluster.workloads.get(&(*kind, name.clone()));
            let own = |pod: &&Pod| {
                workload.is_some_and(|workload| {
                    pod.name.namespace == name.namespace
                        && workload.selector.matches(&pod.spec.labels)
                })
            };
            cluster.pods.values().filter(own).collect()
        }
        Client::Node(_) | Client::Outside(_) => Vec::new(),
    };
    let serves = |ip: &IpAddr| {
        let slices = cluster.endpoints.values().flatten();
        slices.flat_map(|slice| &slice.endpoints).any(|endpoint| endpoint.address == *ip)
    };
    let moves = |pod: &&Pod| pod.supposed && !pod.spec.host_network && !pod.ips.iter().any(serves);
    if pods.iter().all(moves) {
        pods.into_iter().map(|pod| pod.name.clone()).collect()
    } else {
        Vec::new()
    }
}

/// Returns the kinds of nodes on which pods may run, distinguished by the Services with endpoints
/// there. Nodes that a selector rules out are left out.
pub(super) fn node_kinds(cluster: &Cluster, movers: &[NamespacedName]) -> Vec<NodeKind> {
    let wanted = movers.first().and_then(|name| cluster.pods.get(name));
    let mut node_kinds: Vec<NodeKind> = Vec::new();
    for node in cluster.nodes.values() {
        let fits = wanted.is_none_or(|pod| pod.spec.may_run_on(node));
        if !fits {
            continue;
        }
        let has_endpoint = |slices: &[EndpointSlice]| {
            let mut all = slices.iter().flat_map(|slice| &slice.endpoints);
            all.any(|endpoint| endpoint.node.as_ref() == Some(&node.name))
        };
        let serves: BTreeSet<NamespacedName> = cluster
            .endpoints
            .iter()
            .filter(|(_, slices)| has_endpoint(slices))
            .map(|(name, _)| name.clone())
            .collect();
        if node_kinds.iter().all(|known| known.serves != serves) && node_kinds.len() < MAX_KINDS {
            node_kinds.push(NodeKind { node: node.name.clone(), serves });
        }
    }
    node_kinds
}

/// Returns the cluster with these pods on a node.
pub(super) fn on_node_kind(cluster: &Cluster, movers: &[NamespacedName], node: &Name) -> Cluster {
    let mut cluster = cluster.clone();
    let Some(node_kind) = cluster.nodes.get(node).cloned() else { return cluster };
    for name in movers {
        let taken: BTreeSet<IpAddr> =
            cluster.pods.values().flat_map(|pod| pod.ips.iter().copied()).collect();
        let Some(pod) = cluster.pods.get_mut(name) else { continue };
        if pod.node.as_ref() == Some(node) {
            continue;
        }
        pod.node = Some(node.clone());
        for ip in &mut pod.ips {
            let of_family =
                node_kind.pod_cidrs.iter().find(|net| net.addr().is_ipv4() == ip.is_ipv4());
            // The first address is the bridge's.
            let free = of_family
                .and_then(|net| net.hosts().skip(1).find(|address| !taken.contains(address)));
            *ip = free.unwrap_or(*ip);
        }
    }
    cluster
}
