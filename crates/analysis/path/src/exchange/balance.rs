//! The load balancer's part: an exchange within the exchange.
//!
//! On layer 4 a connection is forwarded once, without retries. On layer 7 the load balancer answers
//! the client itself, asks a target, and asks the next target if the first does not answer.
//! `uturn_lb::decide` picks the targets, as in the lab's load balancer.

mod allowed;
mod layer_4;
mod layer_7;
mod no_target;
mod unserved;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use uturn_lb::decide::Choice;
use uturn_lb::rules;
use uturn_model::lb::{Delivery, Layer, Listener, ListenerProtocol, Rule, Scope, Source, Target};
use uturn_model::route::{Direction, Leg, Place, Step, StepKind};
use uturn_model::{Cluster, Evidence, LoadBalancer, Mechanism, Outcome, Share};

use super::{exchange, return_reply};
use crate::add_missing::add_missing;
use crate::engine::find_listener;
use crate::engine::walk::Walk;
use crate::error::WalkError;
use crate::exchange::{merge, uncertain_behaviour};
use crate::journey::security_groups;
use crate::packet::{Call, Exchange, Pace, PacketState, Peer, Request, ended};
use crate::{origin, unjudged};

/// Follows a packet that reached a load balancer.
pub(super) fn serve(
    walk: &Walk<'_, '_>,
    balancer: &LoadBalancer,
    call: &Call<'_>,
    mut state: PacketState,
) -> Result<Vec<Exchange>, WalkError> {
    let seen = state.packet.leg();
    let place = Peer::Balancer(balancer).place();
    if let Some(step) =
        security_groups::denied_inbound(walk.cluster, &balancer.security_groups, &mut state)
    {
        state.note(place, step);
        return Ok(vec![ended(state, Outcome::Hangs, Some(Mechanism::SecurityGroup))]);
    }
    let listener = find_listener(balancer, seen.dst.port(), state.packet.protocol());
    let Some(listener) = listener else {
        return unserved::end(walk, balancer, call, state);
    };
    if let Some(step) = allowed::denied(walk.cluster, balancer, listener, &mut state) {
        state.note(place, step);
        return Ok(vec![ended(state, Outcome::Hangs, Some(Mechanism::Firewall))]);
    }
    if let Some(outcome) = protocol_mismatch(listener, call.request) {
        let why = format!("speaks {} here", listener.protocol);
        let party = Peer::Balancer(balancer);
        state.note(place, Step::new(StepKind::Reject, why, party.evidence(walk.cluster)));
        let mechanism = Some(Mechanism::WrongPort);
        return return_reply(walk, party, call, state.answer(), outcome, mechanism);
    }
    let served = match listener.protocol.layer() {
        Layer::L4 => listener.rules.first(),
        Layer::L7 => {
            let (host, path) = host_and_path(call.request, seen);
            rules::find(listener, &host, &path)
        }
    };
    if let Some(unjudged) = served.and_then(|rule| unjudged::behind(walk.cluster, rule)) {
        return Ok(vec![unjudged.exchange(place, state)]);
    }
    match listener.protocol.layer() {
        Layer::L4 => layer_4::forward(walk, balancer, listener, call, &state),
        Layer::L7 => layer_7::serve(walk, balancer, listener, call, state),
    }
}

/// Returns an answer of the load balancer itself to the client, as it does a target's.
fn return_own_answer(
    walk: &Walk<'_, '_>,
    balancer: &LoadBalancer,
    call: &Call<'_>,
    state: &PacketState,
    answer_exchanges: Vec<Exchange>,
    outcome: Outcome,
) -> Result<Vec<Exchange>, WalkError> {
    let party = Peer::Balancer(balancer);
    let answer = state.answer().on_time();
    let home = return_reply(walk, party, call, answer, outcome, None)?;
    Ok(if home.iter().all(|exchange| exchange.outcome == outcome) {
        answer_exchanges
    } else {
        home
    })
}

