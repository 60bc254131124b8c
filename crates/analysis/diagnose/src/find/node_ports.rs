//! Finds node ports that do not serve machines of the network around the nodes, and those that
//! nothing serves on loopback.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use uturn_model::service::{Policy, ServicePort};
use uturn_model::{Client, Cluster, Destination, Family, Flow, Mechanism, Service};
use uturn_path::{Engine, WalkError};
use uturn_scan::{CalledNode, ScanTarget, Scanner};

use super::MAX_PAIRS;
use super::loopback;
use super::outside_clients::OutsideClients;
use super::walked::{self, Caused};
use crate::Severity;
use crate::clients::Clients;

/// Walks calls to each node port that has no load balancer in front of it: of a machine of the
/// network around the nodes, and of the node's own programs by loopback.
///
/// # Errors
/// Returns an error if a flow cannot be walked.
pub(super) fn find(scanner: &Scanner<'_, '_>) -> Result<Vec<Caused>, WalkError> {
    let engine = scanner.engine();
    let cluster = engine.cluster();
    if cluster.nodes.len() * cluster.services.len() > MAX_PAIRS {
        return Ok(Vec::new());
    }
    let mut all = Vec::new();
    let mut clients = None;
    for target in scanner.targets() {
        let Some(node) = target.called_node() else { continue };
        let clients = clients.get_or_insert_with(|| OutsideClients::of(engine));
        all.extend(from_outside(engine, clients, &target, node)?);
        all.extend(on_loopback(engine, &target, node)?);
    }
    Ok(all)
}

/// Returns the finding that a node port is not served on loopback, if something calls it there.
fn on_loopback(
    engine: &Engine<'_>,
    target: &ScanTarget,
    node: &CalledNode,
) -> Result<Option<Caused>, WalkError> {
    let Destination::Address(to) = &target.to else { return Ok(None) };
    let Some(caller) = loopback::caller(engine.cluster(), to.port()) else { return Ok(None) };
    let name = target.object.namespaced_name();
    let service = name.and_then(|name| engine.cluster().services.get(&name));
    let has_v4 = service.is_some_and(|own| own.cluster_ips.iter().any(IpAddr::is_ipv4));
    let loopback = match to.ip() {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
        // Programs that ask for localhost try both addresses.
        IpAddr::V6(_) if has_v4 => return Ok(None),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
    };
    let to = Destination::Address(SocketAddr::new(loopback, to.port()));
    let label = format!("{to} on {}", node.name);
    let from = Client::Node(node.name.clone());
    let flow = Flow { from, to, protocol: target.protocol };
    let found = walked::failure(engine, (&target.object, &label), flow, Clients::NODES)?;
    let Some((mut finding, _)) = found else { return Ok(None) };
    finding.other_evidence.push(caller);
    let is_it = finding.mechanism == Some(Mechanism::NotOnLoopback);
    Ok(is_it.then_some((finding, Vec::new())))
}

fn from_outside(
    engine: &Engine<'_>,
    clients: &OutsideClients<'_>,
    target: &ScanTarget,
    node: &CalledNode,
) -> Result<Option<Caused>, WalkError> {
    let cluster = engine.cluster();
    let name = target.object.namespaced_name();
    let Some(service) = name.and_then(|name| cluster.services.get(&name)) else { return Ok(None) };
    let Destination::Address(to) = &target.to else { return Ok(None) };
    let Some(from) = clients.near(Family::of(to.ip())) else { return Ok(None) };
    let flow = Flow { from, to: target.to.clone(), protocol: target.protocol };
    let about = (&target.object, &*target.label);
    let found = walked::failure(engine, about, flow, Clients::SAME_NETWORK)?;
    let Some((mut finding, faults)) = found else { return Ok(None) };
    let mechanism = finding.mechanism;
    // The rules of a captured node show whom they let in only for the addresses that they name.
    if mechanism == Some(Mechanism::Firewall) && !cluster.captures.is_empty() {
        return Ok(None);
    }
    finding.severity = finding.severity.min(most_severe(service, node, mechanism));
    finding.severity = finding.severity.min(severity_at(cluster, target, mechanism));
    Ok(Some((finding, faults)))
}

/// Returns the highest severity of a finding about a target that is a node port: `Error` for any
/// other.
pub(super) fn severity_at(
    cluster: &Cluster,
    target: &ScanTarget,
    mechanism: Option<Mechanism>,
) -> Severity {
    let name = target.object.namespaced_name();
    let service = name.and_then(|name| cluster.services.get(&name));
    // A controller that opens its port with the first host that asks for TLS is healthy.
    let is_shut = service.is_some_and(|service| {
        let mut controllers = cluster.controllers.iter().filter(|own| !own.shut.is_empty());
        controllers.any(|own| {
            service
                .ports
                .iter()
                .any(|port| is_called(port, target) && own.is_shut_behind(&service.name, port.port))
        })
    });
    if is_shut && mechanism == Some(Mechanism::WrongPort) {
        return Severity::Info;
    }
    match (target.called_node(), service) {
        (Some(node), Some(service)) => most_severe(service, node, mechanism),
        _ => Severity::Error,
    }
}

/// Returns whether a target's address has a port of its Service, or the node port.
fn is_called(port: &ServicePort, target: &ScanTarget) -> bool {
    let own = [Some(port.port), port.node_port];
    let mut own = own.into_iter().flatten();
    match &target.to {
        Destination::Address(to) => own.any(|own| own.number() == to.port()),
        Destination::Service(_, Some(to)) => own.any(|own| *own.to_string() == **to),
        _ => false,
    }
}

/// Returns the highest severity of a finding about a node port. That a node without an endpoint does
/// not serve is what policy Local asks for, and security groups often let in only those who are
/// meant to call.
fn most_severe(service: &Service, node: &CalledNode, mechanism: Option<Mechanism>) -> Severity {
    match mechanism {
        _ if service.external_policy == Policy::Local && !node.has_endpoint => Severity::Info,
        Some(Mechanism::SecurityGroup | Mechanism::NoEndpoint) => Severity::Warning,
        _ => Severity::Error,
    }
}
