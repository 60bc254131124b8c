//! DNS queries as packets: a query has to reach the cluster's DNS, and its answer has to come back.

use std::net::SocketAddr;
use std::time::Duration;

use uturn_model::route::{Direction, Place, Step, StepKind};
use uturn_model::{Assumption, Evidence, FailurePoint, Hop, Mechanism, Outcome, Protocol, Share};
use uturn_netfilter::Packet;

use crate::add_missing::add_missing;
use crate::engine::walk::Walk;
use crate::error::WalkError;
use crate::exchange::call;
use crate::names::{PORT, Resolution};
use crate::packet::{Exchange, PacketState, Peer, Request};
use crate::{resolve, unjudged};

/// Returns the end of a flow whose DNS query gets no answer: the hops of the query, and that it was
/// for a name. Returns `None` if an answer may come: libraries ask again.
pub(crate) fn lost(
    walk: &Walk<'_, '_>,
    client: Peer<'_>,
    resolution: &Resolution,
) -> Result<Option<Exchange>, WalkError> {
    let Some(server) = resolution.through else { return Ok(None) };
    let dns = walk.cluster.dns.service.as_ref();
    if dns.is_none_or(|name| unjudged::service(walk.cluster, name).is_some()) {
        return Ok(None);
    }
    let to = SocketAddr::new(server, PORT);
    let Some(source) = resolve::source(walk.engine, client, to, Protocol::Udp)? else {
        return Ok(None);
    };
    let packet = Packet::new(Protocol::Udp, source, to);
    if unjudged::at(walk.engine, client, to, Protocol::Udp).is_some() {
        return Ok(None);
    }
    let exchanges = call::make(walk, client, &Request::default(), PacketState::new(packet))?;
    let may_answer =
        |exchange: &Exchange| exchange.outcome.is_answered() || exchange.outcome.is_unknown();
    if exchanges.iter().any(may_answer) {
        return Ok(None);
    }
    let mut failures = Vec::new();
    for point in exchanges.iter().flat_map(|exchange| exchange.failures.iter().cloned()) {
        let mechanism = match point.mechanism {
            known @ Mechanism::NetworkPolicy => known,
            _ => Mechanism::NameUnresolved,
        };
        add_missing(&mut failures, [FailurePoint { mechanism, ..point }]);
    }
    let is_denied =
        exchanges.iter().all(|exchange| exchange.mechanisms == [Mechanism::NetworkPolicy]);
    // Equally likely ways are in the order of addresses in rules.
    let is_worse = |a: &Exchange, b: &Exchange| {
        let is_shown = |exchange: &Exchange| walk.is_shown(&exchange.hops);
        let shares = || a.share.rounded_cmp(&b.share);
        let ends = || (a.outcome, &a.mechanisms).cmp(&(b.outcome, &b.mechanisms));
        is_shown(a).cmp(&is_shown(b)).then_with(shares).then_with(ends)
    };
    let Some(worst) = exchanges.into_iter().max_by(is_worse) else { return Ok(None) };
    let mut hops = worst.hops;
    let because: Vec<String> = worst.mechanisms.iter().map(ToString::to_string).collect();
    let because =
        if because.is_empty() { String::new() } else { format!(" ({})", because.join(", ")) };
    let fate = match worst.outcome {
        Outcome::Refused => "is refused",
        _ => "gets no answer",
    };
    let why = format!("the question to the cluster's DNS at {to} {fate}{because}");
    let service = walk.cluster.dns.service.as_ref();
    let service = service.and_then(|name| walk.cluster.services.get(name));
    let by = match service {
        Some(service) => Evidence::object(service.object(), service.origin.clone()),
        None => client.evidence(walk.cluster),
    };
    let steps = vec![Step::new(StepKind::Resolve, why, by)];
    hops.push(Hop { place: Place::Dns, direction: Direction::Out, steps });
    let mut supposed = resolution.supposed.clone();
    add_missing(&mut supposed, worst.supposed);
    let mut end = Exchange { failures, ..nameless(hops, supposed) };
    if is_denied {
        end.mechanisms = vec![Mechanism::NetworkPolicy];
    }
    Ok(Some(end))
}

/// Returns the end of a flow whose name does not resolve.
pub(crate) fn unresolved(resolution: Resolution) -> Exchange {
    let hop = Hop { place: Place::Dns, direction: Direction::Out, steps: resolution.steps };
    nameless(vec![hop], resolution.supposed)
}

fn nameless(hops: Vec<Hop>, supposed: Vec<Assumption>) -> Exchange {
    Exchange {
        share: Share::ALL,
        outcome: Outcome::NameNotFound,
        mechanisms: vec![Mechanism::NameUnresolved],
        chance: false,
        has_others: false,
        lost: Vec::new(),
        late: Duration::ZERO,
        supposed,
        failures: Vec::new(),
        redirected: None,
        refusal: None,
        hops,
    }
}
