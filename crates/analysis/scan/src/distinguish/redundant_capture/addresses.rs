//! The addresses that packets of a scan have.

use std::collections::BTreeSet;
use std::net::IpAddr;

use uturn_model::network::first_host;
use uturn_model::{Cluster, Family};

use crate::addresses;

/// Addresses of packets beside those of a cluster's objects: that of a client outside, and those
/// from which load balancers send.
const OTHERS: [&str; 5] =
    ["198.51.100.10", "192.0.2.1", "100.64.0.1", "100.127.0.1", "2001:db8:ffff::1"];

/// The addresses that packets of a scan have.
pub(crate) struct Addresses {
    /// The addresses that may be called, in their order.
    pub(super) called: BTreeSet<IpAddr>,
    /// All addresses that may be called or be a packet's source.
    pub(super) all: BTreeSet<IpAddr>,
}

impl Addresses {
    /// Returns the addresses of a cluster.
    pub(crate) fn of(cluster: &Cluster) -> Self {
        let mut called = BTreeSet::new();
        let nodes = || cluster.nodes.values();
        called.extend(nodes().flat_map(|node| node.internal_ips.iter().chain(&node.external_ips)));
        called.extend(cluster.pods.values().flat_map(|pod| &pod.ips));
        called.extend(cluster.services.values().flat_map(addresses::of_service));
        let slices = cluster.endpoints.values().flatten();
        called.extend(slices.flat_map(|slice| &slice.endpoints).map(|endpoint| endpoint.address));
        let ingresses = cluster.ingresses.values().flat_map(|ingress| &ingress.load_balancer);
        called.extend(ingresses.filter_map(|entry| entry.ip));
        called.extend(cluster.load_balancers.iter().map(|balancer| balancer.vip));
        called.extend(cluster.dns.outside.iter().map(|(_, ip)| *ip));
        let families: BTreeSet<Family> =
            nodes().flat_map(|node| &node.internal_ips).map(|ip| Family::of(*ip)).collect();
        let others = OTHERS.iter().filter_map(|address| address.parse().ok());
        let mut all: BTreeSet<IpAddr> =
            others.filter(|ip| families.contains(&Family::of(*ip))).collect();
        for net in nodes().flat_map(|node| &node.pod_cidrs) {
            all.extend([net.network(), net.broadcast()]);
            all.extend(first_host(net));
        }
        all.extend(&called);
        Self { called, all }
    }
}
