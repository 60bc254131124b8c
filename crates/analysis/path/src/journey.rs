//! Follows a packet from place to place, until a process or a load balancer gets it, or it is lost.

pub(crate) mod addresses;
mod bridge;
mod drop_cause;
mod fabric;
pub(crate) mod frontend;
mod interface;
mod lost_node;
mod on_arrival;
pub(crate) mod public_address;
mod retransmission;
pub(crate) mod security_groups;
mod tunnel;

pub use public_address::stands_for_public_address;

use uturn_model::route::{Direction, Leg, Place, Step, StepKind};
use uturn_model::{Assumption, AssumptionSubject, Mechanism, Node, Share, Unknown};
use uturn_netfilter::{Connection, DropReason, End, EndKind, Entry, RejectWith};

use crate::add_missing::add_missing;
use crate::engine::walk::{ENTRIES_PER_RULE, Walk};
use crate::error::WalkError;
use crate::journey::bridge::{lost_at_bridge, reset_in_vain};
use crate::journey::drop_cause::mechanism_of;
use crate::node::refusal;
use crate::packet::{Arrival, NodeVisit, PacketState, Peer, Refused, Stop, arrive, lost};
use crate::unjudged::UnjudgedReason;

/// The largest number of nodes that a packet passes, more than on any real way: a packet that
/// passes more is in a loop and lost.
const MAX_NODES: usize = 16;

/// Sends a packet and follows it in every way it can go.
pub(crate) fn send<'w>(
    walk: &'w Walk<'_, '_>,
    from: Peer<'w>,
    mut state: PacketState,
) -> Result<Vec<Arrival<'w>>, WalkError> {
    let leg = state.packet.leg();
    let direction = state.direction;
    let step =
        || Step::new(StepKind::Send, sends(direction), from.evidence(walk.cluster)).seeing(leg);
    match from {
        // A packet for its own address, or for a loopback address, never leaves a pod.
        Peer::Pod(pod) if pod.ips.contains(&leg.dst.ip()) || leg.dst.ip().is_loopback() => {
            state.note_unless_brief(|| Place::Pod(pod.name.clone()), step);
            Ok(vec![Arrival { state, stop: Stop::At(from) }])
        }
        Peer::Pod(pod) => {
            state.note_unless_brief(|| Place::Pod(pod.name.clone()), step);
            match pod.node.as_ref().and_then(|name| walk.cluster.nodes.get(name)) {
                Some(node) => {
                    let link = walk.engine.runtime(&node.name)?.pod_link(leg.src.ip());
                    at_node(walk, node, &Entry::Interface(link), state)
                }
                None => Ok(vec![lost(state, Mechanism::NoRoute)]),
            }
        }
        Peer::Host(node, pod) => {
            let place = || match pod {
                Some(pod) => Place::Pod(pod.name.clone()),
                None => Place::Node(node.name.clone()),
            };
            state.note_unless_brief(place, step);
            at_node(walk, node, &Entry::Local, state)
        }
        // A load balancer's actions are noted where it decides.
        Peer::Balancer(balancer) => {
            let groups = &balancer.security_groups;
            if let Some(step) = security_groups::denied_by_own(walk.cluster, groups, &state) {
                state.note(from.place(), step);
                return Ok(vec![lost(state, Mechanism::SecurityGroup)]);
            }
            fabric::enter(walk, None, state)
        }
        Peer::Outside => {
            if direction == Direction::Out {
                state.outside = Some(leg.src.ip());
            }
            state.note_unless_brief(|| Place::Outside, step);
            fabric::enter(walk, None, state)
        }
    }
}

