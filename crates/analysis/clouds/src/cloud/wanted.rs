//! What an Ingress asks a cloud's controller for.

use uturn_model::gateway::{AttachedRoute, RouteListener, RouteRedirect};
use uturn_model::ingress::{Backend, IngressPath, IngressRule, PathKind};
use uturn_model::lb::{ListenerProtocol, Redirect};
use uturn_model::{Ingress, Port, Text};

/// A listener that an Ingress asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct WantedListener<'a> {
    /// The port it listens on.
    pub port: Port,
    /// What it speaks.
    pub protocol: ListenerProtocol,
    /// What it does with which requests, in order.
    pub rules: Vec<WantedRule<'a>>,
}

/// A rule of such a listener.
#[derive(Clone, Debug, PartialEq)]
pub struct WantedRule<'a> {
    /// The host; none means every host.
    pub host: Option<Text>,
    /// The path; none means every path.
    pub path: Option<(Text, PathKind)>,
    /// What it does.
    pub action: RuleAction<'a>,
}

/// What a listener does with a request.
#[derive(Clone, Debug, PartialEq)]
pub enum RuleAction<'a> {
    /// Passes it to a backend.
    Serve(&'a Backend),
    /// Answers with another address.
    Redirect(Redirect),
}

impl RuleAction<'_> {
    /// Whether a backend serves the request.
    pub fn is_served(&self) -> bool {
        matches!(self, Self::Serve(_))
    }
}

/// The rules of an Ingress as they are written, the default backend last.
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

/// The listeners that a route is attached to, with its rules for each.
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

/// A redirect with what it leaves to the request at a listener.
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

/// The listener of an Ingress without a modelled controller: HTTPS at 443 if it has TLS, else
/// HTTP at 80.
pub(crate) fn plain(ingress: &Ingress) -> Vec<WantedListener<'_>> {
    let (port, protocol) = match ingress.tls.is_empty() {
        true => (HTTP, ListenerProtocol::Http),
        false => (HTTPS, ListenerProtocol::Https),
    };
    vec![WantedListener { port, protocol, rules: rules(ingress) }]
}

pub(crate) const HTTP: Port = Port::new(80).expect("80 is not zero");
pub(crate) const HTTPS: Port = Port::new(443).expect("443 is not zero");
