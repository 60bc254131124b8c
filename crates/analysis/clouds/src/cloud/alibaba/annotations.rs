//! The keys of the annotations that the controller reads, and lists within their values.

use uturn_model::Service;
use uturn_model::lb::{ListenerProtocol, ProxyVersion};
use uturn_model::service::ServicePort;

use crate::cloud::product::plain_protocol;
use crate::cloud::{Annotation, ValueKind};

/// The prefixes of each key, the older one last.
const PREFIXES: [&str; 2] = [
    "service.beta.kubernetes.io/alibaba-cloud-loadbalancer-",
    "service.beta.kubernetes.io/alicloud-loadbalancer-",
];

/// The annotation for the kind of targets: `eni` for pods' network interfaces, `ecs` for nodes.
pub(super) const BACKEND_TYPE: &str = "service.beta.kubernetes.io/backend-type";
/// The annotation that leaves a Service to another controller.
pub(super) const CLASS: &str = "service.beta.kubernetes.io/class";

/// The annotation with `nlb` if a Service without a class asks for a Network Load Balancer.
pub(super) const TYPE: &str = "type";
/// The annotation for the kind of address: `internet` or `intranet`.
const ADDRESS_TYPE: &str = "address-type";
/// The annotation for the protocols of listeners: `https:443,http:80`.
const PROTOCOL_PORT: &str = "protocol-port";
/// The annotation that, if `on`, begins connections to targets with a PROXY header.
pub(super) const PROXY_PROTOCOL: &str = "proxy-protocol";
/// The annotation that states whether a Network Load Balancer keeps the client's address: `on`,
/// `off`.
pub(super) const KEEPS_SOURCE: &str = "preserve-client-ip";
/// The annotation that states whether each address of a Network Load Balancer serves the targets of
/// all zones.
pub(super) const CROSS_ZONE: &str = "cross-zone-enabled";

/// Returns the value of an annotation with either prefix.
pub(super) fn get<'s>(service: &'s Service, key: &str) -> Option<&'s str> {
    let mut both = PREFIXES.iter().map(|prefix| service.annotations.get(&format!("{prefix}{key}")));
    both.find_map(|value| value.map(str::trim))
}

/// Returns a key with the current prefix.
pub(super) fn key(key: &str) -> String {
    format!("{}{key}", PREFIXES[0])
}

/// Returns the kind of targets that a Service asks for.
pub(super) fn backend_type(service: &Service) -> Option<&str> {
    service.annotations.get(BACKEND_TYPE).filter(|kind| !kind.is_empty())
}

/// Returns whether a Service asks for an address of the private network only.
pub(super) fn is_private(service: &Service) -> bool {
    get(service, ADDRESS_TYPE).is_some_and(|kind| kind.eq_ignore_ascii_case("intranet"))
}

/// Returns the protocol of the listener of a port.
pub(super) fn protocol(service: &Service, port: &ServicePort) -> ListenerProtocol {
    let listed = get(service, PROTOCOL_PORT).unwrap_or_default().split(',');
    let mut pairs = listed.filter_map(|pair| pair.trim().split_once(':'));
    let own = pairs.find(|(_, number)| number.trim().parse() == Ok(port.port.number()));
    let spoken = own.map(|(spoken, _)| spoken.trim().to_ascii_lowercase());
    match spoken.as_deref() {
        Some("https") => ListenerProtocol::Https,
        Some("http") => ListenerProtocol::Http,
        Some("tcpssl") => ListenerProtocol::TcpSsl,
        _ => plain_protocol(port),
    }
}

/// Returns the PROXY header of connections to targets. Listeners of HTTP send none.
pub(super) fn proxy_header(service: &Service, spoken: ListenerProtocol) -> Option<ProxyVersion> {
    let is_connection = matches!(spoken, ListenerProtocol::Tcp | ListenerProtocol::TcpSsl);
    let is_asked = get(service, PROXY_PROTOCOL) == Some("on");
    (is_connection && is_asked).then_some(ProxyVersion::V2)
}

/// The annotations without a prefix that are read, with the kinds of their values.
pub(super) const READ: &[Annotation] = &[
    Annotation::new(BACKEND_TYPE, ValueKind::Words(&["eni", "ecs"])),
    Annotation::new(CLASS, ValueKind::Names),
];

/// The annotations that can have either prefix, with the kinds of their values.
pub(super) const READ_BELOW: [&[Annotation]; 2] = [&below(PREFIXES[0]), &below(PREFIXES[1])];

const fn below(prefix: &'static str) -> [Annotation; 6] {
    const SPOKEN: &[&str] = &["https", "http", "tcpssl", "tcp", "udp"];
    [
        Annotation::below(prefix, TYPE, ValueKind::Words(&["nlb"])),
        Annotation::below(prefix, ADDRESS_TYPE, ValueKind::Words(&["internet", "intranet"])),
        Annotation::below(prefix, PROTOCOL_PORT, ValueKind::Words(SPOKEN)),
        Annotation::below(prefix, PROXY_PROTOCOL, ValueKind::Switch),
        Annotation::below(prefix, KEEPS_SOURCE, ValueKind::Switch),
        Annotation::below(prefix, CROSS_ZONE, ValueKind::Switch),
    ]
}

#[cfg(test)]
mod tests {
    use uturn_model::Protocol;

    use super::*;
    use crate::cloud::product::tests::{PORTS, service};

    #[test]
    fn either_prefix_is_read() {
        for prefix in PREFIXES {
            let asked = service(&[(&format!("{prefix}address-type"), "intranet")], &PORTS);
            assert!(is_private(&asked), "{prefix}");
        }
        assert!(!is_private(&service(&[], &PORTS)));
    }

    #[test]
    fn a_list_says_what_each_port_speaks() {
        let list = format!("{}{PROTOCOL_PORT}", PREFIXES[0]);
        let notes = [(&*list, "https:443, http:80,tcpssl:8443")];
        let mut asked = service(&notes, &[443, 80, 8443, 9000]);
        let spoken: Vec<_> = asked.ports.iter().map(|port| protocol(&asked, port)).collect();
        let expected = [
            ListenerProtocol::Https,
            ListenerProtocol::Http,
            ListenerProtocol::TcpSsl,
            ListenerProtocol::Tcp,
        ];
        assert_eq!(spoken, expected);
        asked.ports[3].protocol = Protocol::Udp;
        assert_eq!(protocol(&asked, &asked.ports[3]), ListenerProtocol::Udp);
    }
}
