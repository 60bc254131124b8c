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
        return routes::call(route, host, path);
    }
    let mut hosts = ingress.tls.iter().flat_map(|tls| &tls.hosts);
    let has_tls = host.is_some_and(|host| hosts.any(|known| rules::is_for_host(known, host)));
    let own = addresses(cluster, Owner::Ingress(ingress));
    let vip = own.first().map(|first| first.address);
    let at_address = |name: &NamespacedName| {
        let (Some(vip), Some(service)) = (vip, cluster.services.get(name)) else { return false };
        let mut all = addresses(cluster, Owner::Service(service)).into_iter();
        service.has_address(vip) || all.any(|at| at.address == vip)
    };
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
        let services = listeners.flat_map(|listener| &listener.services);
        let mut ports = services.filter(|(name, _)| at_address(name)).map(|(_, port)| *port);
        let usual = if tls { HTTPS } else { HTTP };
        let all: Vec<Port> = ports.by_ref().collect();
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
