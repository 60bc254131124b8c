//! Addresses as the network between the nodes knows them: which node has one, and which have none.

use std::net::IpAddr;

use uturn_model::network::NetworkMode;
use uturn_model::{Cluster, Evidence, FabricPart, Family, Ingress, IpNet, Known, Node, Service};

use crate::engine::Engine;
use crate::error::WalkError;

/// Returns the node to which packets for this address are delivered.
pub(crate) fn node_towards<'e>(engine: &'e Engine<'_>, address: IpAddr) -> Option<&'e Node> {
    if let Some(node) = engine.node_at(address) {
        return Some(node);
    }
    if let Some(pod) = engine.pod_at(address) {
        return pod.node.as_ref().and_then(|name| engine.cluster.nodes.get(name));
    }
    if let Some(node) = engine.holder_of(address) {
        return Some(node);
    }
    // Only behind a bridge is all of a node's range on that node.
    let mut nodes = engine.cluster.nodes.values();
    let is_ranged = engine.cluster.network.mode.value != NetworkMode::Routed;
    nodes.find(|node| is_ranged && node.pod_cidrs.iter().any(|net| net.contains(&address)))
}

/// Returns whether a captured node sends a packet for a pod of its own out into the network. Where
/// pods have network cards, such a packet reaches them.
pub(super) fn is_own_pod(
    engine: &Engine<'_>,
    from: Option<&Node>,
    node: &Node,
    address: IpAddr,
) -> Result<bool, WalkError> {
    let is_own = from.is_some_and(|from| from.name == node.name)
        && engine.cluster.network.mode.value != NetworkMode::VpcCni
        && engine.pod_at(address).is_some();
    Ok(is_own && engine.runtime(&node.name)?.has_captured_links)
}

/// Returns whether an address belongs to a pod and only the tunnels between nodes know it.
pub(super) fn is_hidden(cluster: &Cluster, node: &Node, address: IpAddr) -> bool {
    cluster.network.is_encapsulated(Family::of(address))
        && !node.has_address(address)
        && !node.tunnel_ips.contains(&address)
        && !node.local_addresses.contains(&address)
}

/// Returns whether packets for an address on a node need a route to the node's pods. Those to its
/// own addresses and to addresses of the VPC need none.
pub(super) fn needs_route(cluster: &Cluster, node: &Node, address: IpAddr) -> bool {
    let network = &cluster.network;
    let is_of_vpc = || network.vpc_cidrs.value.iter().any(|net| net.contains(&address));
    let is_own = || node.has_address(address) || node.local_addresses.contains(&address);
    let is_pod = || network.mode.value == NetworkMode::Routed && !is_own();
    node.pod_cidrs.iter().any(|net| net.contains(&address)) || is_pod() && !is_of_vpc()
}

/// Returns whether a Service's endpoint has this address, even if no given pod has it.
pub(super) fn is_endpoint(cluster: &Cluster, address: IpAddr) -> bool {
    let slices = cluster.endpoints.values().flatten();
    slices.flat_map(|slice| &slice.endpoints).any(|endpoint| endpoint.address == address)
}

/// Returns whether an endpoint with this address belongs to a pod that is not given.
pub(super) fn is_of_missing_pod(cluster: &Cluster, address: IpAddr) -> bool {
    let slices = cluster.endpoints.values().flatten();
    let mut all = slices.flat_map(|slice| &slice.endpoints);
    all.any(|endpoint| {
        let named = endpoint.pod.as_ref().filter(|_| endpoint.address == address);
        let has_it = |name| cluster.pods.get(name).is_some_and(|pod| pod.ips.contains(&address));
        named.is_some_and(|name| !has_it(name))
    })
}

/// Returns whether an address would certainly be known if it were in use: its range is stated
/// rather than assumed, for a range of pods all pods are given, and every kind of object could be
/// read.
pub(super) fn is_known_unused(cluster: &Cluster, address: IpAddr) -> bool {
    let network = &cluster.network;
    let is_in = |known: &Known<Vec<IpNet>>| {
        !known.is_supposed() && known.value.iter().any(|net| net.contains(&address))
    };
    cluster.unread.is_empty()
        && (is_in(&network.vpc_cidrs) || cluster.extent.pods && is_in(&network.pod_cidrs))
}

/// Returns whether the address only exists in rules on nodes.
pub(super) fn is_cluster_address(cluster: &Cluster, address: IpAddr) -> bool {
    let network = &cluster.network;
    network.service_cidrs.value.iter().any(|net| net.contains(&address))
        || cluster.services.values().any(|service| service.cluster_ips.contains(&address))
}

/// Explains why nothing answers at an address of the VPC.
pub(super) fn nothing_at(cluster: &Cluster, address: IpAddr) -> (String, Evidence) {
    let has = |ingress: &&Ingress| ingress.load_balancer.iter().any(|at| at.ip == Some(address));
    match cluster.ingresses.values().find(has) {
        Some(ingress) => {
            let object = ingress.object();
            let class = ingress.class.as_deref().unwrap_or("none");
            let why = format!(
                "{address} is the address of {object}, of class {class}: \
                 no load balancer that is known serves it"
            );
            (why, Evidence::object(object, ingress.origin.clone()))
        }
        None => {
            let by = Evidence::fabric(FabricPart::Routes);
            (format!("no node or pod has the address {address}"), by)
        }
    }
}

/// Returns the Service that has this external IP. The network's administrator routes packets for
/// such an address to a node.
pub(crate) fn has_external_ip(cluster: &Cluster, address: IpAddr) -> Option<&Service> {
    let mut services = cluster.services.values();
    services.find(|service| service.external_ips.contains(&address))
}

/// Returns whether the address belongs to the VPC or the pods' network.
pub(super) fn is_inside(cluster: &Cluster, address: IpAddr) -> bool {
    let network = &cluster.network;
    network.vpc_cidrs.value.iter().chain(&network.pod_cidrs.value).any(|net| net.contains(&address))
}
