//! The targets of a scan: everything that clients of a cluster call.

mod called_nodes;
mod node_kinds;

use std::cell::LazyCell;
use std::net::{IpAddr, SocketAddr};

use uturn_clouds::cloud::Owner;
use uturn_clouds::controller;
use uturn_model::gateway::AttachedRoute;
use uturn_model::lb::{ListenerProtocol, NamedAddress};
use uturn_model::service::ServiceKind;
use uturn_model::{Cluster, Destination, Ingress, ObjectRef, Port, Protocol, Service, Text};

pub use self::called_nodes::CalledNode;
use self::called_nodes::CalledNodes;
pub use self::node_kinds::node_kinds;

/// A destination that clients of the cluster call.
#[derive(Clone, Debug, PartialEq)]
pub struct ScanTarget {
    /// The object to which the target belongs.
    pub object: ObjectRef,
    /// The destination of a call.
    pub to: Destination,
    /// The protocol of a call.
    pub protocol: Protocol,
    /// The label for display: `:80`, `:80 shop.example.com/`.
    pub label: String,
    /// The kind of address that is called.
    pub at: AddressKind,
}

/// The kind of address that a target has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressKind {
    /// A Service's own address in the cluster.
    ClusterIp,
    /// An address of a node, on a node port of the Service.
    NodePort(CalledNode),
    /// Another: of a load balancer, or an external IP.
    Other,
}

impl ScanTarget {
    /// Returns what is called, and by which protocol.
    pub(crate) fn called(&self) -> (&Destination, Protocol) {
        (&self.to, self.protocol)
    }

    /// Returns whether the destination is a Service's own address in the cluster.
    pub fn is_cluster_ip(&self) -> bool {
        self.at == AddressKind::ClusterIp
    }

    /// Returns the node whose node port is called, if one is.
    pub fn called_node(&self) -> Option<&CalledNode> {
        match &self.at {
            AddressKind::NodePort(node) => Some(node),
            AddressKind::ClusterIp | AddressKind::Other => None,
        }
    }
}

/// Returns everything that clients of a cluster can call.
pub(crate) fn of(cluster: &Cluster) -> Vec<ScanTarget> {
    let mut targets = Vec::new();
    let called_nodes = LazyCell::new(|| CalledNodes::of(cluster));
    for service in cluster.services.values() {
        let object = service.object();
        let mut push = |to: Destination, protocol, label: String| {
            let is_cluster_ip = match &to {
                Destination::Service(..) => true,
                Destination::Address(at) => service.cluster_ips.contains(&at.ip()),
                _ => false,
            };
            let at = if is_cluster_ip { AddressKind::ClusterIp } else { AddressKind::Other };
            let object = object.clone();
            targets.push(ScanTarget { object, to, protocol, label, at });
        };
        for port in &service.ports {
            if !service.cluster_ips.is_empty() {
                let to =
                    Destination::Service(service.name.clone(), Some(port.port.to_string().into()));
                push(to, port.protocol, format!(":{}", port.port));
                for ip in service.cluster_ips.iter().skip(1) {
                    let at = SocketAddr::new(*ip, port.port.number());
                    push(Destination::Address(at), port.protocol, at.to_string());
                }
            }
            if service.kind == ServiceKind::LoadBalancer {
                for entry in &service.load_balancer {
                    let named = entry.hostname.as_deref().filter(|_| entry.ip.is_none());
                    let addresses = named.map_or(&[][..], |host| cluster.dns.of_balancer(host));
                    for at in addresses {
                        let to = Destination::Address((at.address, port.port.number()).into());
                        push(to, port.protocol, name_label(named, at, port.port));
                    }
                    // Programs on a developer's machine write a loopback address, which belongs to
                    // every caller.
                    if let Some(vip) = entry.ip.filter(|vip| !vip.is_loopback()) {
                        let at = SocketAddr::new(vip, port.port.number());
                        push(Destination::Address(at), port.protocol, at.to_string());
                    }
                }
            }
            for ip in &service.external_ips {
                let at = SocketAddr::new(*ip, port.port.number());
                push(Destination::Address(at), port.protocol, at.to_string());
            }
        }
        targets.extend(of_node_ports(service, &called_nodes));
    }
    for ingress in cluster.ingresses.values() {
        if !controller::is_served(cluster, ingress)
            || controller::addresses(cluster, Owner::Ingress(ingress))
                .first()
                .is_none_or(|at| at.address.is_loopback())
        {
            continue;
        }
        if let Some(route) = ingress.route.as_ref().filter(|route| route.is_of_connections()) {
            targets.extend(of_connections(ingress, route));
            continue;
        }
        let ports = LazyCell::new(|| controller::IngressPorts::of(cluster, ingress));
        let mut push = |host: Option<Text>, path: Option<Text>| {
            let (own_host, own_path) = (host.as_ref(), path.as_ref());
            let (port, _) =
                controller::ingress_serves(cluster, ingress, own_host, own_path, || &*ports);
            let label = format!(
                ":{port} {}{}",
                host.as_deref().unwrap_or("*"),
                path.as_deref().unwrap_or("/")
            );
            targets.push(ScanTarget {
                object: ingress.object(),
                to: Destination::Ingress { name: ingress.name.clone(), host, path, port: None },
                protocol: Protocol::Tcp,
                label,
                at: AddressKind::Other,
            });
        };
        for rule in &ingress.rules {
            for path in &rule.paths {
                push(rule.host.clone(), Some(path.path.clone()));
            }
        }
        if ingress.rules.is_empty() && ingress.default_backend.is_some() {
            push(None, Some("/".into()));
        }
    }
    for fact in &cluster.load_balancers {
        for (listener, _) in fact.own_listeners() {
            let at = NamedAddress { address: fact.vip, zone: fact.zone.clone() };
            targets.push(ScanTarget {
                object: fact.object(),
                to: Destination::Address((fact.vip, listener.port.number()).into()),
                protocol: listener.protocol.map_or(Protocol::Tcp, ListenerProtocol::transport),
                label: match &fact.hostname {
                    Some(host) => name_label(Some(host), &at, listener.port),
                    None => SocketAddr::new(fact.vip, listener.port.number()).to_string(),
                },
                at: AddressKind::Other,
            });
        }
    }
    targets
}

