//! The listeners and rules that an Ingress asks for.

use uturn_model::gateway::{AttachedRoute, RouteListener, RouteRedirect};
use uturn_model::ingress::{Backend, IngressPath, IngressRule, PathKind};
use uturn_model::lb::{ListenerProtocol, Redirect};
use uturn_model::{Ingress, Port, Text};

/// A listener that an Ingress asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct WantedListener<'a> {
    /// The port of the listener.
    pub port: Port,
    /// The protocol of the listener.
    pub protocol: ListenerProtocol,
    /// The rules of the listener, in order.
    pub rules: Vec<WantedRule<'a>>,
}

/// A rule of a listener that an Ingress asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct WantedRule<'a> {
    /// The host; `None` for every host.
    pub host: Option<Text>,
    /// The path; `None` for every path.
    pub path: Option<(Text, PathKind)>,
    /// The action of the rule.
    pub action: RuleAction<'a>,
}

/// The action of a listener on a request.
#[derive(Clone, Debug, PartialEq)]
pub enum RuleAction<'a> {
    /// Forwards the request to a backend.
    Serve(&'a Backend),
    /// Answers with a redirect to another address.
    Redirect(Redirect),
}

impl RuleAction<'_> {
    /// Returns whether a backend serves the request.
    pub fn is_served(&self) -> bool {
        matches!(self, Self::Serve(_))
    }
}

/// Returns the rules of an Ingress as they are written, the default backend last.
pub(crate) fn rules(ingress: &Ingress) -> Vec<WantedRule<'_>> {
    let mut all = Vec::new();
    for rule in &ingress.rules {
        for path in &rule.paths {
            all.push(WantedRule {
                host: rule.host.clone(),
                path: Some((path.path.clone(), path.kind)),
                action: RuleAction::Serve(&path.backend),
            });
        }
    }
    if let Some(backend) = &ingress.default_backend {
        all.push(WantedRule { host: None, path: None, action: RuleAction::Serve(backend) });
    }
    all
}

/// Returns the listeners to which a route is attached, with the route's rules for each.
pub(crate) fn of_route<'i>(ingress: &'i Ingress, route: &AttachedRoute) -> Vec<WantedListener<'i>> {
    let rules = |at: &RouteListener| -> Vec<WantedRule<'i>> {
        let of_host = ingress.rules.iter().filter(|rule| at.hosts.contains(&rule.host));
        let paths = of_host.flat_map(|rule| rule.paths.iter().map(move |path| (rule, path)));
        let rule = |(rule, path): (&'i IngressRule, &'i IngressPath)| WantedRule {
            host: rule.host.clone(),
            path: Some((path.path.clone(), path.kind)),
            action: match &path.backend {
                Backend::Redirect(redirect) => RuleAction::Redirect(aimed(redirect, at)),
                backend => RuleAction::Serve(backend),
            },
        };
        paths.map(rule).collect()
    };
    let listener = |at: &RouteListener| WantedListener {
        port: at.port,
        protocol: match (route.is_of_connections(), at.tls) {
            (true, true) => ListenerProtocol::TcpSsl,
            (true, false) => ListenerProtocol::Tcp,
            (false, true) => ListenerProtocol::Https,
            (false, false) => ListenerProtocol::Http,
        },
        rules: rules(at),
    };
    route.listeners.iter().map(listener).collect()
}

/// Completes a redirect for a listener: the redirect may leave its scheme and port to the request.
pub(crate) fn aimed(redirect: &RouteRedirect, at: &RouteListener) -> Redirect {
    let usual = match redirect.tls {
        Some(true) => HTTPS,
        Some(false) => HTTP,
        None => at.port,
    };
    Redirect {
        code: redirect.code,
        tls: redirect.tls.unwrap_or(at.tls),
        host: redirect.host.clone(),
        port: redirect.port.unwrap_or(usual),
        path: None,
    }
}

/// Returns the listener of an Ingress without a modelled controller: HTTPS on port 443 if the
/// Ingress has TLS, otherwise HTTP on port 80.
pub(crate) fn plain(ingress: &Ingress) -> Vec<WantedListener<'_>> {
    let (port, protocol) = if ingress.tls.is_empty() {
        (HTTP, ListenerProtocol::Http)
    } else {
        (HTTPS, ListenerProtocol::Https)
    };
    vec![WantedListener { port, protocol, rules: rules(ingress) }]
}

pub(crate) const HTTP: Port = Port::new(80).expect("80 is not zero");
pub(crate) const HTTPS: Port = Port::new(443).expect("443 is not zero");
