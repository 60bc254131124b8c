//! Rules of routes that are attached to Gateways.

use uturn_model::controller::ControllerListener;
use uturn_model::gateway::{AttachedRoute, RouteBackend, RouteListener, RouteRedirect};
use uturn_model::ingress::{Backend, BackendPort};
use uturn_model::lb::{ListenerProtocol, Redirect};
use uturn_model::{Ingress, IngressController, Port, Text};

use super::{BackendRef, ControllerRule, RuleBackend};
use crate::cloud::{HTTP, HTTPS, aimed};
use crate::ingress_call::IngressCall;

/// Completes a redirect of a rule for a port of the controller's pods.
pub(super) fn redirected(
    redirect: &RouteRedirect,
    at: &ControllerListener,
    rule: Option<&ControllerRule>,
) -> Redirect {
    let called = at.services.iter().map(|(_, port)| *port);
    let ports = rule.and_then(|rule| rule.ports.as_ref());
    let is_own = |port: &Port| ports.is_some_and(|ports| ports.contains(port));
    let port = called.chain([at.port]).find(is_own).unwrap_or(at.port);
    aimed(redirect, &RouteListener { port, tls: at.tls, hosts: Vec::new() })
}

/// Returns the rules of a route that is attached to a Gateway.
pub(super) fn rules_of(
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
    let is_of_connections = route.is_of_connections();
    let mut behaviour = controller.behaviour.clone();
    if is_of_connections {
        behaviour.tries = behaviour.connection_tries;
    }
    let mut all = Vec::new();
    for (at, of_host) in ingress.rules.iter().enumerate() {
        let host = of_host.host.as_ref();
        for (number, path) in of_host.paths.iter().enumerate() {
            let (backends, redirect) = match &path.backend {
                Backend::Services(backends) => (backends.iter().map(backend_ref).collect(), None),
                Backend::Redirect(redirect) => (Vec::new(), Some(redirect.clone())),
                Backend::Service { .. } | Backend::Resource(_) => {
                    (vec![RuleBackend { to: BackendRef::Other, weight: 1 }], None)
                }
            };
            all.push(ControllerRule {
                host: host.map(any_below),
                path: Some((path.path.clone(), path.kind)),
                place: Some((at, number)),
                backends,
                ports: Some(ports(host)),
                entry_points: None,
                asks_for_tls: false,
                is_plain_only: false,
                is_of_connections,
                redirect,
                tls: false,
                behaviour: behaviour.clone(),
                backend_tls: false,
                unknown: route.doubt.clone(),
                owner: ingress.object(),
            });
        }
    }
    all
}

fn backend_ref(backend: &RouteBackend) -> RuleBackend {
    let RouteBackend { service, port, weight, is_granted } = backend;
    let to = match is_granted {
        Some(true) => BackendRef::Service(service.clone(), BackendPort::Number(*port)),
        Some(false) => BackendRef::NotGranted(service.clone()),
        None => BackendRef::GrantUnknown(service.clone()),
    };
    RuleBackend { to, weight: *weight }
}

/// Converts a host of a route to a regular expression: its wildcard matches any number of labels.
fn any_below(host: &Text) -> Text {
    match host.strip_prefix('*') {
        Some(rest) => format!("~^.+{}$", rest.replace('.', "\\.")).into(),
        None => host.clone(),
    }
}

/// Completes a call of a route: at the first listener of its Gateway that serves the host, with TLS
/// if possible.
pub(crate) fn call(route: &AttachedRoute, host: Option<&Text>, path: Option<&Text>) -> IngressCall {
    let serves = |listener: &&RouteListener| listener.hosts.iter().any(|own| own.as_ref() == host);
    let own = || route.listeners.iter().filter(serves);
    let found = if route.is_of_connections() {
        own().next()
    } else {
        own().find(|listener| listener.tls).or_else(|| own().next())
    };
    called(route, found.or_else(|| route.listeners.first()), host, path)
}

/// Completes a call of a route at one of its listeners.
pub(crate) fn call_at(
    route: &AttachedRoute,
    port: Port,
    host: Option<&Text>,
    path: Option<&Text>,
) -> Option<IngressCall> {
    let found = route.listeners.iter().find(|listener| listener.port == port)?;
    Some(called(route, Some(found), host, path))
}

fn called(
    route: &AttachedRoute,
    at: Option<&RouteListener>,
    host: Option<&Text>,
    path: Option<&Text>,
) -> IngressCall {
    let tls = at.is_some_and(|listener| listener.tls);
    IngressCall {
        host: host.cloned(),
        path: path.cloned().filter(|_| !route.is_of_connections()),
        port: at.map_or(if tls { HTTPS } else { HTTP }, |listener| listener.port),
        protocol: match (route.is_of_connections(), tls) {
            (true, true) => ListenerProtocol::TcpSsl,
            (true, false) => ListenerProtocol::Tcp,
            (false, true) => ListenerProtocol::Https,
            (false, false) => ListenerProtocol::Http,
        },
    }
}
