//! A call to a Service where another program serves Services in place of kube-proxy.
//!
//! A socket balancer replaces the address at `connect`, on the client's own node: the packet that
//! is sent has an endpoint's address from the beginning, and neither rules nor load balancers see
//! the Service's address. How such programs treat calls from outside is not modelled.

use std::net::SocketAddr;

use uturn_model::proxy::Translates;
use uturn_model::route::{Leg, Step, StepKind};
use uturn_model::service::{Policy, ServicePort};
use uturn_model::{
    Evidence, Family, Mechanism, Name, Outcome, Protocol, Service, ServiceProxy, Share,
};
use uturn_netfilter::IpProtocol;

use super::exchange;
use crate::engine::Engine;
use crate::engine::walk::Walk;
use crate::error::WalkError;
use crate::exchange::merge;
use crate::journey::frontend::{self, Frontend, evidence, unjudged_proxy};
use crate::packet::{Exchange, PacketState, Peer, Request, ended};
use crate::resolve;
use crate::unjudged::UnjudgedReason;

/// The translation of an address when a client connects to it.
enum Connected<'a> {
    /// The address is called unchanged.
    AsIs,
    /// The address is translated to one of these endpoints of a Service's port, each with its
    /// share.
    Endpoints(&'a Service, &'a ServicePort, Vec<(Share, SocketAddr)>),
    /// The Service has no endpoint.
    NoEndpoint(&'a Service),
    /// The translation is not known.
    Unknown(UnjudgedReason),
}

/// Sends a request to an address, or to what replaces it when the client connects.
pub(super) fn connect(
    walk: &Walk<'_, '_>,
    client: Peer<'_>,
    request: &Request,
    state: PacketState,
) -> Result<Vec<Exchange>, WalkError> {
    let to = state.packet.leg().dst;
    let protocol = state.packet.protocol();
    let Some(proxy) = walk.cluster.proxy.replaced_by() else {
        return match unjudged_beside(walk, client, to, protocol) {
            Some(unjudged) => Ok(vec![unjudged.exchange(client.place(), state)]),
            None => exchange(walk, client, request, state),
        };
    };
    match connected(walk, proxy, client, to, protocol) {
        Connected::AsIs => exchange(walk, client, request, state),
        Connected::Unknown(unjudged) => Ok(vec![unjudged.exchange(client.place(), state)]),
        Connected::NoEndpoint(service) => {
            let mut state = state;
            let why = format!("{proxy} has no endpoint for {to} and refuses to connect");
            let step = Step::new(StepKind::Reject, why, by(service, proxy));
            let leg = state.packet.leg();
            state.note(client.place(), step.seeing(leg));
            Ok(vec![ended(state, Outcome::Unreachable, Some(Mechanism::NoEndpoint))])
        }
        Connected::Endpoints(service, port, endpoints) => {
            let mut exchanges = Vec::new();
            let request = &Request { replaced: Some(to), ..request.clone() };
            for (share, endpoint) in &endpoints {
                let mut state = state.clone();
                state.share *= *share;
                state.chance |= endpoints.len() > 1;
                let before = state.packet.leg();
                let src = source_towards(walk.engine, client, *endpoint, before, port.protocol)?;
                let after = Leg { src, dst: *endpoint };
                let place = || client.place();
                state.note_unless_brief(place, || {
                    let why = format!("{proxy} connects to {endpoint}, not to {to}");
                    Step::new(StepKind::Translate, why, by(service, proxy)).changing(before, after)
                });
                state.packet = state.packet.with_leg(after);
                walk.check_endpoint(endpoint.ip())?;
                exchanges.extend(exchange(walk, client, request, state)?);
            }
            Ok(merge::alike(walk, exchanges))
        }
    }
}

/// Returns the source address of a packet to an endpoint. The kernel selects the route, and with it
/// the source, after the address was replaced: an address of the load balancer that the node holds
/// is not picked.
fn source_towards(
    engine: &Engine<'_>,
    client: Peer<'_>,
    endpoint: SocketAddr,
    before: Leg,
    protocol: Protocol,
) -> Result<SocketAddr, WalkError> {
    let Peer::Host(..) = client else { return Ok(before.src) };
    let source = resolve::source(engine, client, endpoint, protocol)?;
    Ok(source.map_or(before.src, |source| SocketAddr::new(source.ip(), before.src.port())))
}

