//! Finds Services with an address that belongs to a node or to a load balancer of its own. Whoever
//! takes the address for the Service's has its other ports taken away from all others.

use std::collections::BTreeSet;
use std::net::IpAddr;

use uturn_clouds::cloud::{self, Maker};
use uturn_clouds::local_addresses;
use uturn_model::lb::LoadBalancerFact;
use uturn_model::service::{IpMode, ServiceKind};
use uturn_model::{Cluster, Family, Node, ObjectKind, Outcome, ProxyMode, Service, Share};
use uturn_path::Engine;

use super::object_faults::about;
use crate::clients::Clients;
use crate::finding::Finding;
use crate::{Code, Severity};

/// Ports of nodes that others call: of remote shells, the API server and the kubelet.
const OF_NODES: [u16; 3] = [22, 6443, 10_250];

/// The field that gives an address to a Service.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    External,
    Status,
}

impl Field {
    fn as_str(self) -> &'static str {
        match self {
            Self::External => "spec.externalIPs",
            Self::Status => "status.loadBalancer",
        }
    }
}

pub(crate) fn find(engine: &Engine<'_>) -> Vec<Finding> {
    let cluster = engine.cluster();
    cluster.services.values().flat_map(|service| of_service(engine, service)).collect()
}

/// Returns those of machines that call from the nodes' segment, each under the condition that a node
/// answers for another one. Walks show the others.
pub(super) fn on_segment(engine: &Engine<'_>) -> impl Iterator<Item = Finding> {
    let all = find(engine).into_iter();
    let all = all.filter(|own| own.clients.others().contains(&Clients::SAME_NETWORK));
    all.map(|mut finding| {
        let addresses = finding.targets.join(" or ");
        finding.conditions.push(format!("another node announces {addresses}").into());
        finding
    })
}

fn of_service(engine: &Engine<'_>, service: &Service) -> Vec<Finding> {
    let cluster = engine.cluster();
    let external = service.external_ips.iter().map(|ip| (*ip, Field::External));
    let is_vip = |mode| mode == IpMode::Vip;
    let status = service.load_balancer.iter().filter(|entry| is_vip(entry.mode));
    let status = status.filter_map(|entry| Some((entry.ip?, Field::Status)));
    let mut seen = BTreeSet::new();
    let all = external.chain(status).filter(|(address, _)| seen.insert(*address));
    all.filter_map(|(address, field)| {
        of_node(cluster, service, address, field)
            .or_else(|| of_public_address(cluster, service, address, field))
            .or_else(|| of_balancer(cluster, service, address, field))
            .or_else(|| of_listener(engine, service, address, field))
    })
    .collect()
}

/// Returns whether every node has the addresses of Services on an interface.
fn are_bound(cluster: &Cluster) -> bool {
    let proxy = &cluster.proxy;
    proxy.replaced_by().is_none() && proxy.mode.value == ProxyMode::Ipvs
}

/// Returns whether the load balancers of a Service are pods on nodes, whose addresses it has on
/// purpose.
fn is_on_nodes(cluster: &Cluster, service: &Service) -> bool {
    match cloud::maker_of(service, &cluster.provider) {
        Maker::Product(product, _) => product.is_on_nodes(),
        _ => false,
    }
}

/// Finds that an address of a Service is that of a node.
fn of_node(cluster: &Cluster, service: &Service, address: IpAddr, field: Field) -> Option<Finding> {
    let node = cluster.nodes.values().find(|node| node.internal_ips.contains(&address))?;
    let name = &node.name;
    if field == Field::Status && is_on_nodes(cluster, service) {
        return None;
    }
    let begins = format!("{} has {address}, the InternalIP of Node {name}", field.as_str());
    if are_bound(cluster) && cluster.nodes.len() > 1 {
        let what = format!(
            "{begins}. In IPVS mode kube-proxy binds it on every node, so what other nodes and their \
             pods send to any other port of {name} (kubelet, API server, tunnels) stays on their own \
             node"
        );
        return Some(made(service, address, what, Clients::OTHER_NODES));
    }
    if field == Field::Status && is_announced_by_arp(cluster, service) {
        let what = format!(
            "{begins}. Another node that announces it answers for {name} on the segment, and gets \
             what is meant for any other port of {name} (kubelet, ssh)"
        );
        return Some(made(service, address, what, Clients::SAME_NETWORK));
    }
    let port = used_port(cluster, service, node)?;
    let what = format!(
        "{begins}, and the Service has port {port}, at which {name} itself is called: the rules of \
         the Service come first on every node"
    );
    let mut finding = made(service, address, what, Clients::OTHER_NODES);
    finding.severity = Severity::Warning;
    Some(finding)
}

/// Finds that an address of a Service is that of a load balancer which Facts state with targets of
/// its own, such as the one in front of API servers.
fn of_balancer(
    cluster: &Cluster,
    service: &Service,
    address: IpAddr,
    field: Field,
) -> Option<Finding> {
    let is_its_own = |fact: &&LoadBalancerFact| fact.vip == address;
    let fact = cluster.load_balancers.iter().find(is_its_own)?;
    let has_port = |number: u16| service.ports.iter().any(|port| port.port.number() == number);
    let own = fact.own_listeners().map(|(listener, _)| listener);
    let mut others = own.filter(|listener| !has_port(listener.port.number()));
    let other = others.next()?;
    if field == Field::Status || !are_bound(cluster) {
        return None;
    }
    let what = format!(
        "{} has {address}, the address of load balancer {}. In IPVS mode kube-proxy binds it on every \
         node, so what nodes and pods send to its port {} stays on their own node",
        field.as_str(),
        fact.called(),
        other.port
    );
    Some(made(service, address, what, Clients::OTHER_NODES))
}

