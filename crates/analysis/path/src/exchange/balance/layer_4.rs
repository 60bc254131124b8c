//! Layer 4: a connection, or a datagram, is forwarded to one target.

use uturn_lb::decide::Choice;
use uturn_model::lb::Listener;
use uturn_model::route::{Leg, Step, StepKind};
use uturn_model::{Evidence, LoadBalancer, Mechanism, Outcome};

use super::super::return_reply;
use super::no_target::NotPicked;
use super::{by_listener, exchange_with_target, first_picks, return_own_answer};
use crate::engine::walk::Walk;
use crate::error::WalkError;
use crate::exchange::balance::no_target;
use crate::exchange::failover::pick_step;
use crate::exchange::{health, merge, uncertain_behaviour};
use crate::packet::{Call, Exchange, PacketState, Peer, Request, ended};

/// Forwards a connection to one of the rule's targets, in every way the load balancer may pick.
pub(super) fn forward(
    walk: &Walk<'_, '_>,
    balancer: &LoadBalancer,
    listener: &Listener,
    call: &Call<'_>,
    state: &PacketState,
) -> Result<Vec<Exchange>, WalkError> {
    let request = call.request;
    let seen = state.packet.leg();
    let place = Peer::Balancer(balancer).place();
    // A load balancer that makes connections to targets has accepted the client's before it
    // picks a target. If there is none, it can only close it.
    let ends_tls = listener.protocol.ends_tls();
    let is_taken = listener.makes_connections();
    let turned_away = match (is_taken, request.tls) {
        (false, _) => Outcome::Hangs,
        // A TLS handshake that is passed through has not begun.
        (true, Some(true)) if !ends_tls => Outcome::TlsError,
        (true, _) => Outcome::EmptyReply,
    };
    let home = |exchanges: Vec<Exchange>| {
        if is_taken {
            return_own_answer(walk, balancer, call, state, exchanges, turned_away)
        } else {
            Ok(exchanges)
        }
    };
    let rule = listener.rules.first();
    let Some(rule) = rule.filter(|rule| !rule.targets.is_empty()) else {
        let reason = NotPicked::unregistered(walk.cluster, rule.map(|rule| &rule.service));
        let exchanges =
            no_target::end(walk.cluster, state.clone(), balancer, turned_away, (reason, &[]));
        return home(exchanges);
    };
    // A connection that is passed through still speaks the client's protocol.
    let tls = if ends_tls { listener.profile.target_tls } else { request.tls };
    let has_proxy_header = adds_header(listener);
    let passed = Request { tls, has_proxy_header, ..request.clone() };
    let health = health::of_targets(walk, balancer, listener, rule)?;
    let alive: Vec<bool> = health.iter().map(|target| target.alive).collect();
    let choice = Choice::new(&listener.profile, &rule.targets, &alive, seen.src.ip());
    let shares = first_picks(walk, &choice);
    if shares.is_empty() {
        let mut state = state.clone();
        let reason = NotPicked::of(&listener.profile, &health);
        if let NotPicked::NoneAlive = reason {
            state.supposed.extend(uncertain_behaviour::page_is_missing(walk.cluster, listener));
        }
        return home(no_target::end(walk.cluster, state, balancer, turned_away, (reason, &health)));
    }
    let by = by_listener(walk.cluster, listener, rule);
    let mut exchanges = Vec::new();
    for (target, share) in shares {
        let mut there = state.clone();
        there.note(place.clone(), pick_step(listener, rule, target, seen, by.clone()));
        let to = &rule.targets[target];
        for inner in exchange_with_target(walk, balancer, listener, to, seen.src, &passed, state)? {
            // If packets are passed through, all retransmissions are counted already.
            let mut state = if is_taken { there.clone() } else { there.clone().on_time() };
            state.share *= share * inner.share;
            state.chance |= inner.chance;
            (state.supposed, state.failures) = (inner.supposed, inner.failures);
            state.hops.extend(inner.hops);
            // A load balancer that forwards packets and only adds a header waits as long as the
            // client does.
            let ends_connections = ends_tls || is_taken && listener.profile.ends_connections;
            let gives_up = ends_connections && inner.outcome == Outcome::Hangs;
            let outcome = match inner.outcome {
                // A target that does not answer is given up.
                Outcome::Hangs if gives_up => turned_away,
                Outcome::Answered { .. } | Outcome::Hangs | Outcome::Unknown => inner.outcome,
                // The load balancer passes the target's data on to the client.
                Outcome::Status { .. } | Outcome::EmptyReply => inner.outcome,
                _ if ends_tls => turned_away,
                Outcome::Refused | Outcome::Unreachable | Outcome::Reset if is_taken => turned_away,
                other => other,
            };
            // A refusal comes back through the load balancer like any other answer.
            if matches!(outcome, Outcome::Hangs | Outcome::Unknown) {
                state.tries.why.extend(inner.mechanisms);
                exchanges.push(ended(state, outcome, None));
                continue;
            }
            let is_last = |mechanism: &&Mechanism| !inner.lost.contains(mechanism);
            let last = inner.mechanisms.iter().find(is_last);
            let mechanism = last.or(inner.mechanisms.first()).copied();
            state.tries.why.extend(inner.lost);
            let party = Peer::Balancer(balancer);
            let back = state.packet.reply();
            let mut answer = match inner.refusal {
                Some(refusal) => state.refusal(refusal.with_leg(back.leg())),
                None => state.answer(),
            };
            answer.note(
                place.clone(),
                if gives_up {
                    close_step(listener, seen, by.clone())
                } else {
                    relay_step(seen, by.clone())
                },
            );
            let waited = if gives_up { listener.profile.connect_timeout } else { inner.late };
            let home = return_reply(walk, party, call, answer, outcome, mechanism)?;
            exchanges.extend(home.into_iter().map(|exchange| {
                let late = exchange.late.max(waited);
                let has_others = exchange.has_others || inner.has_others;
                Exchange { late, has_others, ..exchange.relayed(outcome, inner.redirected.clone()) }
            }));
        }
    }
    Ok(merge::alike(walk, exchanges))
}

/// Returns whether connections to targets begin with a PROXY header. Datagrams do not.
fn adds_header(listener: &Listener) -> bool {
    listener.profile.proxy_header.is_some()
        && listener.protocol.transport() == uturn_model::Protocol::Tcp
}

/// Returns the step in which a load balancer that terminates connections closes the client's,
/// because it has none to a target.
fn close_step(listener: &Listener, seen: Leg, by: Evidence) -> Step {
    let home = Leg { src: seen.dst, dst: seen.src };
    let seconds = listener.profile.connect_timeout.as_secs_f64();
    let why = format!("gives the target up after {seconds} s: closes the client's connection");
    Step::new(StepKind::Answer, why, by).seeing(home)
}

fn relay_step(seen: Leg, by: Evidence) -> Step {
    let home = Leg { src: seen.dst, dst: seen.src };
    Step::new(StepKind::Untranslate, "passes the answer back", by).seeing(home)
}