/// Returns whether it is not known that calls of a load balancer's address are also served by other
/// nodes, while the client's node has no endpoint: policy Local is for calls from outside.
fn is_unsure_beyond(
    walk: &Walk<'_, '_>,
    service: &Service,
    port: &ServicePort,
    to: SocketAddr,
    node: Option<&Name>,
) -> bool {
    let family = Family::of(to.ip());
    service.external_policy == Policy::Local
        && walk.cluster.proxy.may_stay_on_node()
        && node.is_some_and(|node| {
            frontend::endpoints_for(walk, service, port, family, Some(node)).is_empty()
        })
}

/// Returns why a pod's call that a program beside kube-proxy handles cannot be judged.
fn unjudged_beside(
    walk: &Walk<'_, '_>,
    client: Peer<'_>,
    to: SocketAddr,
    protocol: IpProtocol,
) -> Option<UnjudgedReason> {
    let beside = walk.cluster.proxy.beside?;
    let Peer::Pod(pod) = client else { return None };
    let (service, port, frontend) = frontend::at(walk.engine, to, protocol)?;
    let is_unsure = frontend == Frontend::Balancer
        && is_unsure_beyond(walk, service, port, to, pod.node.as_ref());
    is_unsure.then(|| unjudged_policy(service, beside))
}

fn connected<'w>(
    walk: &'w Walk<'_, '_>,
    proxy: ServiceProxy,
    client: Peer<'w>,
    to: SocketAddr,
    protocol: IpProtocol,
) -> Connected<'w> {
    let node = match client {
        Peer::Pod(pod) => pod.node.as_ref(),
        Peer::Host(node, _) => Some(&node.name),
        // Their packets are translated later, on a node.
        Peer::Balancer(_) | Peer::Outside => return Connected::AsIs,
    };
    let Some((service, port, frontend)) = frontend::at(walk.engine, to, protocol) else {
        return Connected::AsIs;
    };
    let is_modelled = match (frontend, proxy.translates()) {
        (_, Translates::Nothing) => false,
        (Frontend::ClusterIp, _) => true,
        // Only an address of a node is replaced here; others are translated later.
        (Frontend::ExternalIp, _) | (_, Translates::ClusterIps) => false,
        // Source ranges hold for calls from outside only, and policies Local too.
        (Frontend::Balancer | Frontend::NodePort, Translates::AtConnect) => true,
        (Frontend::Proxied, Translates::AtConnect) => {
            match walk.cluster.proxy.replacement_reads_ip_mode() {
                Some(true) => return Connected::AsIs,
                Some(false) => true,
                None => return Connected::Unknown(unjudged_version(service, proxy)),
            }
        }
    };
    if !is_modelled {
        return Connected::Unknown(unjudged_proxy(service, proxy));
    }
    if frontend == Frontend::Balancer && is_unsure_beyond(walk, service, port, to, node) {
        return Connected::Unknown(unjudged_policy(service, proxy));
    }
    let is_local = frontend == Frontend::ClusterIp && service.internal_policy == Policy::Local;
    let home = node.filter(|_| is_local);
    let endpoints = frontend::endpoints_for(walk, service, port, Family::of(to.ip()), home);
    if endpoints.is_empty() {
        Connected::NoEndpoint(service)
    } else {
        Connected::Endpoints(service, port, endpoints)
    }
}

fn by(service: &Service, proxy: ServiceProxy) -> Evidence {
    evidence(service, proxy, proxy.translates() == Translates::AtConnect)
}

fn unjudged_policy(service: &Service, proxy: ServiceProxy) -> UnjudgedReason {
    let why = format!(
        "no endpoint is on this node, and whether {proxy} goes to others for a call from inside under \
         policy Local depends on its release"
    );
    UnjudgedReason::not_modelled(why, by(service, proxy))
}

fn unjudged_version(service: &Service, proxy: ServiceProxy) -> UnjudgedReason {
    let why = format!("{proxy} reads ipMode by its version, which is not given");
    UnjudgedReason::not_given(why, by(service, proxy))
}
