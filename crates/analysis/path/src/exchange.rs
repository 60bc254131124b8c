//! A request and its reply, up to the outcome for the client.

mod at_connect;
mod balance;
pub(crate) mod call;
mod controller;
pub(crate) mod dns_query;
mod failover;
pub(crate) mod health;
pub(crate) mod listening;
pub(crate) mod merge;
mod node_health;
mod own_answer;
mod policies;
pub(crate) mod proxy_header;
mod redirect;
mod relay;
mod resent;
pub(crate) mod uncertain_behaviour;
pub(crate) mod undeclared;

use std::net::SocketAddr;
use std::time::Duration;

use uturn_model::route::{Leg, Place, Step, StepKind};
use uturn_model::{Evidence, Mechanism, Outcome, gateway_ports};

use uturn_netfilter::{IpProtocol, Packet};

use crate::add_missing::add_missing;
use crate::engine::Engine;
use crate::engine::walk::Walk;
use crate::error::WalkError;
use crate::exchange::listening::{Listening, Tls};
use crate::exchange::relay::Relay;
use crate::node::switches::is_unseen;
use crate::packet::{Arrival, Call, Exchange, PacketState, Peer, Refused, Request, Stop, ended};
use crate::{journey, services, unjudged};

/// Sends a request and waits for what comes back, in every way it can go.
fn exchange(
    walk: &Walk<'_, '_>,
    from: Peer<'_>,
    request: &Request,
    state: PacketState,
) -> Result<Vec<Exchange>, WalkError> {
    let call = &Call::begun_by(from, request, &state);
    let mut exchanges = Vec::new();
    for arrival in journey::send(walk, from, state)? {
        let Arrival { mut state, stop } = policies::applied(walk, from, call.asked, arrival);
        match stop {
            Stop::Lost(why) => {
                exchanges.extend(resent::without_answer(walk, call, state, why)?);
            }
            Stop::Unknown(mechanism) => {
                exchanges.push(ended(state, Outcome::Unknown, Some(mechanism)));
            }
            Stop::Refused(refused) => {
                exchanges.extend(return_refusal(walk, call, refused, state)?);
            }
            Stop::At(Peer::Balancer(balancer)) => {
                exchanges.extend(balance::serve(walk, balancer, call, state)?);
            }
            Stop::At(Peer::Outside)
                if let Some(unjudged) =
                    unjudged::outside(walk.cluster, request, state.packet.dst) =>
            {
                exchanges.push(unjudged.exchange(Place::Outside, state));
            }
            Stop::At(Peer::Outside) => {
                let step = Step::new(
                    StepKind::Answer,
                    "a host outside the cluster is assumed to answer",
                    Peer::Outside.evidence(walk.cluster),
                );
                state.note(Place::Outside, step);
                exchanges.push(ended(state, Outcome::AT_ONCE, None));
            }
            Stop::At(at) => exchanges.extend(serve(walk, call, at, state)?),
        }
    }
    Ok(merge::alike(walk, exchanges))
}

