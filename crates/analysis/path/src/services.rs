//! Services as destinations: which addresses and ports they have, and where they lack something.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use uturn_model::proxy::NodePortAddresses;
use uturn_model::service::{IpMode, Policy, ServicePort};
use uturn_model::wording::some_of;
use uturn_model::{Cluster, Evidence, Family, Name, Node, ObjectKind, Service, Version};
use uturn_netfilter::IpProtocol;

use crate::engine::Engine;
use crate::packet::Peer;

/// Returns whether a Service has this address.
pub(crate) fn has_address(cluster: &Cluster, address: IpAddr) -> bool {
    cluster.services.values().any(|service| service.has_address(address))
}

/// Returns whether a Service has this address and port.
pub(crate) fn has_port(cluster: &Cluster, to: SocketAddr, protocol: IpProtocol) -> bool {
    cluster.services.values().any(|service| {
        service.has_address(to.ip())
            && service.ports.iter().any(|port| {
                port.port.number() == to.port() && IpProtocol::from(port.protocol) == protocol
            })
    })
}

/// Returns whether a node lacks the rules for a Service that answers to this address: Facts state
/// that the node's kube-proxy has not programmed it.
pub(crate) fn lacks_rules(
    cluster: &Cluster,
    at: Peer<'_>,
    to: SocketAddr,
    protocol: IpProtocol,
) -> bool {
    let Peer::Host(node, _) = at else { return false };
    let missing = |service: &&Service| node.unprogrammed.contains(&service.name);
    cluster
        .services
        .values()
        .filter(missing)
        .any(|service| port_behind(service, node, to, protocol).is_some())
}

/// Returns whether a Service answers to this address and has no endpoint that may serve it on this
/// node.
pub(crate) fn lacks_endpoints(
    cluster: &Cluster,
    node: &Node,
    to: SocketAddr,
    protocol: IpProtocol,
) -> bool {
    cluster.services.values().any(|service| {
        let Some(port) = port_behind(service, node, to, protocol) else { return false };
        let internal = service.cluster_ips.contains(&to.ip());
        let policy = if internal { service.internal_policy } else { service.external_policy };
        let mut serving = cluster
            .slices(&service.name)
            .iter()
            .filter(|slice| slice.family == Family::of(to.ip()))
            .filter(|slice| slice.ports.iter().any(|slice_port| slice_port.name == port.name))
            .flat_map(|slice| &slice.endpoints)
            .filter(|endpoint| endpoint.ready);
        !serving.any(|endpoint| {
            policy == Policy::Cluster || endpoint.node.as_ref() == Some(node.name_for_proxy())
        })
    })
}

/// Returns the Service that answers to this address at a node, if it has the policy Local and an
/// endpoint that is ready, on other nodes only.
pub(crate) fn served_elsewhere<'c>(
    cluster: &'c Cluster,
    node: &Node,
    to: SocketAddr,
    protocol: IpProtocol,
) -> Option<&'c Service> {
    let mut services = cluster.services.values();
    services.find(|service| {
        let internal = service.cluster_ips.contains(&to.ip());
        let policy = if internal { service.internal_policy } else { service.external_policy };
        policy == Policy::Local
            && port_behind(service, node, to, protocol).is_some()
            && has_ready_endpoint(cluster, service)
    })
}

/// Says where the endpoints of a Service are: `its endpoints are on nodes a, b`.
pub fn places(cluster: &Cluster, service: &Service) -> String {
    let slices = cluster.slices(&service.name).iter();
    let ready = slices.flat_map(|slice| &slice.endpoints).filter(|endpoint| endpoint.ready);
    let nodes: BTreeSet<&Name> = ready.filter_map(|endpoint| endpoint.node.as_ref()).collect();
    let nodes: Vec<&Name> = nodes.into_iter().collect();
    match nodes.as_slice() {
        [] => "its endpoints name no node".to_owned(),
        [one] => format!("its endpoints are on node {one}"),
        many => format!("its endpoints are on nodes {}", some_of(many)),
    }
}

/// Returns the Service that has this address and port as an external IP under policy Local, and not
/// otherwise.
pub(crate) fn with_local_external_ip(
    cluster: &Cluster,
    to: SocketAddr,
    protocol: IpProtocol,
) -> Option<&Service> {
    let ip = to.ip();
    cluster.services.values().find(|service| {
        service.external_policy == Policy::Local
            && service.external_ips.contains(&ip)
            && !service.cluster_ips.contains(&ip)
            && service.load_balancer.iter().all(|entry| entry.ip != Some(ip))
            && service.ports.iter().any(|port| {
                port.port.number() == to.port() && IpProtocol::from(port.protocol) == protocol
            })
    })
}

