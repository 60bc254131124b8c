//! Targets as most controllers make them: NodePorts of nodes, or pods.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use uturn_model::lb::{Target, TargetKind};
use uturn_model::service::{ServicePort, TargetPort};
use uturn_model::{Cluster, Endpoint, EndpointPort, Family, Labels, Name, Node, Port, Service};

/// Returns whether a ready endpoint of a Service is on a node.
pub fn has_ready_pod(cluster: &Cluster, service: &Service, node: &Name) -> bool {
    ready_endpoints(cluster, service, node).next().is_some()
}

/// Returns whether a Service has a ready endpoint on any node.
pub fn has_endpoint(cluster: &Cluster, service: &Service) -> bool {
    let mut endpoints = cluster.slices(&service.name).iter().flat_map(|slice| &slice.endpoints);
    endpoints.any(|endpoint| endpoint.ready)
}

/// Returns the addresses of the ready endpoints of a Service that are on a node.
pub fn ready_endpoints<'c>(
    cluster: &'c Cluster,
    service: &Service,
    node: &'c Name,
) -> impl Iterator<Item = IpAddr> + 'c {
    let endpoints = cluster.slices(&service.name).iter().flat_map(|slice| &slice.endpoints);
    let here = endpoints.filter(|endpoint| endpoint.ready && endpoint.node.as_ref() == Some(node));
    here.map(|endpoint| endpoint.address)
}

/// Returns the ports of pods to which a Service's port leads. A name leads to what slices and pods
/// give it; if none does, the list is empty.
pub fn pod_ports(cluster: &Cluster, service: &Service, port: &ServicePort) -> BTreeSet<Port> {
    let name = match &port.target {
        TargetPort::Number(number) => return BTreeSet::from([*number]),
        TargetPort::Name(name) => name,
    };
    let in_slices = cluster.slices(&service.name).iter().flat_map(|slice| &slice.ports);
    let in_slices = in_slices.filter(|own| own.protocol == port.protocol && own.name == port.name);
    let pods = cluster.selected(service).into_iter();
    let in_pods = pods.filter_map(|pod| pod.spec.named_port(name, port.protocol));
    in_slices.map(|own| own.port).chain(in_pods).collect()
}

/// Returns the NodePort of a Service's port on each of these nodes that has an address of the
/// family.
pub fn node_ports(
    nodes: Vec<&Node>,
    port: &ServicePort,
    family: Family,
    weight: u32,
) -> Vec<Target> {
    let Some(node_port) = port.node_port else { return Vec::new() };
    let target = |node: &Node| {
        Some(Target {
            address: SocketAddr::new(node.address(family)?, node_port.number()),
            weight,
            kind: TargetKind::NodePort(node.name.clone()),
        })
    };
    nodes.into_iter().filter_map(target).collect()
}

/// Returns the number of ready endpoints of a Service on the node of a NodePort.
pub fn pods_behind(cluster: &Cluster, service: &Service, target: &Target) -> u32 {
    let TargetKind::NodePort(node) = &target.kind else { return target.weight };
    let addresses: BTreeSet<IpAddr> = ready_endpoints(cluster, service, node).collect();
    addresses.len().try_into().unwrap_or(u32::MAX)
}

/// Returns the endpoints of a Service's port that have a weight. If several have one address, as a
/// terminating pod and its successor may for a moment, the one with the largest weight counts.
pub fn pods(
    cluster: &Cluster,
    service: &Service,
    port: &ServicePort,
    family: Family,
    weight: impl Fn(&Endpoint) -> Option<u32>,
) -> Vec<Target> {
    let mut targets: Vec<Target> = Vec::new();
    let is_same = |own: &&EndpointPort| own.protocol == port.protocol && own.name == port.name;
    for slice in cluster.slices(&service.name).iter().filter(|slice| slice.family == family) {
        let Some(slice_port) = slice.ports.iter().find(is_same) else { continue };
        for endpoint in &slice.endpoints {
            let Some(weight) = weight(endpoint) else { continue };
            let target = Target {
                address: SocketAddr::new(endpoint.address, slice_port.port.number()),
                weight,
                kind: TargetKind::Pod { pod: endpoint.pod.clone(), node: endpoint.node.clone() },
            };
            match targets.iter_mut().find(|there| there.address == target.address) {
                Some(there) if there.weight < target.weight => *there = target,
                Some(_) => {}
                None => targets.push(target),
            }
        }
    }
    targets
}

/// Returns the labels that nodes must have, from text such as `k=v`, or several pairs separated by
/// commas.
pub fn label_pairs(text: &str) -> Labels {
    text.split(',').filter_map(|pair| pair.trim().split_once('=')).collect()
}
