//! Ways of requests that end alike.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use uturn_model::{Mechanism, Outcome};
use uturn_netfilter::Packet;

use crate::engine::walk::Walk;
use crate::packet::{Exchange, Redirected};

/// Adds an exchange that ends alike. Its hops replace the known ones if only they contain the
/// failure point that is to be shown.
pub(super) fn join(walk: &Walk<'_, '_>, known: &mut Exchange, other: Exchange) {
    known.join(&other);
    if walk.prefers(&other.hops, &known.hops) {
        known.hops = other.hops;
    }
}

/// Merges ways that end alike, unless every way is wanted.
pub(crate) fn alike(walk: &Walk<'_, '_>, exchanges: Vec<Exchange>) -> Vec<Exchange> {
    if walk.options.every_way {
        return exchanges;
    }
    let mut kept: Vec<Exchange> = Vec::new();
    // Retries can end in thousands of ways.
    type Key = (Outcome, Duration, Vec<Mechanism>, Option<Arc<Redirected>>, Option<Packet>);
    let key_of = |exchange: &Exchange| -> Key {
        (
            exchange.outcome,
            exchange.late,
            exchange.mechanisms.clone(),
            exchange.redirected.clone(),
            exchange.refusal,
        )
    };
    let mut places: HashMap<Key, usize> = HashMap::new();
    let is_long = exchanges.len() > 16;
    for exchange in exchanges {
        let known = if is_long {
            places.get(&key_of(&exchange)).copied()
        } else {
            kept.iter().position(|known| {
                (known.outcome, known.late) == (exchange.outcome, exchange.late)
                    && known.mechanisms == exchange.mechanisms
                    && known.redirected == exchange.redirected
                    && known.refusal == exchange.refusal
            })
        };
        match known.and_then(|at| kept.get_mut(at)) {
            Some(known) => join(walk, known, exchange),
            None => {
                if is_long {
                    places.insert(key_of(&exchange), kept.len());
                }
                kept.push(exchange);
            }
        }
    }
    if let [only] = kept.as_mut_slice() {
        only.chance = false;
    }
    kept
}