/// Returns whether a Service has an endpoint that is ready, on any node.
pub(crate) fn has_ready_endpoint(cluster: &Cluster, service: &Service) -> bool {
    let slices = cluster.slices(&service.name).iter();
    slices.flat_map(|slice| &slice.endpoints).any(|endpoint| endpoint.ready)
}

/// Returns the Service whose node port is called at a loopback address.
pub(crate) fn called_on_loopback(
    cluster: &Cluster,
    to: SocketAddr,
    protocol: IpProtocol,
) -> Option<&Service> {
    let is_called = |port: &ServicePort| {
        port.node_port.is_some_and(|own| own.number() == to.port())
            && IpProtocol::from(port.protocol) == protocol
    };
    let mut services = cluster.services.values().filter(|_| to.ip().is_loopback());
    services.find(|service| service.ports.iter().any(is_called))
}

/// The first release whose kube-proxy holds node ports for its own family of addresses only.
const HOLDS_OWN_FAMILY: Version = Version::new(1, 18, 0);

/// Returns the Service whose node port is called by the family that its kube-proxy has no rules for,
/// though it holds the port for both: it keeps a socket open to keep others off, and accepts nothing.
/// Read in its sources: `net.Listen("tcp", ":PORT")` up to v1.17.
pub(crate) fn held_for_both_families(
    cluster: &Cluster,
    to: SocketAddr,
    protocol: IpProtocol,
) -> Option<&Service> {
    let proxy = &cluster.proxy;
    let holds = proxy.version.value < HOLDS_OWN_FAMILY
        && !proxy.version.is_supposed()
        && proxy.replaced_by().is_none()
        && proxy.node_port_addresses == NodePortAddresses::All;
    let family = Family::of(to.ip());
    let is_called = |port: &ServicePort| {
        port.node_port.is_some_and(|own| own.number() == to.port())
            && IpProtocol::from(port.protocol) == protocol
    };
    let is_other = |service: &&Service| {
        let ips = &service.cluster_ips;
        !ips.is_empty() && ips.iter().all(|ip| Family::of(*ip) != family)
    };
    let mut services = cluster.services.values().filter(|_| holds && !to.ip().is_loopback());
    services.find(|service| is_other(service) && service.ports.iter().any(is_called))
}

/// Says whose address it is and which Service took it, if a node has the address of another machine
/// for a Service that lacks this port.
pub(crate) fn taken_by(
    engine: &Engine<'_>,
    node: &Node,
    to: SocketAddr,
    protocol: IpProtocol,
) -> Option<(String, Evidence)> {
    let (service, whose) = taken_address(engine, node, to, protocol)?;
    let object = service.object();
    let why = format!(
        "{} is the address of {whose}, and node {} has it because {object} has it too",
        to.ip(),
        node.name
    );
    Some((why, Evidence::object(object, service.origin.clone())))
}

/// Returns the Service for which a node has the address of another machine, and that machine.
fn taken_address<'c>(
    engine: &Engine<'c>,
    node: &Node,
    to: SocketAddr,
    protocol: IpProtocol,
) -> Option<(&'c Service, String)> {
    let (cluster, ip) = (engine.cluster(), to.ip());
    if node.has_address(ip) {
        return None;
    }
    let service = cluster.services.values().find(|service| {
        let mut status = service.load_balancer.iter();
        service.external_ips.contains(&ip)
            || status.any(|entry| entry.mode == IpMode::Vip && entry.ip == Some(ip))
    })?;
    if let Some(other) = cluster.nodes.values().find(|other| other.internal_ips.contains(&ip)) {
        return Some((service, format!("node {}", other.name)));
    }
    let mut facts = cluster.load_balancers.iter().filter(|fact| fact.vip == ip);
    let fact = facts
        .find(|fact| fact.own_listeners().any(|(listener, _)| listener.port.number() == to.port()));
    if let Some(fact) = fact {
        return Some((service, format!("load balancer {}", fact.called())));
    }
    let owner = &engine.listener(to, protocol)?.rules.first()?.owner;
    let is_other = owner.kind != ObjectKind::LoadBalancer && *owner != service.object();
    is_other.then(|| (service, format!("the load balancer of {owner}")))
}

/// Returns the port of a Service to which an address leads on a node.
fn port_behind<'s>(
    service: &'s Service,
    node: &Node,
    to: SocketAddr,
    protocol: IpProtocol,
) -> Option<&'s ServicePort> {
    // The status of a Service may list addresses of nodes.
    let (on_node, is_own) = (node.has_address(to.ip()), service.has_address(to.ip()));
    service.ports.iter().find(|port| {
        let at_node = on_node && port.node_port.is_some_and(|at| at.number() == to.port());
        let at_own = is_own && port.port.number() == to.port();
        IpProtocol::from(port.protocol) == protocol && (at_node || at_own)
    })
}