/// Serves a request that a process received: the process answers, or the kernel refuses for it.
fn serve(
    walk: &Walk<'_, '_>,
    call: &Call<'_>,
    at: Peer<'_>,
    mut state: PacketState,
) -> Result<Vec<Exchange>, WalkError> {
    let leg = state.packet.leg();
    let protocol = state.packet.protocol();
    let place = at.place();
    if let Some(health) = node_health::at(walk.cluster, at, leg.dst, protocol) {
        let answered = health.answer(call.request);
        let step = Step::new(StepKind::Deliver, answered.why, health.evidence(walk.cluster));
        state.note(place, step.seeing(leg));
        let (outcome, mechanism) = (answered.outcome, answered.mechanism);
        return return_reply(walk, at, call, state.answer(), outcome, mechanism);
    }
    let shut = controller::shut(walk.cluster, at, leg.dst.port());
    let mut listening = match &shut {
        Some(_) => Listening::No,
        None => listening::at(walk.engine, at, leg.dst, protocol),
    };
    if matches!(at, Peer::Pod(_)) || !matches!(listening, Listening::Yes(_)) {
        match relay::at(walk.engine, at, leg.dst, protocol) {
            Some(Relay::By(pod, service, port)) => {
                return relay::through(walk, at, call, (pod, service, port), state);
            }
            Some(Relay::Unknown(unjudged)) => return Ok(vec![unjudged.exchange(place, state)]),
            None => {}
        }
    }
    if matches!(at, Peer::Host(_, None))
        && !matches!(listening, Listening::Yes(_))
        && let Some(unjudged) = unjudged::on_node(walk.cluster, leg.dst)
    {
        return Ok(vec![unjudged.exchange(place, state)]);
    }
    let misread = match (&listening, protocol) {
        (Listening::Yes(_), IpProtocol::TCP) => {
            proxy_header::misread(walk.engine, at, leg, call.request)
        }
        _ => None,
    };
    if let Some(misread) = misread {
        let step = Step::new(StepKind::Deliver, misread.why, at.evidence(walk.cluster));
        state.note(place, step.seeing(leg));
        add_missing(&mut state.supposed, misread.supposed);
        let why = Some(Mechanism::ProxyHeader);
        return return_reply(walk, at, call, state.answer(), misread.outcome, why);
    }
    if matches!(listening, Listening::Yes(_)) {
        let supposed = proxy_header::supposed_plain(walk.engine, at, leg, call.request);
        add_missing(&mut state.supposed, Vec::from_iter(supposed));
    }
    if matches!(listening, Listening::Yes(_))
        && protocol == IpProtocol::TCP
        && let Some(here) = controller::at(walk.cluster, at, leg.dst.port())
        && here.reads(call.request)
    {
        return controller::serve(walk, call, here, state);
    }
    if matches!(listening, Listening::Yes(_))
        && let Some((host, _)) = &call.request.http
        && let Peer::Pod(pod) | Peer::Host(_, Some(pod)) = at
        && gateway_ports::has_no_route(walk.cluster, pod, leg.dst.port(), host)
    {
        let why = format!("no VirtualService that a Gateway of these proxies reads is for {host}");
        let step = Step::new(StepKind::Reject, why, at.evidence(walk.cluster));
        state.note(place, step.seeing(leg));
        let outcome = Outcome::Status { code: 404, after: Duration::ZERO };
        let why = Some(Mechanism::NoRuleForPath);
        return return_reply(walk, at, call, state.answer(), outcome, why);
    }
    if matches!(at, Peer::Host(_, None))
        && !matches!(listening, Listening::Yes(_))
        && let Some(service) = services::held_for_both_families(walk.cluster, leg.dst, protocol)
    {
        let why = format!(
            "kube-proxy {} holds node port {} of {} for both families and accepts nothing: the connection is \
             opened, and nobody answers; it has no rules for this family",
            walk.cluster.proxy.version.value,
            leg.dst.port(),
            service.object()
        );
        let by = Evidence::object(service.object(), service.origin.clone());
        state.note(place, Step::new(StepKind::Drop, why, by).seeing(leg));
        return Ok(vec![ended(state, Outcome::Hangs, Some(Mechanism::WrongPort))]);
    }
    let called = call.called();
    let mut misled = None;
    if !matches!(listening, Listening::Yes(_))
        && let Some(found) = undeclared::translated(walk.cluster, at, &state, protocol)
    {
        if listening == Listening::Unknown {
            add_missing(&mut state.supposed, vec![found.supposed]);
        }
        (listening, misled) = (Listening::No, Some(found.misled));
    }
    let (kind, why, outcome, mechanism) = match listening {
        Listening::Unknown => {
            let why = format!("whether a process listens on port {} is not given", leg.dst.port());
            state.note(
                place,
                Step::new(StepKind::Unknown, why, at.evidence(walk.cluster)).seeing(leg),
            );
            return Ok(vec![ended(state, Outcome::Unknown, Some(Mechanism::NotGiven))]);
        }
        Listening::No => {
            let why = undeclared::why_none_listens(walk.engine, at, leg.dst, protocol);
            misled = misled.or_else(|| undeclared::misled(walk.engine, at, leg.dst, protocol));
            let mechanism = match at {
                _ if services::lacks_rules(walk.cluster, at, leg.dst, protocol) => {
                    Mechanism::RuleMissing
                }
                Peer::Host(node, _)
                    if listening::is_held_unknown(walk.cluster, node, leg.dst, protocol) =>
                {
                    Mechanism::VipUnknown
                }
                Peer::Host(..)
                    if services::called_on_loopback(walk.cluster, leg.dst, protocol).is_some() =>
                {
                    Mechanism::NotOnLoopback
                }
                _ => misled.as_ref().map_or(Mechanism::WrongPort, |misled| misled.mechanism),
            };
            let why = match &misled {
                Some(misled) if misled.mechanism == mechanism => misled.why.clone(),
                _ => why,
            };
            let (why, mechanism) = match &shut {
                Some((why, _)) => (why.clone(), Mechanism::WrongPort),
                None => (why, mechanism),
            };
            (StepKind::Reject, why, Outcome::Refused, Some(mechanism))
        }
        Listening::Yes(_)
            if call.request.tls == Some(true)
                && is_plain(walk.engine, at, called, leg, protocol) =>
        {
            let mechanism = if ends_tls(walk.engine, called, protocol) {
                Mechanism::TlsBypassed
            } else {
                Mechanism::WrongPort
            };
            let why = "a process listens on this port, and does not speak TLS".to_owned();
            (StepKind::Deliver, why, Outcome::TlsError, Some(mechanism))
        }
        Listening::Yes(why) => {
            let supposed = undeclared::supposed_to_listen(walk.engine, at, leg.dst, protocol);
            add_missing(&mut state.supposed, Vec::from_iter(supposed));
            (StepKind::Deliver, why.to_owned(), Outcome::AT_ONCE, None)
        }
    };
    let by = misled
        .filter(|misled| Some(misled.mechanism) == mechanism)
        .map_or_else(|| at.evidence(walk.cluster), |misled| misled.by);
    let by = shut.map_or(by, |(_, by)| by);
    state.note(place, Step::new(kind, why, by).seeing(leg));
    let answer = match kind {
        StepKind::Reject => state.refusal(state.packet.refusal_of_port()),
        _ => state.answer(),
    };
    return_reply(walk, at, call, answer, outcome, mechanism)
}

