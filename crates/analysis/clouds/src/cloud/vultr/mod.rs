//! Vultr: a proxy in front of node ports.

mod remedies;

use uturn_model::lb::ProxyVersion;
use uturn_model::service::ServicePort;
use uturn_model::{Family, Service};

use super::{Annotation, CloudEntry, Markers, PortPlan, Product, ValueKind};
use crate::cloud::product::proxying;
use crate::cloud::values::{is_on, names_port, protocol_of};

const NAME: &str = "Vultr Load Balancer";

/// The description of Vultr.
pub static ENTRY: CloudEntry = CloudEntry {
    annotations: &[READ],
    products: &[&Balancer],
    remedies: remedies::remedies,
    samples: &[&[("service.beta.kubernetes.io/vultr-loadbalancer-proxy-protocol", "true")]],
    ..CloudEntry::recognised(
        "vultr",
        "Vultr",
        Markers {
            provider_ids: &["vultr://"],
            service_keys: &["service.beta.kubernetes.io/vultr-"],
            service_product: |_| Some(NAME),
            ..Markers::NONE
        },
    )
};

/// A load balancer of Vultr.
struct Balancer;

impl Product for Balancer {
    fn name(&self) -> &'static str {
        NAME
    }

    fn port(&self, service: &Service, port: &ServicePort, family: Family) -> Option<PortPlan> {
        let word = match names_port(service, HTTPS_PORTS, port.port.number()) {
            // The load balancer does not read TLS that it passes through.
            true if is_on(service, PASS_THROUGH) => None,
            true => Some("https"),
            false => service.annotations.get(PROTOCOL),
        };
        let protocol = protocol_of(word, port);
        let mut plan = proxying(NAME, service, protocol, family);
        plan.profile.proxy_header = is_on(service, PROXY_PROTOCOL).then_some(ProxyVersion::V1);
        Some(plan)
    }
}

/// The protocol of ports that no list names.
const PROTOCOL: &str = "service.beta.kubernetes.io/vultr-loadbalancer-protocol";
const HTTPS_PORTS: &str = "service.beta.kubernetes.io/vultr-loadbalancer-https-ports";
/// The switch that leaves TLS of the HTTPS ports to the servers.
const PASS_THROUGH: &str = "service.beta.kubernetes.io/vultr-loadbalancer-ssl-pass-through";
const PROXY_PROTOCOL: &str = "service.beta.kubernetes.io/vultr-loadbalancer-proxy-protocol";

/// The annotations that are read, with the kinds of their values.
const READ: &[Annotation] = &[
    Annotation::new(PROTOCOL, ValueKind::Words(&["http", "https", "tcp"])),
    Annotation::new(HTTPS_PORTS, ValueKind::Ports),
    Annotation::new(PASS_THROUGH, ValueKind::Switch),
    Annotation::new(PROXY_PROTOCOL, ValueKind::Switch),
    Annotation::new(remedies::HOST_NAME, ValueKind::Names),
];

#[cfg(test)]
mod tests {
    use uturn_model::lb::ListenerProtocol;

    use super::*;
    use crate::cloud::product::tests::{plan_of, service};

    #[test]
    fn tls_ends_at_listed_ports_unless_it_is_passed_through() {
        let of = |notes: &[(&str, &str)], port| {
            plan_of(&Balancer, &service(notes, &[80, 443]), port).protocol
        };
        let listed = (HTTPS_PORTS, "443");
        assert_eq!(of(&[listed], 443), ListenerProtocol::Https);
        assert_eq!(of(&[listed, (PROTOCOL, "http")], 80), ListenerProtocol::Http);
        assert_eq!(of(&[listed, (PASS_THROUGH, "true")], 443), ListenerProtocol::Tcp);
        assert_eq!(of(&[listed, (PASS_THROUGH, "false")], 443), ListenerProtocol::Https);
    }
}
