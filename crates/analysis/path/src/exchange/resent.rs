//! Retransmissions of an unanswered first packet, for which nodes on the way keep a connection.
//!
//! If a node's rules translated the first packet, conntrack translates the next one the same way
//! and does not evaluate the table `nat` again. So no rule marks it, and until an answer was seen
//! its connection is still NEW: a rule that let the first packet pass because of its mark, as in
//! kube-proxy's chain KUBE-FORWARD, does not match this one. A later rule may refuse it.

use uturn_model::route::{Direction, Step, StepKind};
use uturn_model::{Evidence, Mechanism, Outcome, Protocol, Text};
use uturn_netfilter::{Connection, IpProtocol, Packet};

use super::return_refusal;
use crate::engine::walk::Walk;
use crate::error::WalkError;
use crate::journey;
use crate::packet::{Call, Exchange, PacketState, Stop, ended};

/// Returns the end of a request that gets no answer for this reason: its sender waits, unless it is
/// refused when it sends again.
pub(super) fn without_answer(
    walk: &Walk<'_, '_>,
    call: &Call<'_>,
    mut state: PacketState,
    why: Mechanism,
) -> Result<Vec<Exchange>, WalkError> {
    state.note_failure(why);
    if is_met_otherwise(&state)
        && let Some(refused) = refused_when_resent(walk, call, &state, why)?
    {
        return Ok(refused);
    }
    Ok(vec![ended(state, Outcome::Hangs, Some(why))])
}

/// Returns the outcomes of the retransmission after a lost packet, if all of them are refusals.
fn refused_when_resent(
    walk: &Walk<'_, '_>,
    call: &Call<'_>,
    state: &PacketState,
    why: Mechanism,
) -> Result<Option<Vec<Exchange>>, WalkError> {
    let asked = call.asked;
    let mut again = PacketState {
        packet: Packet::new(Protocol::Tcp, asked.src, asked.dst),
        direction: Direction::Out,
        passed: 0,
        handed_to: state.first_handed_to.clone(),
        is_resent: true,
        ..state.clone()
    };
    again.tries.lost += 1;
    if let Err(place) = again.tries.why.binary_search(&why) {
        again.tries.why.insert(place, why);
    }
    let place = || call.client.place();
    again.note_unless_brief(place, || {
        let by = Evidence::kernel("connection tracking");
        Step::new(StepKind::Timeout, sent_again(state), by).seeing(asked)
    });
    let mut exchanges = Vec::new();
    for arrival in journey::send(walk, call.client, again)? {
        let Stop::Refused(refused) = arrival.stop else { return Ok(None) };
        exchanges.extend(return_refusal(walk, call, refused, arrival.state)?);
    }
    let is_refused = exchanges.iter().all(|exchange| exchange.outcome != Outcome::Hangs);
    Ok((is_refused && !exchanges.is_empty()).then_some(exchanges))
}

/// Returns whether nodes may treat the next packet of a connection differently from its first.
fn is_met_otherwise(state: &PacketState) -> bool {
    let is_translated = |connection: &Connection| {
        connection.source_translated()
            || connection.destination_translated()
            || connection.scheduled.is_some()
    };
    // A reset ends the connection on all nodes that see it.
    state.packet.protocol() == IpProtocol::TCP
        && !state.packet.is_refusal()
        && !state.is_resent
        && state.tries.left() > 1
        && state.nodes.iter().any(|(_, known)| !known.seen_reply && is_translated(known))
}

fn sent_again(state: &PacketState) -> Text {
    let mut tries = state.tries.clone();
    tries.lost += 1;
    let seconds = tries.delay().as_secs();
    format!(
        "sends the packet again, {seconds} s after the first: nodes that translated that one do not \
         ask the table nat again, so no rule of it marks this one"
    )
    .into()
}
