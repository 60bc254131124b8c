//! Completes the settings of kube-proxy that depend on addresses of nodes, pods and Services.

use ipnet::IpNet;
use uturn_clouds::cloud;
use uturn_model::network::{Network, covering_each};
use uturn_model::proxy::{CLUSTER_CIDR, LocalDetector};
use uturn_model::{Known, ProxySettings};

use crate::decode::objects::Objects;
use crate::derive::ground::Ground;
use crate::derive::ground::proxy::{NO_CIDR, needs_proxy};
use crate::derive::nets::around;
use crate::derive::{Assumptions, joined};

/// Returns the settings of the Service proxy with what depends on addresses.
pub(super) fn complete(
    ground: &Ground,
    objects: &Objects,
    network: &Network,
    assumptions: &mut Assumptions,
) -> ProxySettings {
    let mut proxy = ground.proxy.clone();
    if ground.answers_arp {
        proxy.arp_ranges = arp_ranges(objects);
    }
    if proxy.detector.is_supposed() {
        proxy.detector = detector(objects, network, assumptions).unwrap_or(proxy.detector);
    }
    proxy
}

/// Returns the ranges around nodes in which they answer ARP requests for bound addresses.
/// Neighbour discovery, which IPv6 uses instead of ARP, has no such setting.
fn arp_ranges(objects: &Objects) -> Vec<IpNet> {
    let addresses = objects.nodes.0.values().flat_map(|node| &node.internal_ips);
    let around = addresses.filter(|ip| ip.is_ipv4()).filter_map(|ip| around(*ip, SEGMENT));
    let mut ranges: Vec<IpNet> = around.collect();
    ranges.sort_unstable();
    ranges.dedup();
    ranges
}

/// The assumed prefix length of a network segment.
const SEGMENT: u8 = 24;

/// Assumes how kube-proxy recognises the cluster's pods, which nothing states: by one range for
/// each family that has all of their ranges, as clusters are usually set up, unless the address of
/// a node or Service is in it. kube-proxy takes no second range. Returns `None` if it does not
/// recognise them.
fn detector(
    objects: &Objects,
    network: &Network,
    assumptions: &mut Assumptions,
) -> Option<Known<LocalDetector>> {
    let nets = covering_each(&network.pod_cidrs.value);
    let has_others = |net: &IpNet| {
        let nodes = objects.nodes.0.values().flat_map(|node| &node.internal_ips);
        let services = objects.services.0.values().flat_map(|service| &service.cluster_ips);
        nodes.chain(services).any(|ip| net.contains(ip))
    };
    if let Some(label) = label_with_cluster_cidr(objects).filter(|_| !nets.is_empty()) {
        let from = format!("nodes with {label} have a kube-proxy with the range of all pods");
        return Some(Known::derived(LocalDetector::ClusterCidr(nets), from));
    }
    let is_none = nets.is_empty() || nets.iter().any(has_others);
    if needs_proxy(objects) {
        let taken = if is_none {
            "none".to_owned()
        } else {
            format!("{}, which has all pods", joined(&nets))
        };
        let settle = "give kube-proxy's ConfigMap, or state spec.network.podCIDRs in Facts";
        assumptions.assume(CLUSTER_CIDR, taken, NO_CIDR, settle);
    }
    (!is_none).then(|| Known::supposed(LocalDetector::ClusterCidr(nets), NO_CIDR))
}

/// Returns the label of a node whose cloud starts kube-proxy with a cluster CIDR.
fn label_with_cluster_cidr(objects: &Objects) -> Option<&str> {
    let begins = || cloud::ALL.into_iter().filter_map(|entry| entry.label_with_cluster_cidr);
    let mut nodes = objects.nodes.0.values();
    nodes.find_map(|node| begins().find_map(|begins| node.labels.key_from(begins)))
}
