//! Computes the verdict of a flow: resolves clients and name, walks all ways, and adds them up.

use std::net::SocketAddr;

use uturn_model::route::Place;
use uturn_model::{Client, Cluster, Family, Flow, Protocol, Route, Share, Verdict};
use uturn_netfilter::Packet;

use crate::add_missing::add_missing;
use crate::engine::walk::Walk;
use crate::error::WalkError;
use crate::exchange::{call, dns_query, merge};

use crate::names::Resolution;
use crate::packet::{Exchange, Pace, PacketState, Peer, Request};
use crate::resolve::{self, CLIENT_PORT, ResolvedTarget};
use crate::unjudged::{self, UnjudgedReason};

/// Returns why a name that leads to a load balancer without known addresses cannot be judged.
fn unjudged_resolution(cluster: &Cluster, resolution: &Resolution) -> Option<UnjudgedReason> {
    resolution.balancer.as_deref().and_then(|name| unjudged::host(cluster, name))
}

/// Returns the end of a flow that cannot be judged, as shown once its name is resolved.
fn ended_at_name(
    client: Peer<'_>,
    protocol: Protocol,
    resolution: &Resolution,
    unjudged: &UnjudgedReason,
) -> Exchange {
    let mut state = PacketState::nowhere(protocol);
    for step in &resolution.steps {
        state.note(Place::Dns, step.clone());
    }
    unjudged.exchange(client.place(), state)
}

/// Returns the verdict of a flow.
pub(crate) fn of_flow(walk: &Walk<'_, '_>, flow: &Flow) -> Result<Verdict, WalkError> {
    let clients = resolve::clients(walk.cluster, &flow.from)?;
    let mut by_client = Vec::with_capacity(clients.len());
    let mut without = None;
    let unjudged = unjudged::call(walk.cluster, flow);
    for client in clients {
        if let Some(unjudged) = &unjudged {
            let nowhere = PacketState::nowhere(flow.protocol);
            by_client.push(vec![unjudged.exchange(client.place(), nowhere)]);
            continue;
        }
        let target = resolve::aim_of(walk.engine, client, flow)?;
        match of_client(walk, client, flow, &target) {
            Ok(exchanges) => by_client.push(exchanges),
            // The other pods of the workload call.
            Err(why @ WalkError::NoAddress(..)) => without = Some(why),
            Err(why) => return Err(why),
        }
    }
    if let Some(why) = without.filter(|_| by_client.is_empty()) {
        return Err(why);
    }
    let share = Share::of(1, by_client.len());
    let mut exchanges: Vec<Exchange> = by_client.into_iter().flatten().collect();
    exchanges.iter_mut().for_each(|exchange| exchange.share *= share);
    Ok(added_up(walk, exchanges))
}

/// Returns the verdict of a flow whose destination is resolved already.
///
/// # Errors
/// Returns an error if the flow cannot be walked, and [`WalkError::NeedsWhole`] if the population
/// does not know enough to walk it.
pub(crate) fn of_target(
    walk: &Walk<'_, '_>,
    flow: &Flow,
    target: &ResolvedTarget,
) -> Result<Verdict, WalkError> {
    let mut exchanges = Vec::new();
    for client in resolve::clients(walk.cluster, &flow.from)? {
        exchanges.extend(of_client(walk, client, flow, target)?);
    }
    Ok(added_up(walk, exchanges))
}

fn added_up(walk: &Walk<'_, '_>, exchanges: Vec<Exchange>) -> Verdict {
    let mut supposed = walk.engine.supposed().to_vec();
    let mut routes = Vec::new();
    for exchange in merge::alike(walk, exchanges) {
        add_missing(&mut supposed, exchange.supposed);
        routes.push(Route {
            share: exchange.share,
            outcome: exchange.outcome,
            late: exchange.late,
            mechanisms: exchange.mechanisms,
            chance: exchange.chance,
            has_others: exchange.has_others,
            failures: exchange.failures,
            hops: exchange.hops,
        });
    }
    Verdict::of(routes, Vec::new(), supposed)
}

/// Returns the ways in which the calls of one client go.
fn of_client(
    walk: &Walk<'_, '_>,
    client: Peer<'_>,
    flow: &Flow,
    target: &ResolvedTarget,
) -> Result<Vec<Exchange>, WalkError> {
    let engine = walk.engine;
    walk.work.begin();
    if let Some(resolution) = &target.resolved {
        if let Some(lost) = dns_query::lost(walk, client, resolution)? {
            return Ok(vec![lost]);
        }
        if target.addresses.is_empty() {
            if let Some(unjudged) = unjudged_resolution(engine.cluster, resolution) {
                return Ok(vec![ended_at_name(client, flow.protocol, resolution, &unjudged)]);
            }
            let may_be_outside = resolution.doubt.is_some();
            let unjudged = unjudged::lost_name(engine.cluster, client, &flow.to, may_be_outside);
            let nowhere = PacketState::nowhere(flow.protocol);
            return Ok(vec![match unjudged {
                Some(unjudged) => unjudged.exchange(client.place(), nowhere),
                None => dns_query::unresolved(resolution.clone()),
            }]);
        }
    }
    let mut exchanges = Vec::new();
    for address in &target.addresses {
        let family = Family::of(address.ip());
        let source = match flow.from {
            Client::Outside(Some(own)) => {
                (Family::of(own) == family).then_some(SocketAddr::new(own, CLIENT_PORT))
            }
            _ => resolve::source(engine, client, *address, flow.protocol)?,
        };
        let source = source.ok_or_else(|| WalkError::NoAddress(flow.from.to_string(), family))?;
        let packet = Packet::new(flow.protocol, source, *address);
        let pace = Pace::of(client, engine.cluster);
        let mut state = PacketState::new(packet).briefly(walk.options.is_brief()).paced(pace);
        if let Some(resolution) = &target.resolved {
            state.supposed.clone_from(&resolution.supposed);
            for step in &resolution.steps {
                state.note(Place::Dns, step.clone());
            }
        }
        let asked = match unjudged::at(engine, client, *address, flow.protocol) {
            Some(unjudged) => vec![unjudged.exchange(client.place(), state)],
            None => {
                let named = target.resolved.as_ref().and_then(|_| flow.to.host());
                let named = named.map(|host| (host.to_string(), address.ip()));
                let named = named.or_else(|| target.request.named.clone());
                let request = Request { named, ..target.request.clone() };
                call::make(walk, client, &request, state)?
            }
        };
        for mut exchange in asked {
            exchange.share = exchange.share.split(target.addresses.len());
            exchanges.push(exchange);
        }
    }
    Ok(exchanges)
}