/// Returns the results of the load balancer's own exchange with one target.
fn exchange_with_target(
    walk: &Walk<'_, '_>,
    balancer: &LoadBalancer,
    listener: &Listener,
    target: &Target,
    client: SocketAddr,
    request: &Request,
    state: &PacketState,
) -> Result<Vec<Exchange>, WalkError> {
    let is_itself = client.ip() == target.address.ip();
    let hairpin = listener.profile.hairpin_source.as_ref().filter(|_| is_itself);
    let of_other_family = listener.profile.source_of_other_family.as_ref();
    let replacement = of_other_family.filter(|_| client.is_ipv4() != target.address.is_ipv4()).or(
        match &listener.profile.source {
            Source::Kept => hairpin,
            Source::Replaced(range) => Some(range),
        },
    );
    let src = match replacement {
        None => client,
        Some(range) => {
            let ip = range.hosts().next().unwrap_or(IpAddr::from([127, 0, 0, 1]));
            SocketAddr::new(ip, client.port())
        }
    };
    let dst = listener.profile.delivery.destination(target.address, state.packet.leg().dst);
    let leg = Leg { src, dst };
    if let Some(lost) = lacks_bandwidth(walk.cluster, balancer, target, leg, state) {
        return Ok(vec![lost]);
    }
    let packet = state.packet.with_leg(leg);
    let mut inner = state.another(packet, Direction::Out).sent_by(balancer);
    if listener.profile.delivery == Delivery::KeepsAddress {
        inner.handed_to = target.kind.node().cloned();
        inner.first_handed_to.clone_from(&inner.handed_to);
    }
    add_missing(
        &mut inner.supposed,
        uncertain_behaviour::behaviour_assumptions(
            walk.engine,
            balancer,
            listener,
            target,
            client.ip(),
        ),
    );
    if listener.makes_connections() {
        inner = inner.paced(Pace::within(listener.profile.connect_timeout));
    }
    let mut exchanges = exchange(walk, Peer::Balancer(balancer), request, inner)?;
    if listener.makes_connections() {
        // The refusal ends its own connection; the client does not get it.
        for exchange in &mut exchanges {
            exchange.refusal = None;
        }
    }
    Ok(merge::alike(walk, exchanges))
}

/// Returns each target that can be picked first, with its share of connections.
fn first_picks(walk: &Walk<'_, '_>, choice: &Choice<'_>) -> Vec<(usize, Share)> {
    if walk.options.knows_hash { choice.shares() } else { choice.shares_of_any_client() }
}

/// Returns the loss of a public load balancer's packet to a node without internet bandwidth, if
/// nodes need such bandwidth of their own.
fn lacks_bandwidth(
    cluster: &Cluster,
    balancer: &LoadBalancer,
    target: &Target,
    leg: Leg,
    state: &PacketState,
) -> Option<Exchange> {
    let node = target.kind.node().and_then(|name| cluster.nodes.get(name))?;
    let is_public = balancer.scope == Scope::Public;
    if !is_public || node.public_bandwidth != Some(false) {
        return None;
    }
    let mut state = state.another(state.packet.with_leg(leg), Direction::Out);
    let why = format!("node {} has no bandwidth to the internet", node.name);
    let by = Evidence::object(node.object(), node.origin.clone());
    state.note(Place::Fabric, Step::new(StepKind::Drop, why, by).seeing(leg));
    Some(ended(state, Outcome::Hangs, Some(Mechanism::NoBandwidth)))
}

/// Returns the evidence for a load balancer's actions: the listener, and the object that asked for
/// it.
fn by_listener(cluster: &Cluster, listener: &Listener, rule: &Rule) -> Evidence {
    let (profile, protocol) = (&listener.profile.name, listener.protocol);
    Evidence::Listener {
        listener: format!("{profile} listener {protocol}:{}", listener.port).into(),
        owner: Arc::new(rule.owner.clone()),
        origin: origin::of(cluster, &rule.owner),
    }
}

/// Returns the outcome if the client does not use the protocol of the listener. A listener on layer
/// 4 without TLS forwards any protocol.
fn protocol_mismatch(listener: &Listener, request: &Request) -> Option<Outcome> {
    match (listener.protocol, request.tls?) {
        (ListenerProtocol::Http, true) => Some(Outcome::TlsError),
        (ListenerProtocol::Https, false) => {
            Some(Outcome::Status { code: 400, after: Duration::ZERO })
        }
        (ListenerProtocol::TcpSsl, false) => Some(Outcome::Reset),
        _ => None,
    }
}

/// Returns the host and path that a request asks for.
fn host_and_path(request: &Request, seen: Leg) -> (String, String) {
    match &request.http {
        Some((host, path)) => (host.clone(), path.clone()),
        None => (seen.dst.ip().to_string(), "/".to_owned()),
    }
}
