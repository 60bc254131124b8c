//! Derives the ports on which a controller's pods take requests, and whether connections there
//! begin with a PROXY header.

use uturn_model::controller::{ControllerListener, ProxyExpectation, Takes};
use uturn_model::pod::{ContainerPort, PodSpec};
use uturn_model::service::{ServiceKind, TargetPort};
use uturn_model::{NamespacedName, Port, Protocol, Service};

use super::arguments::Arguments;
use super::candidate::Candidate;
use super::settings::Settings;
use super::{entry_points, istio};
use crate::decode::objects::Objects;

/// The purpose of a port, by its name and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// Requests without TLS.
    Plain,
    /// Requests with TLS.
    Tls,
    /// No requests: metrics, admission, administration.
    Other,
    /// Unknown: neither the name nor the number tells.
    Open,
}

/// A Service and one of its ports.
type ServicePort = (NamespacedName, Port);

/// Returns the ports of a controller's pods that take requests: those to which Services lead, and
/// those that the containers declare.
pub(super) fn listeners(
    candidate: &Candidate<'_>,
    objects: &Objects,
    arguments: &Arguments<'_>,
    settings: &Settings<'_>,
) -> Vec<ControllerListener> {
    let mut all: Vec<(Port, bool, Vec<ServicePort>)> = Vec::new();
    let mut add = |port: Port, tls: bool, service: Option<ServicePort>| match all
        .iter_mut()
        .find(|(known, ..)| *known == port)
    {
        Some((_, _, services)) => services.extend(service),
        None => all.push((port, tls, service.into_iter().collect())),
    };
    for declared in candidate.template.ports().filter(|port| port.protocol == Protocol::Tcp) {
        match use_of(declared.name.as_deref(), declared.port) {
            Use::Plain => add(declared.port, false, None),
            Use::Tls => add(declared.port, true, None),
            Use::Other | Use::Open => {}
        }
    }
    for service in services(candidate, objects) {
        for port in service.ports.iter().filter(|port| port.protocol == Protocol::Tcp) {
            let (number, name) = match &port.target {
                TargetPort::Number(number) => {
                    let declared = declared(candidate, *number);
                    (Some(*number), declared.and_then(|port| port.name.as_deref()))
                }
                TargetPort::Name(name) => {
                    (candidate.template.named_port(name, Protocol::Tcp), Some(&**name))
                }
            };
            let Some(number) = number else { continue };
            let by_target = use_of(name, number);
            let found = match by_target {
                Use::Open => use_of(port.name.as_deref(), port.port),
                known => known,
            };
            let own = Some((service.name.clone(), port.port));
            match found {
                Use::Plain => add(number, false, own),
                Use::Tls => add(number, true, own),
                Use::Other | Use::Open => {}
            }
        }
    }
    let listener = |(port, tls, services): (Port, bool, Vec<ServicePort>)| {
        let name = declared(candidate, port).and_then(|port| port.name.as_deref());
        let proxy_header = proxy_header(candidate, objects, arguments, settings, port, name);
        let entry_point = match candidate.product.name {
            "Traefik" => entry_points::at(arguments, port),
            _ => None,
        };
        let takes = Takes::Requests;
        let at_nodes = at_nodes(objects, candidate.template, port, &services);
        ControllerListener { port, tls, takes, proxy_header, entry_point, services, at_nodes }
    };
    all.into_iter().map(listener).collect()
}

/// Returns the port at which nodes lead to a port of pods with this spec, to which these Services
/// lead: the port itself in the nodes' network, a host port, or the only node port.
pub(super) fn at_nodes(
    objects: &Objects,
    spec: &PodSpec,
    port: Port,
    services: &[ServicePort],
) -> Option<Port> {
    if spec.host_network {
        return Some(port);
    }
    let declared = spec.ports().find(|own| own.port == port && own.protocol == Protocol::Tcp);
    if let Some(host_port) = declared.and_then(|own| own.host_port) {
        return Some(host_port);
    }
    let mut open = services.iter().filter_map(|(name, port)| {
        let service = objects.services.0.get(name)?;
        let own = service.ports.iter().find(|own| own.port == *port && own.node_port.is_some())?;
        Some((name, own.node_port?))
    });
    let (first, node_port) = open.next()?;
    open.all(|(name, _)| name == first).then_some(node_port)
}

/// Iterates over the Services that select a controller's pods.
pub(super) fn services<'o>(
    candidate: &Candidate<'_>,
    objects: &'o Objects,
) -> impl Iterator<Item = &'o Service> {
    objects.services.0.values().filter(move |service| {
        service.name.namespace == candidate.namespace
            && !matches!(service.kind, ServiceKind::ExternalName(_))
            && service
                .selector
                .as_ref()
                .is_some_and(|selector| selector.matches(&candidate.template.labels))
    })
}

fn declared<'c>(candidate: &'c Candidate<'_>, port: Port) -> Option<&'c ContainerPort> {
    candidate.template.ports().find(|declared| declared.port == port)
}