/// Follows a packet through a node's rules.
fn at_node<'w>(
    walk: &'w Walk<'_, '_>,
    node: &'w Node,
    entry: &Entry,
    mut state: PacketState,
) -> Result<Vec<Arrival<'w>>, WalkError> {
    state.passed += 1;
    if state.passed > MAX_NODES {
        return Ok(vec![lost(state, Mechanism::NoRoute)]);
    }
    if !walk.work.may_visit(&walk.engine.work) {
        return Ok(vec![UnjudgedReason::of_too_many_ways(&node.name, &state).stopped(state)]);
    }
    if lost_node::takes(node, &state) {
        return Ok(vec![lost_node::end(node, state)]);
    }
    if node.is_windows {
        let unjudged = UnjudgedReason::of(&node.object(), &node.origin, &Unknown::Windows);
        return Ok(vec![unjudged.arrival_at(Place::Node(node.name.clone()), state)]);
    }
    let known: Vec<Connection> = state
        .nodes
        .iter()
        .filter(|(name, _)| *name == node.name)
        .map(|(_, connection)| connection.clone())
        .collect();
    let leg = state.packet.leg();
    let astray = state.direction == Direction::Back
        && !known.iter().any(|connection| connection.original == leg || connection.reply == leg);
    let runtime = walk.engine.runtime_for(&node.name, &state.packet)?;
    let kernel = match bridge::is_bridged(walk.engine, node, entry, &state.packet)? {
        true if !runtime.bridge_shows_rules(state.packet.family()) => {
            return Ok(bridge::past_rules(walk.engine, node, state));
        }
        true => runtime.bridging(),
        false => &runtime.kernel,
    };
    // An ICMP error is no answer, and a reset ends the connection.
    if state.direction == Direction::Back && !state.packet.is_refusal() {
        state.note_reply_seen(&node.name);
    }
    let mut ends = walk.walk_rules(kernel, &state.packet, entry, &known);
    walk.leave_open(&ends);
    weigh(walk, leg, &mut ends)?;
    if state.direction == Direction::Out {
        // Ends are also checked if only the port was changed: a node's address may be that of
        // an endpoint.
        for to in ends.iter().map(|end| end.packet.leg().dst).filter(|to| *to != leg.dst) {
            walk.check_endpoint(to.ip())?;
        }
    }
    let visit =
        NodeVisit { node, astray, sent_here: *entry == Entry::Local, came: (entry.clone(), leg) };
    retransmission::after_random_choice(walk, &visit, ends, &state)
}

/// Weighs ends whose endpoints represent many by the number that they represent. Rules pick any
/// endpoint with equal probability.
fn weigh(walk: &Walk<'_, '_>, before: Leg, ends: &mut [End]) -> Result<(), WalkError> {
    let weight = |end: &End| match end.packet.leg().dst {
        to if to == before.dst => None,
        to => walk.population.endpoints(to.ip()),
    };
    let picked = || ends.iter().filter_map(|end| Some((end.share, weight(end)?)));
    let plain: f64 = picked().map(|(share, _)| share.get()).sum();
    let weighed: f64 = picked().map(|(share, weight)| share.get() * weight).sum();
    if picked().count() < 2 || weighed <= 0.0 {
        return Ok(());
    }
    if ends.iter().any(|end| weight(end).is_some() && !end.unknown.is_empty()) {
        return Err(WalkError::NeedsWhole);
    }
    let scale = plain / weighed;
    for end in ends.iter_mut() {
        if let Some(weight) = weight(end) {
            end.share = end.share.scaled(weight * scale);
        }
    }
    Ok(())
}

