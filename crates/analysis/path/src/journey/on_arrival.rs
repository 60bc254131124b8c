//! A call that arrives at a node where another program serves Services in place of kube-proxy.
//!
//! Cilium translates the call before the node's own rules and routes see it. A call that it hands
//! to another node gets this node's address as its source, unless Cilium is set to keep the source.

use std::net::SocketAddr;

use uturn_model::proxy::Translates;
use uturn_model::route::{Leg, Place, Step, StepKind};
use uturn_model::service::Policy;
use uturn_model::{Family, Node, Pod, Service, ServiceProxy, Share};
use uturn_netfilter::Connection;

use crate::engine::Engine;
use crate::engine::walk::Walk;
use crate::error::WalkError;
use crate::journey::frontend::{self, Frontend, evidence, unjudged_proxy};
use crate::journey::interface;
use crate::packet::{Arrival, PacketState, Stop};
use crate::unjudged::UnjudgedReason;

/// The translated destination of a call.
enum ProxyTarget<'a> {
    /// One of these endpoints, each with its share.
    Endpoints(&'a Service, Vec<(Share, SocketAddr)>),
    /// The destination is not known.
    Unknown(UnjudgedReason),
}

/// Serves a call that arrives at a node; `None` if it is for no Service, or for kube-proxy.
pub(super) fn serve<'w>(
    walk: &'w Walk<'_, '_>,
    node: &'w Node,
    state: &PacketState,
) -> Result<Option<Vec<Arrival<'w>>>, WalkError> {
    let Some(proxy) = walk.cluster.proxy.replaced_by() else { return Ok(None) };
    let before = state.packet.leg();
    let (service, endpoints) = match served(walk, proxy, node, state) {
        None => return Ok(None),
        Some(ProxyTarget::Unknown(unjudged)) => {
            return Ok(Some(vec![unjudged.arrival(state.clone())]));
        }
        Some(ProxyTarget::Endpoints(service, endpoints)) => (service, endpoints),
    };
    let mut arrivals = Vec::new();
    for (share, endpoint) in &endpoints {
        let mut state = state.clone();
        state.share *= *share;
        state.chance |= endpoints.len() > 1;
        let own = node
            .address(Family::of(endpoint.ip()))
            .filter(|_| !is_here(walk.engine, node, *endpoint));
        let src = SocketAddr::new(own.unwrap_or(before.src.ip()), before.src.port());
        let after = Leg { src, dst: *endpoint };
        let place = || Place::Node(node.name.clone());
        state.note_unless_brief(place, || {
            let why = format!("{proxy} sends it to {endpoint}");
            Step::new(StepKind::Translate, why, evidence(service, proxy, false))
                .changing(before, after)
        });
        walk.check_endpoint(endpoint.ip())?;
        // The node's kernel keeps the translated connection.
        let reply = Leg { src: *endpoint, dst: src };
        let untranslated = Connection::untranslated(&state.packet);
        state.remember(&node.name, Connection { reply, ..untranslated });
        arrivals.extend(interface::at_card(walk, node, state)?);
    }
    Ok(Some(arrivals))
}

/// Returns what a call is translated to; `None` if the proxy does not serve its destination.
fn served<'w>(
    walk: &'w Walk<'_, '_>,
    proxy: ServiceProxy,
    node: &'w Node,
    state: &PacketState,
) -> Option<ProxyTarget<'w>> {
    let Leg { src, dst } = state.packet.leg();
    let (service, port, frontend) =
        frontend::at(walk.engine, dst, state.packet.connection_protocol())?;
    let settings = &walk.cluster.proxy;
    let is_modelled = match (frontend, proxy.translates()) {
        (Frontend::ClusterIp, _) => return None,
        (Frontend::NodePort | Frontend::Balancer, Translates::AtConnect) => true,
        (Frontend::Proxied, Translates::AtConnect) => {
            settings.replacement_reads_ip_mode() == Some(false)
        }
        _ => false,
    };
    let is_local = service.external_policy == Policy::Local;
    let home = Some(&node.name).filter(|_| is_local);
    let endpoints = frontend::endpoints_for(walk, service, port, Family::of(dst.ip()), home);
    let is_there = |(_, endpoint): &(Share, SocketAddr)| {
        walk.engine.pod_at(endpoint.ip()).is_some() || walk.engine.node_at(endpoint.ip()).is_some()
    };
    // Traffic that returns to the node that sent it out is not modelled, nor are endpoints that
    // represent others.
    let is_known = is_modelled
        && !settings.replacement_keeps_source
        && service.source_ranges.is_empty()
        && !is_here(walk.engine, node, src)
        && !endpoints.is_empty()
        && endpoints.iter().all(is_there);
    Some(if is_known {
        ProxyTarget::Endpoints(service, endpoints)
    } else {
        ProxyTarget::Unknown(unjudged_proxy(service, proxy))
    })
}

/// Returns whether an address belongs to the node itself or to one of its pods.
fn is_here(engine: &Engine<'_>, node: &Node, at: SocketAddr) -> bool {
    let is_own = |pod: &Pod| pod.node.as_ref() == Some(&node.name);
    node.has_address(at.ip())
        || node.local_addresses.contains(&at.ip())
        || node.tunnel_ips.contains(&at.ip())
        || engine.pod_at(at.ip()).is_some_and(is_own)
}

/// Follows a packet that a load balancer handed to a node unchanged, with the load balancer's own
/// address, which only the program in place of kube-proxy can know.
pub(super) fn handed_over<'w>(
    walk: &'w Walk<'_, '_>,
    node: &'w Node,
    state: PacketState,
) -> Result<Vec<Arrival<'w>>, WalkError> {
    let served = serve(walk, node, &state)?;
    Ok(served.unwrap_or_else(|| {
        let stop = Stop::Unknown(uturn_model::Mechanism::NotModelled);
        vec![Arrival { state, stop }]
    }))
}
