//! Decides whether a program listens on a port, as far as the cluster states it.
//!
//! Containers need not declare the ports on which they listen. A pod is therefore supposed to
//! listen on any port at which it is called, unless the input states that containers listen only
//! on what they declare ([`uturn_model::Extent::listeners`]). On a node, the endpoints of Services
//! and hostNetwork pods tell what listens. Programs that no object tells of may listen at all other
//! ports of a node, but not at those of Services: rules of the node decide there, before a socket
//! is asked.

use std::net::SocketAddr;

use uturn_clouds::{local_addresses, stated};
use uturn_model::pod::ContainerPort;
use uturn_model::{Cluster, Node, ObjectKind, Pod, Protocol, gateway_ports};
use uturn_netfilter::IpProtocol;

use super::undeclared::{Declared, declared};
use crate::engine::Engine;
use crate::exchange::undeclared;
use crate::packet::Peer;
use crate::services;

/// The ports that Kubernetes gives out for Services: no program listens there.
const NODE_PORTS: std::ops::RangeInclusive<u16> = 30_000..=32_767;

/// The answer to whether a program listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listening {
    /// A program listens, or is assumed to.
    Yes(&'static str),
    /// No program listens.
    No,
    /// The cluster does not state it.
    Unknown,
}

/// Whether a port speaks TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tls {
    /// Its name or its number is that of TLS.
    Spoken,
    /// Its name or its number is that of plain HTTP.
    Plain,
    /// The cluster does not state it.
    Unknown,
}

/// Decides by a port's name and number whether it speaks TLS.
pub fn tls_of(name: Option<&str>, port: u16) -> Tls {
    let name = name.unwrap_or_default();
    if name.contains("https") || matches!(port, 443 | 6443 | 8443) {
        Tls::Spoken
    } else if matches!(name.split('-').next(), Some("http" | "http2")) || port == 80 {
        Tls::Plain
    } else {
        Tls::Unknown
    }
}

/// Returns whether a program listens at this address of the peer.
pub(super) fn at(
    engine: &Engine<'_>,
    at: Peer<'_>,
    to: SocketAddr,
    protocol: IpProtocol,
) -> Listening {
    const A_PROCESS: Listening = Listening::Yes("a process listens on this port");
    let is_stated = engine.cluster.extent.listeners;
    match at {
        // Kernels answer echo requests.
        _ if matches!(protocol, IpProtocol::ICMP | IpProtocol::ICMPV6) => A_PROCESS,
        Peer::Pod(pod) | Peer::Host(_, Some(pod))
            if protocol == IpProtocol::TCP
                && gateway_ports::opens(engine.cluster, pod, to.port()) == Some(false) =>
        {
            Listening::No
        }
        Peer::Pod(pod) | Peer::Host(_, Some(pod)) => match declared(pod, to, protocol) {
            Declared::Yes | Declared::Nothing => A_PROCESS,
            Declared::Others if is_stated => Listening::No,
            Declared::Others if undeclared::past_headless(engine, pod, to, protocol).is_some() => {
                Listening::No
            }
            Declared::Others => {
                Listening::Yes("is supposed to listen here, though it does not declare this port")
            }
        },
        Peer::Host(node, None)
            if !to.ip().is_loopback() && is_stated_target(engine.cluster, node, to.port()) =>
        {
            listening_target(engine, node, to.port())
        }
        Peer::Host(..) if is_stated => Listening::No,
        Peer::Host(node, None) if is_endpoint_on(engine, node, to) => {
            Listening::Yes("is an endpoint of a Service: a process listens on this port")
        }
        Peer::Host(node, None)
            if with_host_port_off(engine.cluster, node, to, protocol).is_some() =>
        {
            Listening::No
        }
        Peer::Host(node, None) if may_be_a_program(engine, node, to) => Listening::Unknown,
        Peer::Host(..) => Listening::No,
        Peer::Balancer(_) | Peer::Outside => A_PROCESS,
    }
}

/// Returns whether facts state that a load balancer calls a node at a port that is no Service's.
fn is_stated_target(cluster: &Cluster, node: &Node, port: u16) -> bool {
    !is_given_out(cluster, port) && stated::is_called(cluster, node, port)
}

/// Decides whether a program listens where a load balancer is stated to send. All of its targets
/// are assumed to run the same program: if that program is a pod's on other nodes, a node without
/// such a pod lacks it.
fn listening_target(engine: &Engine<'_>, node: &Node, port: u16) -> Listening {
    let mut others = engine.cluster.nodes.values().filter(|other| other.name != node.name);
    let is_pods = |other: &Node| {
        is_stated_target(engine.cluster, other, port) && engine.host_pod_on(other, port).is_some()
    };
    match others.any(is_pods) {
        false => Listening::Yes("a load balancer is stated to send here"),
        true if engine.cluster.extent.pods => Listening::No,
        true => Listening::Unknown,
    }
}

/// Returns whether Services have, or may get, this port of nodes.
fn is_given_out(cluster: &Cluster, port: u16) -> bool {
    NODE_PORTS.contains(&port) || is_node_port(cluster, port)
}

