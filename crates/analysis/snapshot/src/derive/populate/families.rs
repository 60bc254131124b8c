//! Adds IPv6 addresses if Services need them and neither nodes nor pods are given.
//!
//! A manifest with `ipFamilies: [IPv6]` is for a cluster that has IPv6. Made-up nodes and pods have
//! IPv4, like most; here they get IPv6 as well.

use std::net::IpAddr;

use ipnet::IpNet;
use uturn_model::network::NetworkMode;
use uturn_model::pod::Phase;
use uturn_model::wording::{count, some_of};
use uturn_model::{Family, Service};

use super::ranges::Ranges;
use crate::decode::objects::Objects;
use crate::derive::Assumptions;

/// The IPv6 ranges of nodes and of pods. Each node has a /64 of the latter.
const NODES: &str = "fd00:10::/64";
const PODS: &str = "fd00:10:1::/48";

/// Gives IPv6 addresses to nodes and pods that were made up.
pub(super) fn complete(
    objects: &mut Objects,
    mode: NetworkMode,
    ranges: &mut Ranges,
    assumptions: &mut Assumptions,
) {
    let asks = |service: &&Service| {
        service.families.contains(&Family::V6) || service.cluster_ips.iter().any(IpAddr::is_ipv6)
    };
    let asking: Vec<_> =
        objects.services.0.values().filter(asks).map(|service| &service.name).collect();
    let mut all = objects.nodes.0.values();
    if asking.is_empty() || !all.all(|node| node.supposed && !has_v6(&node.internal_ips)) {
        return;
    }
    let services = count(asking.len(), "Service");
    let about = format!("IPv6 (asked for by {services}: {})", some_of(&asking));
    let (Ok(net), Ok(pods)) = (NODES.parse::<IpNet>(), PODS.parse::<IpNet>()) else { return };
    let mut blocks = pods.subnets(64).into_iter().flatten().skip(1);
    for node in objects.nodes.0.values_mut() {
        node.internal_ips.extend(ranges.address(net, 11));
        if mode != NetworkMode::VpcCni && !node.pod_cidrs.iter().any(|net| net.addr().is_ipv6()) {
            node.pod_cidrs.extend(blocks.next());
        }
    }
    let nodes = &objects.nodes.0;
    for pod in objects.pods.0.values_mut() {
        let Some(node) = pod.node.as_ref().and_then(|name| nodes.get(name)) else { continue };
        if has_v6(&pod.ips) || pod.phase != Phase::Running {
            continue;
        }
        if pod.spec.host_network {
            pod.ips.extend(node.internal_ips.iter().filter(|ip| ip.is_ipv6()));
            continue;
        }
        let own = node.pod_cidrs.iter().copied().find(|net| net.addr().is_ipv6());
        pod.ips.extend(ranges.address(own.unwrap_or(net), 10));
    }
    assumptions.assume(
        about,
        "every node and pod has it, beside IPv4",
        "no Node object is given",
        "give the cluster's Node and Pod objects",
    );
}

fn has_v6(ips: &[IpAddr]) -> bool {
    ips.iter().any(IpAddr::is_ipv6)
}
