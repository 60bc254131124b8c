//! The Load Balancer: a proxy in front of node ports.

use uturn_model::lb::{ListenerProtocol, ProxyVersion};
use uturn_model::service::ServicePort;
use uturn_model::{Family, Protocol, Service};

use crate::cloud::product::{PortPlan, Product, proxying};
use crate::cloud::values::{is_on, names_port};
use crate::cloud::{Annotation, ValueKind};

pub(super) const NAME: &str = "Oracle Cloud Load Balancer";

const INTERNAL: &str = "service.beta.kubernetes.io/oci-load-balancer-internal";
const TLS_PORTS: &str = "service.beta.kubernetes.io/oci-load-balancer-ssl-ports";
/// The annotation for the protocol of listeners: `TCP`, `HTTP` or `GRPC`.
const PROTOCOL: &str = "service.beta.kubernetes.io/oci-load-balancer-backend-protocol";
const PROXY_PROTOCOL: &str =
    "service.beta.kubernetes.io/oci-load-balancer-connection-proxy-protocol-version";

/// The Load Balancer.
pub(super) struct Lb;

impl Product for Lb {
    fn name(&self) -> &'static str {
        NAME
    }

    fn is_private(&self, service: &Service) -> Option<bool> {
        Some(is_on(service, INTERNAL))
    }

    fn port(&self, service: &Service, port: &ServicePort, family: Family) -> Option<PortPlan> {
        if port.protocol != Protocol::Tcp {
            return None;
        }
        let spoken = service.annotations.get(PROTOCOL).unwrap_or_default().to_ascii_uppercase();
        let is_http = matches!(spoken.as_str(), "HTTP" | "GRPC");
        let protocol = match (is_http, names_port(service, TLS_PORTS, port.port.number())) {
            (true, true) => ListenerProtocol::Https,
            (true, false) => ListenerProtocol::Http,
            (false, true) => ListenerProtocol::TcpSsl,
            (false, false) => ListenerProtocol::Tcp,
        };
        let mut plan = proxying(NAME, service, protocol, family);
        plan.profile.health_check = Some(super::health_check(service));
        plan.profile.proxy_header = match service.annotations.get(PROXY_PROTOCOL) {
            Some("1") if !is_http => Some(ProxyVersion::V1),
            Some("2") if !is_http => Some(ProxyVersion::V2),
            _ => None,
        };
        Some(plan)
    }
}

/// The annotations that are read, with the kinds of their values.
pub(super) const READ: &[Annotation] = &[
    Annotation::new(INTERNAL, ValueKind::Switch),
    Annotation::new(TLS_PORTS, ValueKind::Ports),
    Annotation::new(PROTOCOL, ValueKind::Words(&["HTTP", "HTTP2", "GRPC", "TCP", "SSL"])),
    Annotation::new(PROXY_PROTOCOL, ValueKind::Names),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cloud::product::tests::{PORTS, plan_of, service};

    #[test]
    fn ports_end_tls_and_say_what_they_speak() {
        let asked = service(&[(TLS_PORTS, "443,8443"), (PROTOCOL, "http")], &PORTS);
        assert_eq!(plan_of(&Lb, &asked, 443).protocol, ListenerProtocol::Https);
        assert_eq!(plan_of(&Lb, &asked, 80).protocol, ListenerProtocol::Http);
        let mut plain = service(&[(TLS_PORTS, "443")], &PORTS);
        assert_eq!(plan_of(&Lb, &plain, 443).protocol, ListenerProtocol::TcpSsl);
        assert_eq!(plan_of(&Lb, &plain, 80).protocol, ListenerProtocol::Tcp);
        plain.ports[0].protocol = Protocol::Udp;
        assert!(Lb.port(&plain, &plain.ports[0], Family::V4).is_none());
    }

    #[test]
    fn only_connections_have_a_header() {
        let header =
            |annotations| plan_of(&Lb, &service(annotations, &PORTS), 80).profile.proxy_header;
        assert_eq!(header(&[]), None);
        assert_eq!(header(&[(PROXY_PROTOCOL, "1")]), Some(ProxyVersion::V1));
        assert_eq!(header(&[(PROXY_PROTOCOL, "2")]), Some(ProxyVersion::V2));
        assert_eq!(header(&[(PROXY_PROTOCOL, "2"), (PROTOCOL, "HTTP")]), None);
    }
}