/// Follows a packet after a node's rules.
fn after_node<'w>(
    walk: &'w Walk<'_, '_>,
    visit: &NodeVisit<'w>,
    end: End,
    mut state: PacketState,
) -> Result<Vec<Arrival<'w>>, WalkError> {
    let node = visit.node;
    state.share *= end.share;
    state.chance |= end.share < Share::ALL;
    state.packet = end.packet;
    let is_for_node = end.is_for_node;
    let tells = |with| end.packet.refusal(with, is_for_node);
    add_missing(&mut state.supposed, end.supposed);
    // The rule at which a walk was given up was followed in neither way.
    let gave_up = end.steps.last().filter(|_| end.kind == EndKind::Unsettled).map(|step| &step.by);
    // No rule is in the list twice, so only what was supposed before is looked through.
    let before = state.supposed.len();
    let compared = (end.unknown.len() * (before + 1) / ENTRIES_PER_RULE) as u64;
    walk.work.count_rules(compared, &walk.engine.work);
    let followed = end.unknown.iter().filter(|by| Some(*by) != gave_up);
    for supposed in followed.map(|by| walk.both_ways(node, by)) {
        if !state.supposed[..before].contains(&supposed) {
            state.supposed.push(supposed);
        }
    }
    walk.work
        .count_steps(state.hops.iter().map(|hop| hop.steps.len()).sum::<usize>() + end.steps.len());
    let skipped = if state.is_brief { end.steps.len().saturating_sub(1) } else { 0 };
    for step in end.steps.into_iter().skip(skipped) {
        state.note(Place::Node(node.name.clone()), step);
    }
    let is_back = end.kind == EndKind::Forward
        && bridge::is_lost(walk.engine, visit, &end.out, &end.connection, state.packet.leg())?;
    if is_back {
        return Ok(vec![lost_at_bridge(visit, state)]);
    }
    if let Some(connection) = end.connection {
        state.remember(&node.name, connection);
    }
    let arrivals = match end.kind {
        EndKind::Local => {
            let port = state.packet.leg().dst.port();
            walk.check_process(node, port)?;
            let pod = walk.engine.host_pod_on(node, port);
            vec![Arrival { state, stop: Stop::At(Peer::Host(node, pod)) }]
        }
        EndKind::Forward
            if walk.engine.runtime(&node.name)?.leads_to_fabric(end.out.as_deref()) =>
        {
            fabric::enter(walk, Some(node), state)?
        }
        EndKind::Forward => match walk.engine.pod_at(state.packet.dst) {
            Some(pod) if pod.node.as_ref() == Some(&node.name) => arrive(pod, state),
            _ => fabric::leave_for_pods(walk, node, state)?,
        },
        // The last step gives the reason and names the rule.
        EndKind::Unsettled => {
            vec![Arrival { state, stop: Stop::Unknown(Mechanism::NotModelled) }]
        }
        EndKind::Drop(DropReason::Rule(_) | DropReason::Policy(_)) => {
            let why = if visit.astray {
                Mechanism::AsymmetricReturn
            } else {
                let why = drop_cause::why_stopped(walk, node, &state)?;
                explain_stop(walk, node, &mut state, why);
                why
            };
            vec![lost(state, why)]
        }
        EndKind::Drop(reason) => {
            let why = mechanism_of(&reason);
            let (outcome, notice) = if visit.sent_here {
                (refusal::of_unsent(&reason), None)
            } else {
                (
                    refusal::of_drop(&reason, state.packet.protocol()),
                    refusal::notice_of_drop(&reason, state.packet.family()).map(tells),
                )
            };
            let by = Peer::Host(node, None);
            let stop = match outcome {
                Some(outcome) => Stop::Refused(Refused { why, by, outcome, notice }),
                None => Stop::Lost(why),
            };
            vec![Arrival { state, stop }]
        }
        EndKind::Reject(how) => {
            let why = drop_cause::why_stopped(walk, node, &state)?;
            explain_stop(walk, node, &mut state, why);
            if bridge::resets_in_vain(walk.engine, visit, how, state.packet.leg())? {
                return Ok(vec![reset_in_vain(visit, why, state)]);
            }
            let past_rules =
                how == RejectWith::TcpReset && bridge::resets_past_rules(walk.engine, visit)?;
            let outcome = refusal::of_reject(how, state.packet.protocol());
            let notice = (!past_rules).then(|| tells(how));
            let refused = Refused { why, by: Peer::Host(node, None), outcome, notice };
            vec![Arrival { state, stop: Stop::Refused(refused) }]
        }
    };
    Ok(arrivals)
}

/// Says in the last step what the rule that stopped the packet does not say.
fn explain_stop(walk: &Walk<'_, '_>, node: &Node, state: &mut PacketState, why: Mechanism) {
    if state.is_brief {
        return;
    }
    let Some((what, by)) = drop_cause::explain(walk, node, state, why) else { return };
    if let Some(step) = state.hops.last_mut().and_then(|hop| hop.steps.last_mut()) {
        step.why = what.into();
        step.by = by.unwrap_or_else(|| step.by.clone());
    }
}

/// Returns whether an assumption is that a rule was walked both ways.
pub fn is_both_ways(assumption: &Assumption) -> bool {
    assumption.subject == AssumptionSubject::RuleWalkedBothWays
}

fn sends(direction: Direction) -> &'static str {
    match direction {
        Direction::Out => "connects",
        Direction::Back => "answers",
    }
}
