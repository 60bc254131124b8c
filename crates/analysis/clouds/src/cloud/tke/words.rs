//! The cloud's terms in checklists and cures, and the pod networks that it provides.

use uturn_model::network::{CloudNetwork, NetworkMode, Transport};

use super::annotations::NETWORKS as CARDS;
use crate::cloud::{Expected, Network, Words};

/// The expected values that error messages about Facts state.
pub const EXPECTED: Expected = Expected {
    provider: "tke, none, or another cloud",
    version: "a version such as v1.34.4 or v1.22.5-tke.13",
    variant: "upstream or tke",
};

pub(super) const WORDS: Words = Words {
    node_firewall: Some("security group"),
    console: Some("in the console"),
    last_node_port: 32_768,
    probes: "health checks (100.64.0.0/10)",
    routes_to_pods: ("the VPC has routes to its pods", "look at the VPC's route table"),
    routes_to_all_pods: "the VPC has routes to every node's pods",
    add_route: "in the console, the VPC's route table: a route for the pod range of {}, with the node as the next hop",
    other_networks: (
        "nodes of other VPCs are connected",
        "across VPCs: CCN or peering, and their ranges in NonMasqueradeCIDRs of ip-masq-agent",
    ),
    bandwidth: Some("the nodes have public bandwidth (accounts that are billed by CVM)"),
    add_bandwidth: "in the console, node {}: give it public bandwidth (accounts that are billed by CVM)",
};

/// The pod networks. The one with network cards comes first: if a cluster has both, a pod has a
/// card.
pub(super) static NETWORKS: [Network; 2] = [
    Network {
        network: CloudNetwork {
            word: "tke-vpc-cni",
            name: "TKE VPC-CNI",
            mode: NetworkMode::VpcCni,
            transport: Transport::Underlay,
            masquerades: false,
        },
        agents: &["tke-eni-agent"],
        pod_annotations: &[(CARDS, "tke-route-eni"), (CARDS, "tke-direct-eni")],
    },
    Network {
        network: CloudNetwork {
            word: "tke-global-router",
            name: "TKE Global Router",
            mode: NetworkMode::GlobalRouter,
            transport: Transport::Underlay,
            masquerades: false,
        },
        agents: &["tke-bridge-agent"],
        pod_annotations: &[(CARDS, "tke-bridge")],
    },
];
