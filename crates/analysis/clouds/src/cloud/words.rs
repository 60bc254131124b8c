//! The terms that checklists and cures use for a cloud.

/// The terms of a cloud's users for the surroundings of their nodes.
pub struct Words {
    /// The name of the packet filter around nodes, if it is known.
    pub node_firewall: Option<&'static str>,
    /// The place where users change settings: `in the console`.
    pub console: Option<&'static str>,
    /// The highest node port, as the cloud's documentation states it.
    pub last_node_port: u16,
    /// The words for health checks, with the range that they come from if it is fixed.
    pub probes: &'static str,
    /// The checklist item that the network has routes to a node's pods, and how to check it.
    pub routes_to_pods: (&'static str, &'static str),
    /// The checklist item that the network has routes to every node's pods.
    pub routes_to_all_pods: &'static str,
    /// The instruction to add a route to the pods of a node; `{}` stands for the node.
    pub add_route: &'static str,
    /// The checklist item that nodes of other networks are connected, and how to connect them.
    pub other_networks: (&'static str, &'static str),
    /// The checklist item that nodes have public bandwidth, if accounts may be billed for bandwidth
    /// by node.
    pub bandwidth: Option<&'static str>,
    /// The instruction to give bandwidth to a node; `{}` stands for the node.
    pub add_bandwidth: &'static str,
}

impl Words {
    /// The terms of a cloud whose own are not known.
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

    /// Returns the neutral terms with the cloud's name for the packet filter around nodes.
    pub const fn with_firewall(node_firewall: &'static str) -> Self {
        Self { node_firewall: Some(node_firewall), ..Self::NEUTRAL }
    }
}

/// The expected values that error messages about Facts state, with examples of a modelled cloud.
pub struct Expected {
    /// The expected value of `provider`.
    pub provider: &'static str,
    /// The expected value of `kubeProxy.version`.
    pub version: &'static str,
    /// The expected value of `kubeProxy.variant`.
    pub variant: &'static str,
}