/// Returns whether a Service has this node port.
fn is_node_port(cluster: &Cluster, port: u16) -> bool {
    let services = cluster.services.values();
    let mut ports = services.flat_map(|service| &service.ports).filter_map(|port| port.node_port);
    ports.any(|node_port| node_port.number() == port)
}

/// Returns whether a Service's endpoint shows that a process of the node itself listens. An
/// endpoint at the node port of a Service does not: rules answer there.
fn is_endpoint_on(engine: &Engine<'_>, node: &Node, to: SocketAddr) -> bool {
    node.has_address(to.ip())
        && engine.node_endpoints().contains(&(to.ip(), to.port()))
        && !is_node_port(engine.cluster, to.port())
}

/// Returns the pod that asks for this port of its node, if nothing forwards it to the pod.
pub(super) fn with_host_port_off<'c>(
    cluster: &'c Cluster,
    node: &'c Node,
    to: SocketAddr,
    protocol: IpProtocol,
) -> Option<&'c Pod> {
    if cluster.network.host_ports_off.is_none() || !node.has_address(to.ip()) {
        return None;
    }
    cluster.pods_on(&node.name).find(|pod| {
        pod.is_alive()
            && !pod.spec.host_network
            && pod.spec.ports().any(|port| {
                port.host_port.is_some_and(|own| own.number() == to.port())
                    && IpProtocol::from(port.protocol) == protocol
            })
    })
}

/// Returns whether kube-proxy answers health checks of a Service at this port of nodes.
fn is_for_health_checks(cluster: &Cluster, port: u16) -> bool {
    let mut services = cluster.services.values();
    services
        .any(|service| service.health_check_node_port.is_some_and(|number| number.number() == port))
}

/// Returns whether the node holds this address of a load balancer without a rule for this Service's
/// port.
pub(super) fn is_held_unknown(
    cluster: &Cluster,
    node: &Node,
    to: SocketAddr,
    protocol: IpProtocol,
) -> bool {
    services::has_port(cluster, to, protocol)
        && !node.has_address(to.ip())
        && local_addresses::on(cluster, node).contains(&to.ip())
}

/// Returns whether a program of the node may listen at this port: the kubelet, sshd, or a proxy
/// that a rule of the node leads to. Programs may listen on the loopback address only.
fn may_be_a_program(engine: &Engine<'_>, node: &Node, to: SocketAddr) -> bool {
    let (cluster, ip) = (engine.cluster(), to.ip());
    let is_own = node.has_address(ip) || ip.is_loopback() || node.tunnel_ips.contains(&ip);
    if is_given_out(cluster, to.port()) {
        return is_own && is_for_health_checks(cluster, to.port());
    }
    // At a load balancer's address that a node holds, no program has a Service's port, nor one at
    // which the load balancer listens for an Ingress.
    let is_held = || local_addresses::on(cluster, node).contains(&ip);
    // This may be the address of the node's bridge, or of another interface.
    let is_of_no_service = || !cluster.services.values().any(|service| service.has_address(ip));
    is_own
        || if is_held() {
            !services::has_port(cluster, to, IpProtocol::TCP) && !listens_for_object(engine, to)
        } else {
            is_of_no_service()
        }
}

/// Returns whether a load balancer listens there for an object of the cluster. One that Facts state may
/// be a program of a node.
fn listens_for_object(engine: &Engine<'_>, to: SocketAddr) -> bool {
    let listener = engine.listener(to, IpProtocol::TCP);
    let mut rules = listener.into_iter().flat_map(|listener| &listener.rules);
    rules.any(|rule| rule.owner.kind != ObjectKind::LoadBalancer)
}

/// Returns whether the program that listens there speaks TLS.
pub(super) fn expects_tls(cluster: &Cluster, at: Peer<'_>, port: u16) -> Tls {
    match at {
        Peer::Pod(pod) | Peer::Host(_, Some(pod)) => {
            let name = tcp_port(pod, port).and_then(|declared| declared.name.as_deref());
            match tls_of(name, port) {
                Tls::Unknown if cluster.extent.listeners => Tls::Plain,
                tls => tls,
            }
        }
        Peer::Host(_, None) | Peer::Balancer(_) | Peer::Outside => Tls::Spoken,
    }
}

fn tcp_port(pod: &Pod, port: u16) -> Option<&ContainerPort> {
    let mut ports = pod.spec.ports();
    ports.find(|declared| declared.port.number() == port && declared.protocol == Protocol::Tcp)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_indicate_tls() {
        assert_eq!(tls_of(Some("https"), 9443), Tls::Spoken);
        assert_eq!(tls_of(Some("webhook-https"), 9443), Tls::Spoken);
        assert_eq!(tls_of(None, 8443), Tls::Spoken);
        assert_eq!(tls_of(Some("http"), 9000), Tls::Plain);
        assert_eq!(tls_of(Some("http-admin"), 9000), Tls::Plain);
        assert_eq!(tls_of(None, 80), Tls::Plain);
        assert_eq!(tls_of(Some("web"), 3000), Tls::Unknown);
    }
}
