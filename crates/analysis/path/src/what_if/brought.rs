//! Addresses to which the network brings packets in a way that is not given: an external IP of a
//! Service, which any node may get, and a public address of a node, which the node has itself or the
//! network translates. There is a verdict for each place where they may arrive, and one if all are
//! alike.

use std::net::{IpAddr, SocketAddr};

use uturn_clouds::cloud;
use uturn_model::{
    Assumption, AssumptionSubject, Client, Cluster, Flow, Mechanism, Name, Node, Service, Verdict,
};

use super::table::{either, is_same};
use super::{cases, listed};
use crate::add_missing::add_missing;
use crate::engine::Engine;
use crate::error::WalkError;
use crate::journey::{addresses, public_address};
use crate::services;

/// The maximum number of nodes to which packets may be brought.
const MAX_NODES: usize = 32;

/// Returns the verdicts of a flow for each place to which the network may bring its packets.
pub(super) fn by_place(
    engine: &Engine<'_>,
    flow: &Flow,
    verdicts: Vec<Verdict>,
) -> Result<Vec<Verdict>, WalkError> {
    // What nodes and pods call leaves by the way that the cluster's own rules and routes give.
    if !matches!(flow.from, Client::Outside(_)) {
        return Ok(verdicts);
    }
    let Some(called) = engine.called_address(&flow.to) else { return Ok(verdicts) };
    if let Some((node, own)) = translated(engine, called.ip(), &verdicts) {
        return by_translation(engine, flow, (node, own, called.ip()), &verdicts);
    }
    match external(engine, flow, called, &verdicts) {
        Some(service) => by_node(engine, flow, (called.ip(), service), verdicts),
        None => Ok(verdicts),
    }
}

/// Returns the node whose public address is called, and its own, if a verdict rests on the assumption
/// that the network translates it, and the node's cloud does not tell.
fn translated<'e>(
    engine: &'e Engine<'_>,
    address: IpAddr,
    verdicts: &[Verdict],
) -> Option<(&'e Node, IpAddr)> {
    let (node, own) = public_address::behind_public_address(engine, address)?;
    let subject = public_address::what_leads(address);
    let is_it = |supposed: &Assumption| match &supposed.subject {
        AssumptionSubject::Named(text) => **text == *subject,
        _ => false,
    };
    let rests = verdicts.iter().flat_map(|verdict| &verdict.supposed).any(is_it);
    (rests && !cloud::translates_public_address(engine.cluster(), node)).then_some((node, own))
}

fn by_translation(
    engine: &Engine<'_>,
    flow: &Flow,
    (node, own, address): (&Node, IpAddr, IpAddr),
    verdicts: &[Verdict],
) -> Result<Vec<Verdict>, WalkError> {
    let held = with_holder(engine, flow, &node.name, address)?;
    Ok(either(verdicts, &held, |verdict, is_translated| {
        verdict.conditions.push(if is_translated {
            format!("the network translates {address} to {own}").into()
        } else {
            format!("node {} itself has {address}", node.name).into()
        });
    }))
}

/// Returns the Service whose external IP is called from outside, if no verdict is known because it is
/// not given which node gets the packets.
fn external<'e>(
    engine: &'e Engine<'_>,
    flow: &Flow,
    called: SocketAddr,
    verdicts: &[Verdict],
) -> Option<&'e Service> {
    let cluster = engine.cluster();
    let is_open = |verdict: &Verdict| verdict.mechanisms == [Mechanism::NotGiven];
    let is_many = cluster.nodes.len() > MAX_NODES;
    if is_many || !verdicts.iter().all(is_open) {
        return None;
    }
    let is_of_none = engine.balancer_at(called.ip()).is_none()
        && addresses::node_towards(engine, called.ip()).is_none();
    let has_port = services::has_port(cluster, called, flow.protocol.into());
    addresses::has_external_ip(cluster, called.ip()).filter(|_| is_of_none && has_port)
}

fn by_node(
    engine: &Engine<'_>,
    flow: &Flow,
    (address, service): (IpAddr, &Service),
    unknown: Vec<Verdict>,
) -> Result<Vec<Verdict>, WalkError> {
    let nodes: Vec<&Node> = engine.cluster().nodes.values().filter(|node| node.ready).collect();
    let mut found: Vec<(Vec<&Name>, Verdict)> = Vec::new();
    for node in &nodes {
        for verdict in with_holder(engine, flow, &node.name, address)? {
            let same = found.iter_mut().find(|(_, known)| {
                known.conditions == verdict.conditions && is_same(known, &verdict)
            });
            match same {
                Some((names, _)) => names.push(&node.name),
                None => found.push((vec![&node.name], verdict)),
            }
        }
    }
    if found.is_empty() {
        return Ok(unknown);
    }
    let supposed = Assumption {
        subject: public_address::what_leads(address).into(),
        assumed: "a node of the cluster".into(),
        because: format!("it is an external IP of {}", service.object()).into(),
        settle: "state it in Facts under localAddresses of the node that gets it".into(),
    };
    let verdicts = found.into_iter().map(|(names, mut verdict)| {
        if names.len() < nodes.len() {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            let which = listed(&names);
            verdict.conditions.push(format!("the network brings {address} to {which}").into());
        }
        add_missing(&mut verdict.supposed, vec![supposed.clone()]);
        verdict
    });
    Ok(verdicts.collect())
}

/// Returns the verdicts if a node has the address on an interface of its own.
fn with_holder(
    engine: &Engine<'_>,
    flow: &Flow,
    name: &Name,
    address: IpAddr,
) -> Result<Vec<Verdict>, WalkError> {
    let mut cluster: Cluster = engine.cluster().clone();
    if let Some(node) = cluster.nodes.get_mut(name) {
        node.local_addresses.push(address);
    }
    let other = Engine::new(&cluster).map_err(|mut faults| faults.remove(0))?;
    let other = other.with_options(engine.options());
    let other = if engine.has_met_services() { other.with_met_services() } else { other };
    let found = cases(&other, flow);
    engine.work.count_done(other.work.done());
    found
}
