//! Checks what a Service needs to be reached from outside the cluster.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use uturn_model::lb::{Rule, Scope};
use uturn_model::service::Policy;
use uturn_model::shell::Advice;
use uturn_model::{Client, Destination, Family, Mechanism, Node, Protocol, Service, Text};
use uturn_path::Engine;

use super::{from_each, lacks_endpoints};
use crate::check::nodes::{group_lets_in, node_ports as node_port_range};
use crate::check::{Check, State, flow, walked};
use crate::find::stated_checks;
use crate::finding::Finding;
use crate::{Code, call, cloud};

/// Checks the security groups of the nodes.
pub(in crate::check) fn groups(engine: &Engine<'_>) -> Check {
    let cluster = engine.cluster();
    let (ports, groups) = (cloud::node_ports(cluster), cloud::firewalls(cluster));
    let place = cloud::place(cluster);
    let what = format!("the nodes' {groups} let {ports} in");
    let nodes = engine.cluster().nodes.values();
    let (mut shut, mut open, mut unknown) = (Vec::new(), 0, 0);
    for node in nodes {
        match group_lets_in(engine, node, node_port_range(cluster)) {
            Some(Ok(())) => open += 1,
            Some(Err(why)) => shut.push(format!("node {}: {why}", node.name)),
            None => unknown += 1,
        }
    }
    if !shut.is_empty() {
        // They may let in those who call.
        let state = if stop_a_client(engine) { State::Failed } else { State::Unknown };
        let mut check = Check::new(what, state);
        check.evidence = shut;
        if state == State::Unknown {
            let why = "calls of the load balancers pass, unless their own addresses are not let in";
            check.evidence.push(why.to_owned());
        }
        let advice = format!("{place}: let TCP and UDP {ports} in; ");
        return check.next(Advice::sentence(&advice).then_command(&Code::SecurityGroup.explain()));
    }
    match (open, unknown) {
        (_, 0) => Check::ok(what, format!("{open} nodes, as Facts state their groups")),
        _ => {
            let group = cloud::firewall(cluster);
            let advice = format!(
                "look at the nodes' {groups} {place}, or state nodes.*.securityGroups in Facts"
            );
            Check::unknown(what, format!("of {unknown} nodes no {group} is stated"))
                .next(Advice::sentence(&advice))
        }
    }
}

/// The maximum number of listeners that are called to find out whether groups stop clients.
const CALLED: usize = 20;

/// Returns whether groups stop calls of load balancers from outside. The sources of what the modelled
/// cloud's load balancers send are known, so the ports tell.
fn stop_a_client(engine: &Engine<'_>) -> bool {
    if uturn_clouds::cloud::model(engine.cluster()).is_some() || engine.listeners().is_empty() {
        return true;
    }
    let listeners = engine.listeners().iter().flat_map(|balancer| {
        balancer.listeners.iter().map(move |listener| (balancer.vip, listener))
    });
    let mut flows = listeners.take(CALLED).map(|(vip, listener)| {
        let at = SocketAddr::new(vip, listener.port.number());
        let protocol = listener.protocol.transport();
        flow(Client::Outside(None), call::destination(listener, at), protocol)
    });
    flows.any(|flow| {
        let verdict = engine.verdict(&flow);
        verdict.is_ok_and(|verdict| verdict.mechanisms.contains(&Mechanism::SecurityGroup))
    })
}

/// Checks bandwidth if Facts state it, or if the cloud has accounts that bill it by node.
pub(super) fn bandwidth(engine: &Engine<'_>, service: &Service) -> Option<Check> {
    let cluster = engine.cluster();
    let is_stated = cluster.nodes.values().any(|node| node.public_bandwidth.is_some());
    let what = match cloud::words(cluster).bandwidth {
        Some(what) => what,
        None if is_stated => "the nodes have public bandwidth",
        None => return None,
    };
    Some(bandwidth_of(engine, service, what))
}

fn bandwidth_of(engine: &Engine<'_>, service: &Service, what: &str) -> Check {
    let is_public = engine.listeners().iter().any(|balancer| {
        balancer.scope == Scope::Public
            && service.load_balancer.iter().any(|lb| lb.ip == Some(balancer.vip))
    });
    if !is_public {
        return Check::ok(what, "not needed: the load balancer is a private one");
    }
    let nodes: Vec<&Node> = engine.cluster().nodes.values().collect();
    let without: Vec<&str> = nodes
        .iter()
        .filter(|node| node.public_bandwidth == Some(false))
        .map(|node| node.name.as_str())
        .collect();
    if !without.is_empty() {
        return Check::failed(what, format!("none: {}", without.join(", ")))
            .next(Code::NoBandwidth.explain());
    }
    if nodes.iter().all(|node| node.public_bandwidth == Some(true)) {
        return Check::ok(what, "as Facts state it");
    }
    Check::unknown(what, "not stated").next(
        "look at the account's billing and the nodes' bandwidth; state \
         nodes.*.publicBandwidth in Facts",
    )
}