fn use_of(name: Option<&str>, port: Port) -> Use {
    const OTHER: [&str; 10] = [
        "webhook",
        "metrics",
        "admin",
        "status",
        "health",
        "stat",
        "prometheus",
        "dashboard",
        "traefik",
        "profil",
    ];
    let name = name.unwrap_or_default().to_ascii_lowercase();
    let begins = |words: &[&str]| words.iter().any(|word| name.starts_with(word));
    if OTHER.iter().any(|word| name.contains(word)) {
        return Use::Other;
    }
    let words =
        ["https", "websecure", "tls", "proxy-tls", "proxy-ssl", "kong-proxy-tls", "kong-proxy-ssl"];
    if begins(&words) {
        return Use::Tls;
    }
    if begins(&["http", "web", "proxy", "kong-proxy"]) {
        return Use::Plain;
    }
    match port.number() {
        443 | 8443 => Use::Tls,
        80 | 8080 => Use::Plain,
        _ => Use::Open,
    }
}

/// Returns whether a controller's pods expect a PROXY header on one of their ports.
fn proxy_header(
    candidate: &Candidate<'_>,
    objects: &Objects,
    arguments: &Arguments<'_>,
    settings: &Settings<'_>,
    port: Port,
    name: Option<&str>,
) -> ProxyExpectation {
    let missing =
        |name: &NamespacedName| ProxyExpectation::Unknown(format!("give ConfigMap {name}").into());
    match candidate.product.name {
        "ingress-nginx" => match settings {
            Settings::Missing(name) => missing(name),
            _ => required(settings.get("use-proxy-protocol").is_some_and(is_true)),
        },
        "NGINX Ingress Controller" => match settings {
            Settings::Missing(name) => missing(name),
            _ => required(settings.get("proxy-protocol").is_some_and(is_true)),
        },
        "HAProxy Ingress" => match settings {
            Settings::Missing(name) => missing(name),
            _ => required(settings.get("use-proxy-protocol").is_some_and(is_true)),
        },
        "HAProxy" => match settings {
            Settings::Missing(name) => missing(name),
            _ => match settings.get("proxy-protocol").map(entry_points::ranges) {
                None => ProxyExpectation::NotExpected,
                Some(Some(from)) => ProxyExpectation::Required(from),
                Some(None) => ProxyExpectation::Unknown("correct proxy-protocol".into()),
            },
        },
        "Contour" => required(arguments.is_on("use-proxy-protocol")),
        "Traefik" => entry_points::proxy_header(arguments, port, name),
        "Kong" => match arguments.variable("KONG_PROXY_LISTEN") {
            Some(listens) => kong(listens, port),
            None => ProxyExpectation::Unknown("KONG_PROXY_LISTEN is not given".into()),
        },
        "Istio" => istio::proxy_header(objects, &candidate.namespace, candidate.template, port),
        _ => ProxyExpectation::Unknown("its settings for that are not read".into()),
    }
}

/// Returns whether Kong expects a PROXY header on a port, by the value of KONG_PROXY_LISTEN:
/// `0.0.0.0:8000 reuseport, 0.0.0.0:8443 ssl proxy_protocol`.
fn kong(listens: &str, port: Port) -> ProxyExpectation {
    let at = |listen: &&str| {
        let address = listen.split_whitespace().next().unwrap_or_default();
        address.rsplit(':').next().and_then(|own| own.parse().ok()) == Some(port.number())
    };
    let own: Vec<&str> = listens.split(',').filter(at).collect();
    let asks = |listen: &&str| listen.split_whitespace().any(|word| word == "proxy_protocol");
    match (own.iter().any(asks), own.iter().all(asks)) {
        (true, true) => ProxyExpectation::Required(Vec::new()),
        (false, false) => ProxyExpectation::NotExpected,
        // Only some addresses of the port have the option, or none listens there.
        _ => ProxyExpectation::Unknown("KONG_PROXY_LISTEN does not say it of this port".into()),
    }
}

fn is_true(value: &str) -> bool {
    value.eq_ignore_ascii_case("true")
}

fn required(is_on: bool) -> ProxyExpectation {
    if is_on { ProxyExpectation::Required(Vec::new()) } else { ProxyExpectation::NotExpected }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_known_by_its_name_before_its_number() {
        let of = |name: &str, port: u16| {
            let name = Some(name).filter(|name| !name.is_empty());
            use_of(name, Port::new(port).unwrap())
        };
        assert_eq!(of("https", 80), Use::Tls);
        assert_eq!(of("http", 443), Use::Plain);
        assert_eq!(of("https-webhook", 443), Use::Other);
        assert_eq!(of("traefik", 8080), Use::Other);
        assert_eq!(of("websecure", 8000), Use::Tls);
        assert_eq!(of("", 8443), Use::Tls);
        assert_eq!(of("", 9000), Use::Open);
    }
}
