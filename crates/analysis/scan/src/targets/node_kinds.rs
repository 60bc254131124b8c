//! Nodes that are alike as destinations and as clients, Services aside.

use uturn_model::node::RpFilter;
use uturn_model::{Cluster, IpNet, Node, Text};

use crate::numbers::Numbers;

/// The properties by which nodes differ as destinations and as clients.
#[derive(PartialEq, Eq, Hash)]
struct NodeSettings<'a> {
    is_captured: bool,
    firewall: Option<&'a str>,
    security_groups: Option<&'a [Text]>,
    rp_filter: Option<RpFilter>,
    forwards: Option<bool>,
    routed: Option<bool>,
    routes: Option<&'a [IpNet]>,
    bridge_rules: Option<bool>,
    has_other_name: bool,
}

/// Returns the nodes of a cluster by kind: those whose settings, firewalls and security groups are
/// equal. Windows nodes are left out, because their kube-proxy is not modelled, nodes that are not
/// ready, because they serve nobody for reasons of their own, and nodes that are only supposed.
pub fn node_kinds(cluster: &Cluster) -> Vec<Vec<&Node>> {
    let mut numbers: Numbers<NodeSettings<'_>> = Numbers::default();
    let mut kinds: Vec<Vec<&Node>> = Vec::new();
    let nodes = cluster.nodes.values().filter(|node| node.ready && !node.is_windows);
    for node in nodes.filter(|node| !node.supposed) {
        let number = numbers.of(NodeSettings {
            is_captured: cluster.captures.contains_key(&node.name),
            firewall: node.firewall.as_ref().map(|own| &*own.text),
            security_groups: node.security_groups.as_deref(),
            rp_filter: node.rp_filter,
            forwards: node.forwards,
            routed: node.routed,
            routes: node.routes.as_deref(),
            bridge_rules: node.bridge_rules,
            has_other_name: node.proxy_name.is_some(),
        }) as usize;
        if number == kinds.len() {
            kinds.push(Vec::new());
        }
        kinds[number].push(node);
    }
    kinds
}
