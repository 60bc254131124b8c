//! Determines the listeners of a Gateway to which a route is attached, and the hosts that each
//! serves.

use uturn_model::gateway::RouteListener;
use uturn_model::{ObjectKind, Text};

use crate::decode::gateway::{AllowedFrom, Gateway, GatewayListener};
use crate::decode::gateway_route::{Parent, Route};
use crate::derive::Assumptions;

/// Returns the listeners to which a route is attached, and the reasons why others that it asks for
/// do not take it. References that its controller has not accepted are left out.
pub(super) fn listeners(
    route: &Route,
    gateway: &Gateway,
    assumptions: &mut Assumptions,
) -> (Vec<RouteListener>, Vec<Text>) {
    let mut all: Vec<RouteListener> = Vec::new();
    let mut refused: Vec<Text> = Vec::new();
    for parent in route.parents.iter().filter(|parent| parent.gateway == gateway.name) {
        let said = || route.statuses.iter().filter(|status| status.parent == *parent);
        let accepted = said().find_map(|status| status.accepted);
        let why = refusals(route, gateway, parent);
        if accepted == Some(false) {
            let reason = said().find_map(|status| status.refusal.clone()).unwrap_or_default();
            refused.push(if why.is_empty() {
                format!("its status says {reason}").into()
            } else {
                format!("{} ({reason})", why.join(", ")).into()
            });
            continue;
        }
        let known = all.len();
        for listener in gateway.listeners.iter().filter(|listener| is_meant(parent, listener)) {
            if !speaks(route.kind, listener) || !takes(listener, route.kind) {
                continue;
            }
            if let Some(reason) = &listener.refusal {
                let why = format!("listener {} is not accepted ({reason})", listener.name);
                refused.push(why.into());
                continue;
            }
            let is_allowed = match listener.from {
                AllowedFrom::All => true,
                AllowedFrom::Same => route.name.namespace == gateway.name.namespace,
                AllowedFrom::None => false,
                AllowedFrom::Selector => {
                    if accepted.is_none() {
                        assumptions.assume(
                            format!(
                                "whether Gateway {} takes {} {}",
                                gateway.name, route.kind, route.name
                            ),
                            "it does",
                            format!("listener {} selects namespaces by labels", listener.name),
                            "give the route's status",
                        );
                    }
                    true
                }
            };
            let hosts = match route.kind {
                ObjectKind::TcpRoute => vec![None],
                _ => hosts(&route.hostnames, listener.hostname.as_deref()),
            };
            if is_allowed && !hosts.is_empty() {
                if accepted.is_none() && route.kind != ObjectKind::HttpRoute {
                    suppose_served(route, gateway, assumptions);
                }
                let is = |word: &str| listener.protocol.eq_ignore_ascii_case(word);
                let tls = is("HTTPS") || is("TLS");
                all.push(RouteListener { port: listener.port, tls, hosts });
            }
        }
        // A controller that has accepted the route knows of a listener that takes it.
        if all.len() == known && accepted.is_none() && !why.is_empty() {
            refused.push(why.join(", ").into());
        }
    }
    refused.sort_unstable();
    refused.dedup();
    (merged(all), refused)
}

/// Returns why none of the listeners that a reference means takes a route, by what they say. Empty if
/// one of them does.
fn refusals(route: &Route, gateway: &Gateway, parent: &Parent) -> Vec<String> {
    let meant: Vec<&GatewayListener> =
        gateway.listeners.iter().filter(|listener| is_meant(parent, listener)).collect();
    if meant.is_empty() {
        return vec![match (&parent.section, parent.port) {
            (Some(section), _) => format!("it has no listener {section}"),
            (None, Some(port)) => format!("it has no listener of port {port}"),
            (None, None) => "it has no listener".to_owned(),
        }];
    }
    let why = meant.into_iter().map(|listener| {
        let what = if !speaks(route.kind, listener) {
            format!("speaks {}", listener.protocol)
        } else if !takes(listener, route.kind) {
            format!("takes {} only", listener.kinds.join(", "))
        } else if listener.from == AllowedFrom::None {
            "takes no routes".to_owned()
        } else if listener.from == AllowedFrom::Same
            && route.name.namespace != gateway.name.namespace
        {
            format!("takes routes of namespace {} only", gateway.name.namespace)
        } else if route.kind != ObjectKind::TcpRoute
            && hosts(&route.hostnames, listener.hostname.as_deref()).is_empty()
        {
            format!("is for {}", listener.hostname.as_deref().unwrap_or("*"))
        } else {
            return None;
        };
        Some(format!("listener {} {what}", listener.name))
    });
    why.collect::<Option<_>>().unwrap_or_default()
}