/// Sends a refusal back to the client. Its packet passes rules like any other.
fn return_refusal(
    walk: &Walk<'_, '_>,
    call: &Call<'_>,
    refused: Refused<'_>,
    mut state: PacketState,
) -> Result<Vec<Exchange>, WalkError> {
    let Refused { why, by, outcome, notice } = refused;
    state.note_failure(why);
    let at_once = |state| Ok(vec![ended(state, outcome, Some(why))]);
    let Some(notice) = notice else { return at_once(state) };
    let exchanges = return_reply(walk, by, call, state.refusal(notice), outcome, Some(why))?;
    // A refusal by the client's own node is recorded hop by hop only if something stops it.
    if is_on_node(call.client, by) && exchanges.iter().all(|exchange| exchange.outcome == outcome) {
        at_once(state)
    } else {
        Ok(exchanges)
    }
}

/// Sends the answer to a call back to the caller. The answer counts only if it arrives with the
/// addresses that the caller expects.
fn return_reply(
    walk: &Walk<'_, '_>,
    at: Peer<'_>,
    call: &Call<'_>,
    answer: PacketState,
    outcome: Outcome,
    mechanism: Option<Mechanism>,
) -> Result<Vec<Exchange>, WalkError> {
    let (home, expected) = (call.client, call.expected());
    // Answers bypass a load balancer that keeps its address as the destination.
    let may_pass = match home {
        Peer::Balancer(balancer) => balancer.vip == call.asked.dst.ip(),
        _ => false,
    };
    let mut exchanges = Vec::new();
    for Arrival { mut state, stop } in journey::send(walk, at, answer)? {
        let lost = match stop {
            Stop::At(party)
                if (party.shares_network_with(home) || may_pass)
                    && state.packet.leg() == expected =>
            {
                // A load balancer's next step shows that it has the answer.
                let refusal = match home {
                    Peer::Balancer(_) => Some(state.packet).filter(Packet::is_refusal),
                    _ => {
                        let by = home.evidence(walk.cluster);
                        let step = Step::new(StepKind::Deliver, "has its answer", by);
                        state.note(home.place(), step.seeing(expected));
                        None
                    }
                };
                exchanges.push(Exchange { refusal, ..ended(state, outcome, mechanism) });
                continue;
            }
            Stop::Unknown(why) => {
                exchanges.push(ended(state, Outcome::Unknown, Some(why)));
                continue;
            }
            Stop::At(party) => {
                note_stray_reply(&mut state, party, home);
                Mechanism::AsymmetricReturn
            }
            Stop::Lost(why) => why,
            Stop::Refused(refused) => refused.why,
        };
        exchanges.extend(resent::without_answer(walk, call, state, lost)?);
    }
    Ok(exchanges)
}

/// Notes the U-turn: an answer reached a peer that never asked with these addresses.
fn note_stray_reply(state: &mut PacketState, party: Peer<'_>, home: Peer<'_>) {
    let leg = state.packet.leg();
    let wanted = match home {
        Peer::Balancer(_) => "to the load balancer",
        _ => "to the caller, from the address that it called",
    };
    if let Peer::Pod(pod) = party
        && let Some(node) = &pod.node
    {
        let last = state.hops.last().and_then(|hop| hop.steps.last());
        let by = match last.filter(|step| is_unseen(&step.by)) {
            Some(step) => step.by.clone(),
            None => Evidence::kernel("routing: the destination is a pod of this node"),
        };
        let why = format!("goes straight to the pod, not {wanted}");
        let step = Step::new(StepKind::Turn, why, by);
        state.note(Place::Node(node.clone()), step.seeing(leg));
    }
    let step = Step::new(
        StepKind::Drop,
        format!("knows no connection with {}: resets it", leg.src),
        Evidence::kernel("TCP: no socket has these addresses"),
    );
    state.note(party.place(), step.seeing(leg));
}

/// Returns whether the called server does not use TLS: its port says so, or the load balancer that
/// terminates TLS was bypassed by this connection.
fn is_plain(
    engine: &Engine<'_>,
    at: Peer<'_>,
    called: SocketAddr,
    leg: Leg,
    protocol: IpProtocol,
) -> bool {
    match listening::expects_tls(engine.cluster, at, leg.dst.port()) {
        Tls::Spoken => false,
        Tls::Plain => true,
        Tls::Unknown => ends_tls(engine, called, protocol),
    }
}

/// Returns whether a load balancer terminates TLS at the address that was called.
fn ends_tls(engine: &Engine<'_>, called: SocketAddr, protocol: IpProtocol) -> bool {
    engine.listener(called, protocol).is_some_and(|listener| listener.protocol.ends_tls())
}

/// Returns whether a peer is on the node that the other peer is.
fn is_on_node(party: Peer<'_>, other: Peer<'_>) -> bool {
    matches!(other, Peer::Host(node, _) if party.node() == Some(&node.name))
}
