//! What rules, the fabric and load balancers see of a node.

use std::net::IpAddr;

use uturn_model::node::RpFilter;
use uturn_model::{Cluster, Family, Name, Node, Text};

use crate::distinguish::discriminators::Discriminators;

/// What rules, the fabric and load balancers see of a node, but for its addresses.
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
    local_addresses: Vec<IpAddr>,
    /// Whether no endpoint is local for its kube-proxy, which takes a name that no node has for
    /// its own.
    is_nobodys: bool,
    hairpin: Option<bool>,
    firewall: Option<Text>,
    /// Whether it is never a target of a load balancer of the cluster's cloud.
    is_excluded: bool,
    /// Whether it is a target of other controllers' load balancers: of those that leave out nodes
    /// with the label for it, and of those that do not.
    is_usual_target: bool,
    is_ready: bool,
    /// Whether the program that announces addresses does not run on it; and of each announcement,
    /// whether it announces and how much it is preferred.
    lacks_announcer: bool,
    announces: Vec<(bool, u32)>,
    /// Of each listener that no Service owns, whether it is a target.
    targeted: Vec<bool>,
    /// Which sets of labels it has that Services ask of their nodes.
    labels: Vec<bool>,
    /// Its name, if it is like no other.
    unique: Option<Name>,
}

/// What rules tell addresses apart by: the family and the number of the ranges.
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
            local_addresses,
            proxy_name,
            hairpin,
            firewall,
            ready,
            lacks_announcer,
            // The cloud's controller reads it: it says which nodes are excluded.
            unschedulable: _,
            // They decided where pods are.
            taints: _,
            // Those that lack Services are apart for these Services only.
            unprogrammed: _,
            // Read where the cluster is made, and by nothing that packets meet.
            annotations: _,
            provider_id: _,
            kube_proxy_version: _,
            host_name: _,
            hairpin_origin: _,
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
            local_addresses: local_addresses.clone(),
            is_nobodys: proxy_name.is_some(),
            hairpin: *hairpin,
            firewall: firewall.as_ref().map(|own| own.text.clone()),
            is_excluded: uturn_clouds::controller::excludes_node(cluster, node),
            is_usual_target: uturn_clouds::controller::is_usual_target(node),
            is_ready: *ready,
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