/// Returns the targets of a Service's node ports: each at one node of each kind.
fn of_node_ports(service: &Service, nodes: &CalledNodes<'_>) -> Vec<ScanTarget> {
    let mut targets = Vec::new();
    for (node, ip) in nodes.of_service(service) {
        for port in &service.ports {
            let Some(node_port) = port.node_port else { continue };
            targets.push(ScanTarget {
                object: service.object(),
                to: Destination::Address(SocketAddr::new(ip, node_port.number())),
                protocol: port.protocol,
                label: node_port_label(&node, ip, node_port),
                at: AddressKind::NodePort(node.clone()),
            });
        }
    }
    targets
}

/// Formats a node port of a node that represents others.
fn node_port_label(node: &CalledNode, ip: IpAddr, port: Port) -> String {
    let at = SocketAddr::new(ip, port.number());
    let CalledNode { name, others, .. } = node;
    match others {
        0 => format!("node port {at} of {name}"),
        1 => format!("node port {at} of {name} and of 1 other node"),
        _ => format!("node port {at} of {name} and of {others} other nodes"),
    }
}

/// Returns the targets of a route for connections: each port of its Gateway, with each name that
/// clients ask for there.
fn of_connections<'i>(
    ingress: &'i Ingress,
    route: &'i AttachedRoute,
) -> impl Iterator<Item = ScanTarget> + 'i {
    route.listeners.iter().flat_map(move |listener| {
        let port = listener.port;
        listener.hosts.iter().map(move |host| ScanTarget {
            object: ingress.object(),
            to: Destination::Ingress {
                name: ingress.name.clone(),
                host: host.clone(),
                path: None,
                port: Some(port),
            },
            protocol: Protocol::Tcp,
            label: match host {
                Some(host) => format!(":{port} {host}"),
                None => format!(":{port}"),
            },
            at: AddressKind::Other,
        })
    })
}

/// Formats an address and port: with the load balancer's name if clients call it by that.
pub fn address_label(cluster: &Cluster, at: SocketAddr) -> String {
    match (cluster.dns.balancer_at(at.ip()), Port::new(at.port())) {
        (Some((host, named)), Some(port)) => name_label(Some(host), named, port),
        _ => at.to_string(),
    }
}

/// Formats a load balancer's name and a port, with the zone if it has an address in each.
fn name_label(host: Option<&str>, at: &NamedAddress, port: Port) -> String {
    let host = host.unwrap_or_default();
    match &at.zone {
        Some(zone) => format!("{host}:{port} in {zone}"),
        None => format!("{host}:{port}"),
    }
}
