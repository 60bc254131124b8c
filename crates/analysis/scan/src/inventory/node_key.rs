//! The properties of a node that rules, the fabric and load balancers can see.

use std::net::IpAddr;

use uturn_model::node::{Loss, RpFilter};
use uturn_model::{Cluster, Family, IpNet, Name, Node, Text};

use crate::distinguish::discriminators::Discriminators;

/// The properties of a node that rules, the fabric and load balancers can see, except its
/// addresses.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct NodeKey {
    internal_ips: Vec<AddressKey>,
    external_ips: Vec<AddressKey>,
    tunnel_ips: Vec<AddressKey>,
    pod_cidrs: Vec<(u8, AddressKey, AddressKey)>,
    is_windows: bool,
    kernel: Option<Text>,
    rp_filter: Option<RpFilter>,
    public_bandwidth: Option<bool>,
    security_groups: Option<Vec<Text>>,
    forwards: Option<bool>,
    bridge_rules: Option<bool>,
    routed: Option<bool>,
    routes: Option<Vec<IpNet>>,
    local_addresses: Vec<IpAddr>,
    /// Whether no endpoint is local for the node's kube-proxy, which takes a name for the node's
    /// that no node has.
    is_nobodys: bool,
    hairpin: Option<bool>,
    firewall: Option<Text>,
    /// Whether the node is never a target of a load balancer of the cluster's cloud.
    is_excluded: bool,
    /// Whether controllers without rules of their own make the node a target of their load
    /// balancers.
    is_usual_target: bool,
    is_ready: bool,
    loss: Option<Loss>,
    /// Whether the program that announces addresses does not run on the node; and for each
    /// announcement, whether the node announces and its preference.
    lacks_announcer: bool,
    announces: Vec<(bool, u32)>,
    /// Whether the node is a target, for each listener that no Service owns.
    targeted: Vec<bool>,
    /// Whether the node has the labels, for each set of labels that Services ask of their nodes.
    labels: Vec<bool>,
    /// The name, if the node is not equal to any other.
    unique: Option<Name>,
}

/// The key by which rules distinguish addresses: the family and the number of the ranges.
type AddressKey = (Family, u32);

impl NodeKey {
    pub(super) fn of(
        cluster: &Cluster,
        node: &Node,
        discriminators: &mut Discriminators,
        is_unique: bool,
    ) -> Self {
        let Node {
            name,
            labels,
            internal_ips,
            external_ips,
            tunnel_ips,
            pod_cidrs,
            is_windows,
            kernel,
            rp_filter,
            public_bandwidth,
            security_groups,
            forwards,
            bridge_rules,
            routed,
            routes,
            local_addresses,
            proxy_name,
            hairpin,
            firewall,
            ready,
            loss,
            lacks_announcer,
            // The cloud's controller reads this: `is_excluded` covers it.
            unschedulable: _,
            // Taints have decided already where pods are.
            taints: _,
            // Nodes that lack Services differ for these Services only.
            unprogrammed: _,
            // These are read when the cluster is made, and nothing that packets meet reads them.
            annotations: _,
            provider_id: _,
            kube_proxy_version: _,
            host_name: _,
            hairpin_origin: _,
            proxy_name_by: _,
            supposed: _,
            origin: _,
        } = node;
        let mut seen = |ip: &IpAddr| (Family::of(*ip), discriminators.of(*ip));
        Self {
            internal_ips: internal_ips.iter().map(&mut seen).collect(),
            external_ips: external_ips.iter().map(&mut seen).collect(),
            tunnel_ips: tunnel_ips.iter().map(&mut seen).collect(),
            pod_cidrs: pod_cidrs
                .iter()
                .map(|net| (net.prefix_len(), seen(&net.network()), seen(&net.broadcast())))
                .collect(),
            is_windows: *is_windows,
            kernel: kernel.clone(),
            rp_filter: *rp_filter,
            public_bandwidth: *public_bandwidth,
            security_groups: security_groups.clone(),
            forwards: *forwards,
            bridge_rules: *bridge_rules,
            routed: *routed,
            routes: routes.clone(),
            local_addresses: local_addresses.clone(),
            is_nobodys: proxy_name.is_some(),
            hairpin: *hairpin,
            firewall: firewall.as_ref().map(|own| own.text.clone()),
            is_excluded: uturn_clouds::controller::excludes_node(cluster, node),
            is_usual_target: uturn_clouds::controller::is_usual_target(node),
            is_ready: *ready,
            loss: *loss,
            lacks_announcer: *lacks_announcer,
            announces: uturn_clouds::announcers::seen_of(cluster, node),
            targeted: uturn_clouds::stated::targeted(cluster, node),
            labels: discriminators
                .node_labels
                .iter()
                .map(|wanted| labels.contains_all(wanted))
                .collect(),
            unique: is_unique.then(|| name.clone()),
        }
    }
}
