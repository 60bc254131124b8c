//! The ports on which a controller's pods take requests, and what begins a connection there.

use uturn_model::controller::{ControllerListener, ProxyExpectation};
use uturn_model::pod::ContainerPort;
use uturn_model::service::{ServiceKind, TargetPort};
use uturn_model::{IpNet, NamespacedName, Port, Protocol, Service};

use super::arguments::Arguments;
use super::candidate::Candidate;
use super::istio;
use super::settings::Settings;
use crate::decode::objects::Objects;

/// What a port is for, by its name and number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// Requests in the clear.
    Plain,
    /// Requests by TLS.
    Tls,
    /// No requests: measurements, admission, administration.
    Other,
    /// Neither tells.
    Open,
}

/// A Service and its port.
type ServicePort = (NamespacedName, Port);

/// The ports of a controller's pods that take requests: where Services lead, and those that the
/// containers declare.
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
    let listener = |(port, tls, services)| {
        let name = declared(candidate, port).and_then(|port| port.name.as_deref());
        let proxy_header = proxy_header(candidate, objects, arguments, settings, port, name);
        ControllerListener { port, tls, proxy_header, services }
    };
    all.into_iter().map(listener).collect()
}

/// The Services that select a controller's pods.
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
    if begins(&["https", "websecure", "tls", "proxy-tls", "kong-proxy-tls"]) {
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

/// What a controller's pods expect to begin a connection to one of their ports.
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
            _ => match settings.get("proxy-protocol").map(ranges) {
                None => ProxyExpectation::NotExpected,
                Some(Some(from)) => ProxyExpectation::Required(from),
                Some(None) => ProxyExpectation::Unknown("mend proxy-protocol".into()),
            },
        },
        "Contour" => required(arguments.is_on("use-proxy-protocol")),
        "Traefik" => entry_point(arguments, port, name),
        "Istio" => istio::proxy_header(objects, &candidate.namespace, candidate.template, port),
        _ => ProxyExpectation::Unknown("its settings for that are not read".into()),
    }
}

fn is_true(value: &str) -> bool {
    value.eq_ignore_ascii_case("true")
}

fn required(is_on: bool) -> ProxyExpectation {
    match is_on {
        true => ProxyExpectation::Required(Vec::new()),
        false => ProxyExpectation::NotExpected,
    }
}

/// What Traefik's entry point on a port accepts: it is called like the port of the container, or
/// has an address with its number.
fn entry_point(arguments: &Arguments<'_>, port: Port, name: Option<&str>) -> ProxyExpectation {
    let listens = |entry: &str| {
        let address = arguments.get(&format!("entrypoints.{entry}.address"));
        address.is_some_and(|address| {
            let address = address.split('/').next().unwrap_or(address);
            address.rsplit(':').next() == Some(&port.to_string())
        })
    };
    let usual = ["web", "websecure", "http", "https"];
    let entry = usual.into_iter().chain(name).find(|entry| listens(entry)).or(name);
    let Some(entry) = entry else {
        return ProxyExpectation::Unknown("which entry point listens there is not known".into());
    };
    let of = |what: &str| format!("entrypoints.{entry}.proxyprotocol.{what}");
    if arguments.is_on(&of("insecure")) {
        return ProxyExpectation::Accepted(Vec::new());
    }
    match arguments.get(&of("trustedips")).map(ranges) {
        None => ProxyExpectation::NotExpected,
        Some(Some(from)) => ProxyExpectation::Accepted(from),
        Some(None) => ProxyExpectation::Unknown(format!("mend {}", of("trustedips")).into()),
    }
}

/// Addresses and ranges with commas between; `None` if one is neither.
fn ranges(text: &str) -> Option<Vec<IpNet>> {
    let words = text.split([',', ' ', '\n']).map(str::trim).filter(|word| !word.is_empty());
    words
        .map(|word| {
            word.parse().ok().or_else(|| Some(IpNet::from(word.parse::<std::net::IpAddr>().ok()?)))
        })
        .collect()
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

    #[test]
    fn single_addresses_are_ranges_too() {
        let all = ranges("10.0.0.0/8, 192.0.2.1").unwrap();
        assert_eq!(all, ["10.0.0.0/8".parse().unwrap(), "192.0.2.1/32".parse().unwrap()]);
        assert_eq!(ranges("10.0.0.0/8,everyone"), None);
    }
}
