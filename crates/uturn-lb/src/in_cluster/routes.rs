//! Rules of routes that are attached to Gateways.

use uturn_model::controller::ControllerListener;
use uturn_model::gateway::{AttachedRoute, RouteBackend, RouteListener, RouteRedirect};
use uturn_model::ingress::{Backend, BackendPort};
use uturn_model::lb::{ListenerProtocol, Redirect};
use uturn_model::{Ingress, IngressController, Port, Text};

use super::{ControllerRule, Leads, RuleBackend};
use crate::cloud::{HTTP, HTTPS, aimed};
use crate::ingress_call::IngressCall;

/// A redirect of a rule, at a port of the controller's pods.
pub(super) fn redirected(
    redirect: &RouteRedirect,
    at: &ControllerListener,
    rule: &ControllerRule,
) -> Redirect {
    let called = at.services.iter().map(|(_, port)| *port);
    let is_own = |port: &Port| rule.ports.as_ref().is_some_and(|ports| ports.contains(port));
    let port = called.chain([at.port]).find(is_own).unwrap_or(at.port);
    aimed(redirect, &RouteListener { port, tls: at.tls, hosts: Vec::new() })
}

/// The rules of a route that is attached to a Gateway.
pub(super) fn of_route(
    controller: &IngressController,
    ingress: &Ingress,
    route: &AttachedRoute,
) -> Vec<ControllerRule> {
    let ports = |host: Option<&Text>| -> Vec<Port> {
        let serves = |listener: &&RouteListener| {
            listener.hosts.iter().any(|own| own.as_deref() == host.map(|host| &**host))
        };
        route.listeners.iter().filter(serves).map(|listener| listener.port).collect()
    };
    let mut all = Vec::new();
    for (at, of_host) in ingress.rules.iter().enumerate() {
        let host = of_host.host.as_ref();
        for (number, path) in of_host.paths.iter().enumerate() {
            let (backends, redirect) = match &path.backend {
                Backend::Services(backends) => (backends.iter().map(leads).collect(), None),
                Backend::Redirect(redirect) => (Vec::new(), Some(redirect.clone())),
                Backend::Service { .. } | Backend::Resource(_) => {
                    (vec![RuleBackend { to: Leads::Elsewhere, weight: 1 }], None)
                }
            };
            all.push(ControllerRule {
                host: host.map(any_below),
                path: Some((path.path.clone(), path.kind)),
                place: Some((at, number)),
                backends,
                ports: Some(ports(host)),
                redirect,
                tls: false,
                behaviour: controller.behaviour.clone(),
                speaks_tls: false,
                unknown: None,
                owner: ingress.object(),
            });
        }
    }
    all
}

fn leads(backend: &RouteBackend) -> RuleBackend {
    let RouteBackend { service, port, weight, is_granted } = backend;
    let to = match is_granted {
        Some(true) => Leads::Service(service.clone(), BackendPort::Number(*port)),
        Some(false) => Leads::Nowhere(service.clone()),
        None => Leads::Doubtful(service.clone()),
    };
    RuleBackend { to, weight: *weight }
}

/// A host of a route: there a star stands for any number of labels.
fn any_below(host: &Text) -> Text {
    match host.strip_prefix('*') {
        Some(rest) => format!("~^.+{}$", rest.replace('.', "\\.")).into(),
        None => host.clone(),
    }
}

/// Completes a call of a route: at the first listener of its Gateway that serves the host, one with TLS
/// before others.
pub(crate) fn call(route: &AttachedRoute, host: Option<&Text>, path: Option<&Text>) -> IngressCall {
    let serves = |listener: &&RouteListener| listener.hosts.iter().any(|own| own.as_ref() == host);
    let own = || route.listeners.iter().filter(serves);
    let found = own().find(|listener| listener.tls).or_else(|| own().next());
    let found = found.or_else(|| route.listeners.first());
    let tls = found.is_some_and(|listener| listener.tls);
    IngressCall {
        host: host.cloned(),
        path: path.cloned(),
        port: found.map_or(if tls { HTTPS } else { HTTP }, |listener| listener.port),
        protocol: if tls { ListenerProtocol::Https } else { ListenerProtocol::Http },
    }
}
