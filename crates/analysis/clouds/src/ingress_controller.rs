//! The treatment of requests by ingress controllers in the cluster: which rule serves a request,
//! and to which endpoints the pods of the controller may connect.
//!
//! A controller's pod opens its own connection to an endpoint of the Service of the rule. The model
//! assumes that it tries different endpoints, with every order equally likely: its workers take
//! turns independently of each other.

mod annotations;
mod dial;
mod ingress;
pub(crate) mod routes;
mod rule;
mod serve;

use std::net::IpAddr;

use uturn_model::controller::ControllerListener;
use uturn_model::lb::ListenerProtocol;
use uturn_model::{Cluster, Ingress, IngressController, NamespacedName, Port, Text};

pub use dial::{Dialled, Failure, dialled, given_up};
pub use rule::{BackendRef, ControllerRule, RuleBackend};
pub use serve::{ControllerRules, RoutingResult};

use crate::addresses::addresses;
use crate::cloud::{HTTP, HTTPS, Owner};
use crate::ingress_call::IngressCall;
use uturn_lb::rules;

/// Completes a call of an Ingress that a controller in the cluster serves: with TLS if the host has
/// TLS, at the port of the Service that has the Ingress's address.
pub fn call(
    cluster: &Cluster,
    controller: &IngressController,
    ingress: &Ingress,
    host: Option<&Text>,
    path: Option<&Text>,
) -> IngressCall {
    let rule = ingress.rule_for(host, path);
    let host = host.or_else(|| rule?.host.as_ref());
    let path = path.or_else(|| Some(&rule?.paths.first()?.path));
    if let Some(route) = &ingress.route {
        let call = routes::call(route, host, path);
        return at_node(cluster, controller, ingress, call);
    }
    let mut hosts = ingress.tls.iter().flat_map(|tls| &tls.hosts);
    let has_tls = host.is_some_and(|host| hosts.any(|known| rules::is_for_host(known, host)));
    let vip = address(cluster, ingress);
    let at_address = |name: &NamespacedName| has_address(cluster, name, vip);
    let is_at_nodes = is_at_nodes(cluster, controller, vip);
    let read = annotations::read(controller, ingress);
    let is_its = |listener: &ControllerListener, tls: bool| match &listener.entry_point {
        Some(entry) => {
            rule::has_rule(entry, read.entry_points.as_deref())
                && rule::speaks_tls(entry, read.asks_for_tls) == tls
        }
        None => listener.tls == tls,
    };
    let port_for = |tls: bool| {
        let listeners = controller.listeners.iter().filter(|listener| is_its(listener, tls));
        let usual = if tls { HTTPS } else { HTTP };
        let all: Vec<Port> = if is_at_nodes {
            listeners.filter_map(|listener| listener.at_nodes).collect()
        } else {
            let services = listeners.flat_map(|listener| &listener.services);
            services.filter(|(name, _)| at_address(name)).map(|(_, port)| *port).collect()
        };
        all.iter().copied().find(|port| *port == usual).or(all.first().copied())
    };
    let is_served = |tls: bool| port_for(tls).is_some();
    let has_entry_points = controller.listeners.iter().any(|own| own.entry_point.is_some());
    let tls = if (has_tls && !read.is_plain_only) || read.asks_for_tls || read.is_tls_only {
        is_served(true) || !is_served(false)
    } else {
        has_entry_points && is_served(true) && !is_served(false)
    };
    IngressCall {
        host: host.cloned(),
        path: path.cloned(),
        port: port_for(tls).unwrap_or(if tls { HTTPS } else { HTTP }),
        protocol: if tls { ListenerProtocol::Https } else { ListenerProtocol::Http },
    }
}

/// Returns the first address of an Ingress.
fn address(cluster: &Cluster, ingress: &Ingress) -> Option<IpAddr> {
    addresses(cluster, Owner::Ingress(ingress)).first().map(|first| first.address)
}

/// Returns whether a Service has an address, or its load balancer has it.
fn has_address(cluster: &Cluster, name: &NamespacedName, vip: Option<IpAddr>) -> bool {
    let (Some(vip), Some(service)) = (vip, cluster.services.get(name)) else { return false };
    let mut all = addresses(cluster, Owner::Service(service)).into_iter();
    service.has_address(vip) || all.any(|at| at.address == vip)
}

/// Returns whether an address is one at which nodes lead to a controller: none of the controller's
/// Services has it.
fn is_at_nodes(cluster: &Cluster, controller: &IngressController, vip: Option<IpAddr>) -> bool {
    let mut services = controller.listeners.iter().flat_map(|listener| &listener.services);
    vip.is_some()
        && controller.listeners.iter().any(|listener| listener.at_nodes.is_some())
        && !services.any(|(name, _)| has_address(cluster, name, vip))
}

/// Returns the call of a route with the port at which nodes lead to its listener, if the route has a
/// node's address.
pub(crate) fn at_node(
    cluster: &Cluster,
    controller: &IngressController,
    ingress: &Ingress,
    call: IngressCall,
) -> IngressCall {
    if !is_at_nodes(cluster, controller, address(cluster, ingress)) {
        return call;
    }
    let leads = |listener: &&ControllerListener| {
        let mut ports = listener.services.iter().map(|(_, port)| *port);
        listener.port == call.port || ports.any(|port| port == call.port)
    };
    let found = controller.listeners.iter().find(leads);
    let port = found.and_then(|listener| listener.at_nodes).unwrap_or(call.port);
    IngressCall { port, ..call }
}