/// Checks calls past the load balancer, to each node's own address and port.
pub(super) fn node_ports(engine: &Engine<'_>, service: &Service) -> Check {
    let cluster = engine.cluster();
    let mut flows = Vec::new();
    let nodes: Vec<&Node> = cluster.nodes.values().collect();
    let slices = cluster.slices(&service.name);
    let homes: Vec<_> = slices
        .iter()
        .flat_map(|slice| &slice.endpoints)
        .filter_map(|endpoint| endpoint.node.as_ref())
        .collect();
    for port in &service.ports {
        let Some(number) = port.node_port else { continue };
        for (at, node) in nodes.iter().enumerate() {
            // A node without a pod answers no call under policy Local.
            if service.external_policy == Policy::Local && !homes.contains(&&node.name) {
                continue;
            }
            let Some(ip) = node.address(Family::V4).or(node.address(Family::V6)) else { continue };
            let other = nodes[(at + 1) % nodes.len()];
            let to = Destination::Address(SocketAddr::new(ip, number.number()));
            flows.push(flow(Client::Node(other.name.clone()), to, port.protocol));
        }
    }
    walked(engine, "NodeIP:NodePort answers, past the load balancer", flows)
}

/// Returns the addresses of a Service's load balancer: those of its status, and those that stand in
/// for a host name in the status.
fn addresses(engine: &Engine<'_>, service: &Service) -> BTreeSet<IpAddr> {
    let owner = service.object();
    let serves = |rule: &Rule| rule.owner == owner;
    let balancers = engine.listeners().iter().filter(|balancer| {
        balancer.listeners.iter().flat_map(|listener| &listener.rules).any(serves)
    });
    let stated = service.load_balancer.iter().filter_map(|address| address.ip);
    stated.chain(balancers.map(|balancer| balancer.vip)).collect()
}

/// Checks calls from inside to the load balancer, which may loop.
pub(super) fn load_balancer(engine: &Engine<'_>, service: &Service) -> Check {
    let mut flows = Vec::new();
    for vip in addresses(engine, service) {
        for port in &service.ports {
            let at = SocketAddr::new(vip, port.port.number());
            let listener = engine.listener(at, port.protocol.into());
            let to = listener.map_or(Destination::Address(at), |own| call::destination(own, at));
            flows.extend(from_each(engine, &to, port.protocol));
        }
    }
    let what = "pods reach the load balancer's address, and it does not send them back";
    if flows.is_empty() {
        return Check::unknown(what, "it has no address, or there is no pod that could call");
    }
    walked(engine, what, flows)
}

pub(super) fn health(engine: &Engine<'_>, service: &Service) -> Vec<Check> {
    let mut all = Vec::new();
    for vip in addresses(engine, service) {
        for port in &service.ports {
            let at = SocketAddr::new(vip, port.port.number());
            all.extend(health_of(engine, at, port.protocol, lacks_endpoints(service)));
        }
    }
    all
}

/// Checks whether targets answer their health checks.
pub(in crate::check) fn health_of(
    engine: &Engine<'_>,
    at: SocketAddr,
    protocol: Protocol,
    is_open: bool,
) -> Option<Check> {
    let what = format!("health checks of {at} are answered");
    let health = match engine.health(at, protocol) {
        Ok(found) => found?,
        Err(why) => return Some(Check::unknown(what, why.to_string())),
    };
    if is_open {
        return Some(Check::unknown(what, "its backends are not given"));
    }
    if health.is_empty() {
        return Some(Check::failed(what, "there is no target").next(Code::NoTargets.explain()));
    }
    let stated = stated_checks::at(engine, at, protocol);
    if let Some(stated) = stated.iter().min_by_key(|stated| stated.conditions.len()) {
        return Some(stated_check(what, stated));
    }
    let alive = health.iter().filter(|target| target.alive).count();
    let found = format!("{alive} of {} targets", health.len());
    let is_local = has_local_targets(engine, at, protocol);
    let by_design = |target: &uturn_path::Health| {
        target.alive || is_local && alive > 0 && target.mechanisms == [Mechanism::NoEndpoint]
    };
    if health.iter().all(by_design) {
        let more =
            if alive < health.len() { "; the others have no pod, and policy is Local" } else { "" };
        return Some(Check::ok(what, format!("{found}{more}")));
    }
    let mut check = Check::failed(what, found);
    for dead in health.iter().filter(|target| !target.alive).take(3) {
        let why: Vec<&str> = dead.mechanisms.iter().map(|mechanism| mechanism.as_str()).collect();
        check.evidence.push(format!("{}: {}", dead.asked, why.join(", ")));
    }
    Some(check.next(Code::ProbeBlackhole.explain()))
}

/// Returns the answer that objects give without a walk.
fn stated_check(what: String, found: &Finding) -> Check {
    let state = if found.conditions.is_empty() { State::Failed } else { State::Unknown };
    let mut check = Check::new(what, state);
    check.evidence.extend(found.other_evidence.iter().map(|own| own.what.to_string()));
    let condition = |own: &Text| format!("no target passes if {own}");
    check.evidence.extend(found.conditions.iter().map(condition));
    check.next(found.code.explain())
}

/// Returns whether a Service with policy Local is behind a listener: nodes without a pod of the
/// Service fail its health checks.
fn has_local_targets(engine: &Engine<'_>, at: SocketAddr, protocol: Protocol) -> bool {
    let listeners = engine.balancer_at(at.ip()).into_iter().flat_map(|own| &own.listeners);
    let listeners = listeners.filter(|listener| {
        listener.port.number() == at.port() && listener.protocol.transport() == protocol
    });
    let mut services = listeners
        .flat_map(|listener| &listener.rules)
        .filter_map(|rule| engine.cluster().services.get(&rule.service));
    services.any(|service| service.external_policy == Policy::Local)
}
