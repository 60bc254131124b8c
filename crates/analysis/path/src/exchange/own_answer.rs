//! Answers of a load balancer or an ingress controller itself, over the client's own connection.

use uturn_model::route::{Direction, Place, Step, StepKind};
use uturn_model::{Evidence, Hop, Outcome, Share};

use super::return_reply;
use crate::engine::walk::Walk;
use crate::error::WalkError;
use crate::exchange::merge;
use crate::packet::{Call, Exchange, PacketState, Peer};

/// Returns the ways in which an answer of `party` itself reaches the client: the same for every
/// answer.
pub(super) fn own_answer(
    walk: &Walk<'_, '_>,
    party: Peer<'_>,
    call: &Call<'_>,
    state: &PacketState,
) -> Result<Vec<Exchange>, WalkError> {
    let mut answer = state.answer().on_time();
    answer.hops.clear();
    (answer.share, answer.chance) = (Share::ALL, false);
    return_reply(walk, party, call, answer, Outcome::AT_ONCE, None)
}

/// Returns each way in which a request ended, followed by each way in which its answer reaches the
/// client.
pub(super) fn with_own_answer(
    walk: &Walk<'_, '_>,
    ended: Vec<Exchange>,
    answers: &[Exchange],
    call: &Call<'_>,
    (place, by): (&Place, &Evidence),
) -> Vec<Exchange> {
    let mut exchanges = Vec::with_capacity(ended.len() * answers.len());
    for exchange in ended {
        if exchange.outcome.is_unknown() {
            exchanges.push(exchange);
            continue;
        }
        for answer in answers {
            let mut exchange = exchange.clone();
            exchange.share *= answer.share;
            exchange.chance |= answer.chance;
            exchange.inherit(answer);
            if !walk.options.is_brief() {
                let step = Step::new(StepKind::Answer, exchange.outcome.to_string(), by.clone());
                let steps = vec![step.seeing(call.expected())];
                exchange.hops.push(Hop { place: place.clone(), direction: Direction::Back, steps });
                exchange.hops.extend(answer.hops.iter().cloned());
            }
            exchange.mechanisms.extend(&answer.mechanisms);
            exchange.mechanisms.sort_unstable();
            exchange.mechanisms.dedup();
            if answer.outcome != Outcome::AT_ONCE {
                exchange.outcome = answer.outcome;
                exchange.redirected = None;
            }
            exchanges.push(exchange);
        }
    }
    merge::alike(walk, exchanges)
}