/// Assumes that the controller serves a route of this kind: not every controller does, and some do
/// only if they are configured to.
fn suppose_served(route: &Route, gateway: &Gateway, assumptions: &mut Assumptions) {
    assumptions.assume(
        format!("whether Gateway {} serves {} {}", gateway.name, route.kind, route.name),
        "it does",
        "nothing says that its controller has accepted the route",
        "give the route's status",
    );
}

/// Merges the listeners of each port: a port may have several, for different hosts.
fn merged(all: Vec<RouteListener>) -> Vec<RouteListener> {
    let mut merged: Vec<RouteListener> = Vec::new();
    for listener in all {
        match merged.iter_mut().find(|known| known.port == listener.port) {
            Some(known) => {
                let new = listener.hosts.into_iter().filter(|host| !known.hosts.contains(host));
                let new: Vec<_> = new.collect();
                known.hosts.extend(new);
            }
            None => merged.push(listener),
        }
    }
    merged
}

/// Returns whether a reference means a listener. Without a section and a port, it means all
/// listeners.
fn is_meant(parent: &Parent, listener: &GatewayListener) -> bool {
    parent.section.as_ref().is_none_or(|section| *section == listener.name)
        && parent.port.is_none_or(|port| port == listener.port)
}

/// Returns whether a listener's protocol is one for routes of this kind.
fn speaks(kind: ObjectKind, listener: &GatewayListener) -> bool {
    let is = |word: &str| listener.protocol.eq_ignore_ascii_case(word);
    match kind {
        ObjectKind::HttpRoute | ObjectKind::GrpcRoute => {
            is("HTTP") || (is("HTTPS") && !listener.passes_tls)
        }
        ObjectKind::TlsRoute => is("TLS"),
        _ => is("TCP") || (is("TLS") && !listener.passes_tls),
    }
}

/// Returns whether routes of a kind may attach to a listener.
fn takes(listener: &GatewayListener, kind: ObjectKind) -> bool {
    listener.kinds.is_empty() || listener.kinds.iter().any(|own| **own == *kind.as_str())
}

/// Returns the hosts of a route that a listener serves; `None` is every host.
fn hosts(own: &[Text], listener: Option<&str>) -> Vec<Option<Text>> {
    match (own, listener) {
        ([], None) => vec![None],
        ([], Some(host)) => vec![Some(host.into())],
        (own, None) => own.iter().cloned().map(Some).collect(),
        (own, Some(host)) => own.iter().filter_map(|own| both(own, host)).map(Some).collect(),
    }
}

/// Returns the narrower of two hosts that overlap, either of which may begin with a star. `None` if
/// they do not overlap.
fn both(one: &str, other: &str) -> Option<Text> {
    if one.eq_ignore_ascii_case(other) {
        return Some(one.into());
    }
    let is_below = |host: &str, wild: &str| {
        let (host, wild) = (host.to_ascii_lowercase(), wild.to_ascii_lowercase());
        let bare = host.strip_prefix('*').unwrap_or(&host).to_owned();
        wild.strip_prefix('*').is_some_and(|end| bare.ends_with(end) && bare.len() >= end.len())
    };
    if is_below(one, other) {
        return Some(one.into());
    }
    is_below(other, one).then(|| other.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_narrower_host_is_served() {
        for (one, other, meant) in [
            ("a.example.com", "a.example.com", Some("a.example.com")),
            ("a.example.com", "*.example.com", Some("a.example.com")),
            ("*.example.com", "a.b.example.com", Some("a.b.example.com")),
            ("*.b.example.com", "*.example.com", Some("*.b.example.com")),
            ("*.example.com", "example.com", None),
            ("a.example.com", "b.example.com", None),
            ("a.example.com", "*.example.org", None),
        ] {
            assert_eq!(both(one, other).as_deref(), meant, "{one} {other}");
        }
    }
}
