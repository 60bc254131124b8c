//! Load balancers that consist of pods in the cluster: the pod on a node forwards packets to the
//! Service, with its own address as the source.

use std::net::SocketAddr;

use uturn_clouds::on_nodes::OnNodes;
use uturn_model::route::{Direction, Leg, Step, StepKind};
use uturn_model::service::{Policy, ServicePort};
use uturn_model::{Cluster, Evidence, Family, Mechanism, Outcome, Pod, Service};
use uturn_netfilter::IpProtocol;

use super::return_reply;
use crate::engine::Engine;
use crate::engine::walk::Walk;
use crate::error::WalkError;
use crate::exchange::{call, merge};
use crate::packet::{Call, Exchange, PacketState, Peer, ended};
use crate::unjudged::UnjudgedReason;

/// The receiver of connections at a port of a Service on a node.
pub(super) enum Relay<'a> {
    /// A pod of its load balancer.
    By(&'a Pod, &'a Service, &'a ServicePort),
    /// The running pods are not given.
    Unknown(UnjudgedReason),
}

/// Returns the receiver of a packet that reached a node, or a load balancer's pod itself.
pub(super) fn at<'e>(
    engine: &'e Engine<'_>,
    at: Peer<'e>,
    to: SocketAddr,
    protocol: IpProtocol,
) -> Option<Relay<'e>> {
    engine.on_nodes().iter().find_map(|balancer| {
        let service = balancer.service;
        let port = service.ports.iter().find(|port| {
            port.port.number() == to.port() && IpProtocol::from(port.protocol) == protocol
        })?;
        let by = |pod: &&'e Pod| Relay::By(pod, service, port);
        match at {
            Peer::Pod(pod) => balancer.pods.iter().find(|own| own.name == pod.name).map(by),
            Peer::Host(node, None) if node.has_address(to.ip()) => {
                if balancer.pods.is_empty() {
                    return Some(Relay::Unknown(pods_not_given(balancer)));
                }
                let is_here = |own: &&&Pod| own.node.as_ref() == Some(&node.name);
                balancer.pods.iter().find(is_here).map(by)
            }
            Peer::Host(..) | Peer::Balancer(_) | Peer::Outside => None,
        }
    })
}

fn pods_not_given(balancer: &OnNodes<'_>) -> UnjudgedReason {
    let service = balancer.service;
    let name = balancer.product.name();
    let why = format!("on which nodes {name} has pods for {} is not given", service.object());
    UnjudgedReason::not_given(why, Evidence::object(service.object(), service.origin.clone()))
}

/// Forwards a request to the Service: under policy Local to the node port of the pod's own node,
/// else to its address.
pub(super) fn through(
    walk: &Walk<'_, '_>,
    at: Peer<'_>,
    call: &Call<'_>,
    (pod, service, port): (&Pod, &Service, &ServicePort),
    mut state: PacketState,
) -> Result<Vec<Exchange>, WalkError> {
    let leg = state.packet.leg();
    let relay = Peer::Pod(pod);
    let place = relay.place();
    let by = Evidence::object(service.object(), service.origin.clone());
    let ranges = &service.source_ranges;
    if !ranges.is_empty() && !ranges.iter().any(|range| range.contains(&leg.src.ip())) {
        let why = "loadBalancerSourceRanges do not have this source";
        state.note(place, Step::new(StepKind::Drop, why, by).seeing(leg));
        return Ok(vec![ended(state, Outcome::Hangs, Some(Mechanism::Firewall))]);
    }
    let family = Family::of(leg.dst.ip());
    let is_served = service.cluster_ips.iter().any(|ip| Family::of(*ip) == family);
    if !service.cluster_ips.is_empty() && !is_served {
        let why =
            format!("{} has no address of {family}: nothing listens here for it", service.object());
        state.note(place, Step::new(StepKind::Reject, why, by).seeing(leg));
        let refusal = state.refusal(state.packet.refusal_of_port());
        let why = Some(Mechanism::WrongPort);
        return return_reply(walk, relay, call, refusal, Outcome::Refused, why);
    }
    if let Some(why) = dropped(walk.engine, pod, service, port) {
        let by = Evidence::object(pod.object(), pod.origin.clone());
        state.note(place, Step::new(StepKind::Drop, why, by).seeing(leg));
        return Ok(vec![ended(state, Outcome::Hangs, Some(Mechanism::Firewall))]);
    }
    let Some(onward) = onward(walk.cluster, pod, service, port, leg) else {
        let why = format!("where {} passes {leg} on to is not given", pod.name);
        return Ok(vec![UnjudgedReason::not_given(why, by).exchange(place, state)]);
    };
    let why = format!("passes it on to {}, with its own address", onward.dst);
    state.note(place, Step::new(StepKind::Translate, why, by).changing(leg, onward));
    let inner = state.another(state.packet.with_leg(onward), Direction::Out);
    let mut exchanges = Vec::new();
    for inner in call::make(walk, relay, call.request, inner)? {
        let mut there = state.clone().on_time();
        there.share *= inner.share;
        there.chance |= inner.chance;
        (there.supposed, there.failures) = (inner.supposed, inner.failures);
        there.hops.extend(inner.hops);
        if matches!(inner.outcome, Outcome::Hangs | Outcome::Unknown) {
            let why = inner.mechanisms.first().copied();
            exchanges.push(ended(there, inner.outcome, why));
            continue;
        }
        let why = inner.mechanisms.first().copied();
        let home = return_reply(walk, at, call, there.answer(), inner.outcome, why)?;
        exchanges.extend(home.into_iter().map(|exchange| Exchange {
            late: exchange.late.max(inner.late),
            has_others: exchange.has_others || inner.has_others,
            ..exchange
        }));
    }
    Ok(merge::alike(walk, exchanges))
}

/// Returns why a pod drops what it should forward.
fn dropped(
    engine: &Engine<'_>,
    pod: &Pod,
    service: &Service,
    port: &ServicePort,
) -> Option<String> {
    let mut all = engine.on_nodes().iter();
    let balancer = all.find(|balancer| balancer.service.name == service.name)?;
    balancer.product.drops_forwarded(pod, service, port).map(|found| found.because)
}

/// Returns the addresses with which a pod forwards a packet.
fn onward(
    cluster: &Cluster,
    pod: &Pod,
    service: &Service,
    port: &ServicePort,
    leg: Leg,
) -> Option<Leg> {
    let family = Family::of(leg.dst.ip());
    let dst = match service.external_policy {
        Policy::Cluster => {
            let mut own = service.cluster_ips.iter().filter(|ip| Family::of(**ip) == family);
            SocketAddr::new(*own.next()?, port.port.number())
        }
        Policy::Local => {
            let node = cluster.nodes.get(pod.node.as_ref()?)?;
            SocketAddr::new(node.address(family)?, port.node_port?.number())
        }
    };
    Some(Leg { src: SocketAddr::new(pod.address(family)?, leg.src.port()), dst })
}
