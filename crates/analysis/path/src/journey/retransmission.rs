//! Retransmissions of the first packet of a connection, which is sent again until it is answered.
//!
//! A node that dropped the packet may have kept no state of it: conntrack keeps a connection when
//! its first packet leaves the node or reaches a process there. If rules chose at random on the way
//! to the drop, they choose anew for the next packet, which may get through. If the choice was
//! kept, each packet takes the way of the first.

use std::time::Duration;

use uturn_model::route::{Direction, Place, Step, StepKind};
use uturn_model::{Evidence, FailurePoint, Mechanism, Share, Text};
use uturn_netfilter::{End, EndKind, IpProtocol};

use super::after_node;
use crate::add_missing::add_missing;
use crate::engine::Engine;
use crate::engine::walk::Walk;
use crate::error::WalkError;
use crate::journey::bridge;
use crate::node::refusal;
use crate::packet::{Arrival, NodeVisit, PacketState, Stop};

/// Follows a packet on a node, and its retransmissions.
pub(super) fn after_random_choice<'w>(
    walk: &'w Walk<'_, '_>,
    visit: &NodeVisit<'w>,
    ends: Vec<End>,
    state: &PacketState,
) -> Result<Vec<Arrival<'w>>, WalkError> {
    let is_open = |end: &End| {
        Ok(state.direction == Direction::Out && is_sent_again(walk.engine, end, visit)?)
    };
    let open: Vec<bool> = ends.iter().map(is_open).collect::<Result<_, WalkError>>()?;
    let sent_again = ends.iter().zip(&open).filter(|(_, is_open)| **is_open);
    let lost: Share = sent_again.map(|(end, _)| end.share).sum();
    let go = |ends: Vec<End>, state: &PacketState| -> Result<Vec<Arrival<'w>>, WalkError> {
        let mut arrivals = Vec::new();
        for end in ends {
            arrivals.extend(after_node(walk, visit, end, state.clone())?);
        }
        Ok(arrivals)
    };
    let left = state.tries.left();
    if !lost.is_partial() || left < 2 {
        return go(ends, state);
    }
    let mut is_open = open.into_iter();
    let (open, kept): (Vec<End>, Vec<End>) =
        ends.into_iter().partition(|_| is_open.next() == Some(true));
    let evidence = open.iter().find_map(|end| end.steps.last()).map(|step| step.by.clone());
    let mut hopeless = state.clone();
    hopeless.share *= lost.power((left - 1) as u64);
    hopeless.tries.lost += left - 1;
    let hopeless = go(open, &hopeless)?;
    let mut failures = state.failures.clone();
    if !state.is_brief {
        let points = hopeless
            .iter()
            .filter_map(|arrival| FailurePoint::last_of(&arrival.state.hops, why_lost(arrival)?));
        add_missing(&mut failures, points);
    }
    let mut why: Vec<Mechanism> = hopeless.iter().filter_map(why_lost).collect();
    why.sort_unstable();
    why.dedup();
    let mut arrivals = Vec::new();
    for more in 0..left {
        let mut later = state.clone();
        later.share *= lost.power(more as u64);
        if more > 0 {
            later.tries.lost += more;
            let new = why.iter().filter(|mechanism| !state.tries.why.contains(mechanism));
            later.tries.why.extend(new);
            later.tries.why.sort_unstable();
            later.failures.clone_from(&failures);
            let by = evidence.clone().unwrap_or_else(|| Evidence::kernel("connection tracking"));
            let why = dropped_before(more, later.tries.delay());
            let step = Step::new(StepKind::Timeout, why, by).seeing(state.packet.leg());
            later.note(Place::Node(visit.node.name.clone()), step);
        }
        arrivals.extend(go(kept.clone(), &later)?);
    }
    arrivals.extend(hopeless);
    Ok(arrivals)
}

/// Returns whether a packet with this end is sent again and no node keeps the first one's
/// connection.
fn is_sent_again(engine: &Engine<'_>, end: &End, visit: &NodeVisit<'_>) -> Result<bool, WalkError> {
    let protocol = end.packet.protocol();
    if !end.redrawn_on_retry || protocol != IpProtocol::TCP {
        return Ok(false);
    }
    let is_answered = match &end.kind {
        EndKind::Drop(reason) if visit.sent_here => refusal::of_unsent(reason).is_some(),
        EndKind::Drop(reason) => refusal::of_drop(reason, protocol).is_some(),
        EndKind::Reject(how) => !bridge::resets_in_vain(engine, visit, *how, end.packet.leg())?,
        _ => return Ok(false),
    };
    Ok(!is_answered)
}

fn why_lost(arrival: &Arrival<'_>) -> Option<Mechanism> {
    match arrival.stop {
        Stop::Lost(why) => Some(why),
        Stop::At(_) | Stop::Refused(..) | Stop::Unknown(_) => None,
    }
}

fn dropped_before(many: usize, delay: Duration) -> Text {
    let seconds = delay.as_secs();
    let (packets, them) = match many {
        1 => ("one packet".to_owned(), "it"),
        _ => (format!("{many} packets"), "them"),
    };
    format!(
        "dropped {packets} before this one and kept nothing of {them}: sent again, {seconds} s \
         after the first, it meets the random choice anew"
    )
    .into()
}
