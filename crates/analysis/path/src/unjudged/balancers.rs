//! Flows that depend on a load balancer which is not modelled.

use std::net::{IpAddr, SocketAddr};

use uturn_clouds::controller::{self, BalancerCall};
use uturn_lb::rules::is_for_host;
use uturn_model::{Cluster, Destination, Evidence, Flow, Ingress};

use super::UnjudgedReason;
use crate::engine::Engine;
use crate::packet::Request;
use crate::unmodelled::{Unmodelled, unmodelled};

/// Returns why calls of this address cannot be judged, if an unmodelled load balancer has it.
/// Returns `None` for the address of a node: the node's rules decide there.
pub(crate) fn balancer(engine: &Engine<'_>, at: IpAddr) -> Option<UnjudgedReason> {
    if engine.node_at(at).is_some() {
        return None;
    }
    let by_name = || {
        let names = engine.cluster.dns.outside.iter().filter(|(_, ip)| *ip == at);
        names.map(|(name, _)| name).find_map(|name| host(engine.cluster, name))
    };
    find_balancer(engine.cluster, |balancer| {
        balancer.entries.iter().any(|entry| entry.ip == Some(at))
    })
    .or_else(by_name)
}

/// Returns the unmodelled controller that may listen on a node's own address, if no process is
/// known to: one whose Ingresses have that address.
pub(crate) fn on_node(cluster: &Cluster, at: SocketAddr) -> Option<UnjudgedReason> {
    let is_web = matches!(at.port(), 80 | 443);
    find_balancer(cluster, |balancer| {
        let has_it = balancer.entries.iter().any(|entry| entry.ip == Some(at.ip()));
        is_web && balancer.service.is_none() && has_it
    })
}

/// Returns why a flow whose destination has no address to call cannot be judged.
pub(crate) fn call(cluster: &Cluster, flow: &Flow) -> Option<UnjudgedReason> {
    if let Some(BalancerCall::WithoutAddress(service)) =
        BalancerCall::of(cluster, &flow.from, &flow.to)
    {
        let unknown = service.unjudged.iter().find(|unknown| unknown.is_of_balancer())?;
        return Some(UnjudgedReason::of(&service.object(), &service.origin, unknown));
    }
    match &flow.to {
        Destination::Url { host, .. } | Destination::Host(host, _) => {
            find_balancer(cluster, |balancer| balancer.is_called(host))
        }
        Destination::Ingress { name, .. } => {
            let ingress = cluster.ingresses.get(name)?;
            let unknown = ingress.unjudged.iter().find(|unknown| unknown.is_of_balancer())?;
            Some(UnjudgedReason::of(&ingress.object(), &ingress.origin, unknown))
        }
        Destination::Service(..) | Destination::Address(_) | Destination::Pod(..) => None,
    }
}

/// Returns the load balancer behind a host if it is not modelled and has no known address: the host
/// is its own name, or that of an object that it serves.
pub(crate) fn host(cluster: &Cluster, host: &str) -> Option<UnjudgedReason> {
    find_balancer(cluster, |balancer| balancer.is_called(host) || balancer.serves_by_name(host))
}

/// Returns why a call cannot be judged that leaves the cluster for the address of a name which an
/// Ingress of the cluster serves: the host there may lead back.
pub(crate) fn outside(cluster: &Cluster, request: &Request, to: IpAddr) -> Option<UnjudgedReason> {
    let (host, _) = request.named.as_ref().filter(|(_, address)| *address == to)?;
    let serves = |ingress: &&Ingress| {
        let mut hosts = ingress.rules.iter().filter_map(|rule| rule.host.as_deref());
        hosts.any(|own| is_for_host(own, host))
    };
    let ingress = cluster.ingresses.values().find(serves)?;
    // A cloud's load balancer that has only a name may have this address: it serves the host
    // with connections of its own.
    let is_named = ingress.load_balancer.iter().all(|entry| entry.ip.is_none());
    if is_named && controller::is_served_by_cloud(cluster, ingress) {
        return None;
    }
    let why =
        format!("{} serves {host}, and what has the address {to} is not given", ingress.object());
    Some(UnjudgedReason::not_given(why, Evidence::object(ingress.object(), ingress.origin.clone())))
}

/// Returns the first load balancer that is not modelled and for which `is_it` holds.
fn find_balancer(
    cluster: &Cluster,
    is_it: impl Fn(&Unmodelled<'_>) -> bool,
) -> Option<UnjudgedReason> {
    let found = unmodelled(cluster).find(|balancer| is_it(balancer))?;
    Some(UnjudgedReason::of(&found.object, found.origin, found.unknown))
}
