//! A client's call: a request to an address, and the further calls by which the client follows
//! redirects.

use std::net::SocketAddr;

use uturn_model::route::Place;
use uturn_model::{Mechanism, Outcome, Protocol};
use uturn_netfilter::Packet;

use crate::engine::walk::Walk;
use crate::error::WalkError;
use crate::exchange::{at_connect, merge};
use crate::packet::{Call, Exchange, Pace, PacketState, Peer, Redirected, Request};
use crate::resolve;

/// Calls an address: sends a request to it and waits for what comes back, in every way.
pub(crate) fn make(
    walk: &Walk<'_, '_>,
    client: Peer<'_>,
    request: &Request,
    state: PacketState,
) -> Result<Vec<Exchange>, WalkError> {
    let call = Call::begun_by(client, request, &state);
    let exchanges = at_connect::connect(walk, client, request, state)?;
    follow(walk, &call, exchanges)
}

/// Follows the redirects among a client's answers.
fn follow(
    walk: &Walk<'_, '_>,
    call: &Call<'_>,
    exchanges: Vec<Exchange>,
) -> Result<Vec<Exchange>, WalkError> {
    if exchanges.iter().all(|exchange| exchange.redirected.is_none()) {
        return Ok(exchanges);
    }
    let mut ends = Vec::new();
    for mut exchange in exchanges {
        match (exchange.redirected.take(), exchange.outcome) {
            (Some(redirected), Outcome::Status { after, .. }) => {
                for next in follow_redirect(walk, call, &redirected, &exchange)? {
                    let outcome = next.outcome.later(after);
                    ends.push(Exchange { outcome, ..next });
                }
            }
            _ => ends.push(exchange),
        }
    }
    Ok(merge::alike(walk, ends))
}

/// Returns the results of the call by which a client follows a redirect.
fn follow_redirect(
    walk: &Walk<'_, '_>,
    call: &Call<'_>,
    redirection: &Redirected,
    first_call: &Exchange,
) -> Result<Vec<Exchange>, WalkError> {
    let Call { client, asked, request } = *call;
    let (host, path) = redirection.redirect.aim(&redirection.host, &redirection.path);
    let url = redirection.redirect.location(&redirection.host, &redirection.path);
    let next = Request {
        http: Some((host.to_owned(), path.to_owned())),
        tls: Some(redirection.redirect.tls),
        redirects: request.redirects + 1,
        redirect_urls: [request.redirect_urls.as_slice(), &[url]].concat(),
        controllers: request.controllers,
        ..Request::default()
    };
    let port = redirection.redirect.port;
    let is_same = redirection.redirect.host.is_none();
    let target = resolve::aim_at_host(walk.engine, client, host, port, next);
    let addresses = if is_same {
        // The host is the same, and so is the address that the client uses.
        vec![SocketAddr::new(asked.dst.ip(), port.number())]
    } else {
        target.addresses
    };
    let failed = |outcome, mechanism| Exchange {
        outcome,
        mechanisms: Some(mechanism).into_iter().collect(),
        ..first_call.clone()
    };
    if addresses.is_empty() {
        return Ok(vec![failed(Outcome::NameNotFound, Mechanism::NameUnresolved)]);
    }
    let mut exchanges = Vec::new();
    let share = first_call.share.split(addresses.len());
    for address in &addresses {
        let Some(source) = resolve::source(walk.engine, client, *address, Protocol::Tcp)? else {
            let lost = failed(Outcome::Unreachable, Mechanism::NoRoute);
            exchanges.push(Exchange { share, ..lost });
            continue;
        };
        let packet = Packet::new(Protocol::Tcp, source, *address);
        let mut state = PacketState::new(packet)
            .briefly(walk.options.is_brief())
            .paced(Pace::of(client, walk.cluster));
        state.share = share;
        state.chance = first_call.chance;
        state.supposed.clone_from(&first_call.supposed);
        state.failures.clone_from(&first_call.failures);
        state.hops.clone_from(&first_call.hops);
        if let Some(resolution) = target.resolved.as_ref().filter(|_| !is_same) {
            for step in &resolution.steps {
                state.note(Place::Dns, step.clone());
            }
        }
        for mut exchange in make(walk, client, &target.request, state)? {
            for mechanism in &first_call.mechanisms {
                if !exchange.mechanisms.contains(mechanism) {
                    exchange.mechanisms.push(*mechanism);
                }
            }
            exchange.mechanisms.sort_unstable();
            exchanges.push(exchange);
        }
    }
    Ok(exchanges)
}