/// Finds that an external IP is a public address of a node, which the network translates to the
/// node's own: kube-proxy's rules are for the public one, and no packet from outside has it.
fn of_public_address(
    cluster: &Cluster,
    service: &Service,
    address: IpAddr,
    field: Field,
) -> Option<Finding> {
    let has = |node: &&Node| {
        node.external_ips.contains(&address) && !node.local_addresses.contains(&address)
    };
    let node = cluster.nodes.values().find(|node| field == Field::External && has(node))?;
    let own = node.address(Family::of(address)).filter(|own| *own != address)?;
    if service.has_address(own) {
        return None;
    }
    let what = format!(
        "{} has {address}, the ExternalIP of Node {}, whose own address is {own}: what is translated on \
         the way arrives as {own}, for which kube-proxy has no rule",
        field.as_str(),
        node.name
    );
    let mut finding = made(service, address, what, Clients::OUTSIDE);
    let is_usual = cloud::translates_public_address(cluster, node);
    finding.severity = if is_usual { Severity::Warning } else { Severity::Info };
    finding.conditions.push(
        format!(
            "the network translates {address} to {own}, and no program of the node listens there"
        )
        .into(),
    );
    Some(finding)
}

/// Finds that nodes have the address of a load balancer for a Service, and that the load balancer
/// listens there for another object, at a port that the Service lacks.
fn of_listener(
    engine: &Engine<'_>,
    service: &Service,
    address: IpAddr,
    field: Field,
) -> Option<Finding> {
    let cluster = engine.cluster();
    let has_port = |number: u16| service.ports.iter().any(|port| port.port.number() == number);
    let all = engine.listeners();
    let at = all.binary_search_by_key(&address, |balancer| balancer.vip).ok()?;
    let mut listeners = all.get(at)?.listeners.iter();
    let (port, owner) = listeners.find_map(|listener| {
        let owner = &listener.rules.first()?.owner;
        let is_other = owner.kind == ObjectKind::Ingress && !has_port(listener.port.number());
        is_other.then_some((listener.port, owner))
    })?;
    let holds = |node: &&Node| local_addresses::on(cluster, node).contains(&address);
    let how = if are_bound(cluster) {
        "In IPVS mode kube-proxy binds it on every node"
    } else if cluster.nodes.values().any(|node| holds(&node)) {
        "Nodes have it on an interface for the Service's sake"
    } else {
        return None;
    };
    let what = format!(
        "{} has {address}, the address of the load balancer of {owner}. {how}, so what nodes and their \
         pods send to its port {port} stays on their own node",
        field.as_str()
    );
    Some(made(service, address, what, Clients::NODES))
}

fn made(service: &Service, address: IpAddr, what: String, who: &'static str) -> Finding {
    let mut finding = about(Code::AddressTaken, service.object(), &service.origin, what);
    finding.targets = vec![address.to_string()];
    finding.clients = Clients::other(who);
    finding.share_failing = Share::ALL;
    finding.outcome = Outcome::Refused;
    finding
}

/// Returns whether a node answers for the Service's addresses on its segment.
fn is_announced_by_arp(cluster: &Cluster, service: &Service) -> bool {
    use uturn_model::AnnouncedBy::Routes;
    if service.kind != ServiceKind::LoadBalancer {
        return false;
    }
    // Some controllers write the addresses of all nodes: these are meant.
    let is_node = |ip: IpAddr| cluster.nodes.values().any(|node| node.has_address(ip));
    let mut status = service.load_balancer.iter().filter_map(|entry| entry.ip);
    if service.load_balancer.len() > 1 && status.all(is_node) {
        return false;
    }
    let announced = &cluster.announcements.all;
    let is_by_routes = !announced.is_empty() && announced.iter().all(|own| own.by == Routes);
    match cloud::maker_of(service, &cluster.provider) {
        Maker::Product(product, _) => product.is_announced() && !is_by_routes,
        _ => false,
    }
}

/// Returns a port of the Service at which the node itself is called, by its kubelet, by its API
/// server, or by a pod of its network.
fn used_port(cluster: &Cluster, service: &Service, node: &Node) -> Option<u16> {
    let selected: BTreeSet<_> =
        cluster.selected(service).into_iter().map(|pod| pod.name.clone()).collect();
    let on_host = cluster
        .pods_on(&node.name)
        .filter(|pod| pod.is_alive() && pod.spec.host_network && !selected.contains(&pod.name));
    let declared: BTreeSet<u16> =
        on_host.flat_map(|pod| pod.spec.ports()).map(|port| port.port.number()).collect();
    let mut ports = service.ports.iter().map(|port| port.port.number());
    ports.find(|port| OF_NODES.contains(port) || declared.contains(port))
}
