//! The words of checklists and cures.

/// How a cloud's users speak of what surrounds their nodes.
pub struct Words {
    /// The filter around nodes, where its name is known.
    pub node_firewall: Option<&'static str>,
    /// Where users set things: `in the console`.
    pub console: Option<&'static str>,
    /// The last port that node ports are taken from, as the cloud's pages state it.
    pub last_node_port: u16,
    /// Health checks, with the range that they come from where it is fixed.
    pub probes: &'static str,
    /// The check that the network has routes to a node's pods, and how to make it.
    pub routes_to_pods: (&'static str, &'static str),
    /// The check that it has routes to every node's pods.
    pub routes_to_all_pods: &'static str,
    /// How to add a route to the pods of a node, which stands for `{}`.
    pub add_route: &'static str,
    /// The check that nodes of other networks are connected, and how to connect them.
    pub other_networks: (&'static str, &'static str),
    /// The check that nodes have public bandwidth, where accounts may be billed for it by
    /// node.
    pub bandwidth: Option<&'static str>,
    /// How to give bandwidth to a node, which stands for `{}`.
    pub add_bandwidth: &'static str,
}

impl Words {
    /// The words where the cloud's own are not known.
    pub const NEUTRAL: Self = Self {
        node_firewall: None,
        console: None,
        last_node_port: 32_767,
        probes: "health checks",
        routes_to_pods: (
            "the network has routes to its pods, or a tunnel",
            "look at the routes of the network, or at the pod network's tunnels",
        ),
        routes_to_all_pods: "the network has routes to every node's pods, or tunnels",
        add_route: "in the network's route table: a route for the pod range of {}, with the node as the next hop",
        other_networks: (
            "nodes of other networks are connected",
            "across networks: peering or routes for the pod ranges, and their ranges in \
             nonMasqueradeCIDRs where ip-masq-agent runs",
        ),
        bandwidth: None,
        add_bandwidth: "node {}: give it public bandwidth",
    };

    /// The neutral words, with the cloud's name for the filter around nodes.
    pub const fn with_firewall(node_firewall: &'static str) -> Self {
        Self { node_firewall: Some(node_firewall), ..Self::NEUTRAL }
    }
}

/// What readers of Facts say that they expected, with examples of a modelled cloud.
pub struct Expected {
    /// Of `provider`.
    pub provider: &'static str,
    /// Of `kubeProxy.version`.
    pub version: &'static str,
    /// Of `kubeProxy.variant`.
    pub variant: &'static str,
}
