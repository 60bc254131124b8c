//! Scaleway: a proxy in front of node ports.

mod remedies;

use uturn_model::lb::{ListenerProtocol, ProxyVersion};
use uturn_model::service::ServicePort;
use uturn_model::{Family, Service};

use super::{Annotation, CloudEntry, Markers, PortPlan, Product, SourceRanges, ValueKind};
use crate::cloud::StatusEntry;
use crate::cloud::product::mode_by_header;
use crate::cloud::product::{plain_protocol, proxying};
use crate::cloud::values::{lists_port, names_port};

const NAME: &str = "Scaleway Load Balancer";

/// The description of Scaleway.
pub static ENTRY: CloudEntry = CloudEntry {
    annotations: &[READ],
    products: &[&Balancer],
    remedies: remedies::remedies,
    samples: &[&[("service.beta.kubernetes.io/scw-loadbalancer-proxy-protocol-v2", "*")]],
    ..CloudEntry::recognised(
        "scaleway",
        "Scaleway",
        Markers {
            provider_ids: &["scaleway://"],
            service_keys: &["service.beta.kubernetes.io/scw-"],
            host_names: &[(".scw.cloud", "Scaleway")],
            service_product: |_| Some(NAME),
            ..Markers::NONE
        },
    )
};

/// A load balancer of Scaleway.
struct Balancer;

impl Product for Balancer {
    fn name(&self) -> &'static str {
        NAME
    }

    fn writes(&self, service: &Service) -> StatusEntry {
        mode_by_header(self, service)
    }

    /// The controller writes the source ranges into access rules, with the addresses of the nodes.
    fn source_ranges(&self, _: &Service) -> SourceRanges {
        SourceRanges::AppliedWithNodes
    }

    fn port(&self, service: &Service, port: &ServicePort, family: Family) -> Option<PortPlan> {
        let number = port.port.number();
        let is_http = names_port(service, PROTOCOL_HTTP, number);
        let protocol = match (plain_protocol(port), is_http, has_certificate(service, number)) {
            (ListenerProtocol::Tcp, true, true) => ListenerProtocol::Https,
            (ListenerProtocol::Tcp, true, false) => ListenerProtocol::Http,
            (ListenerProtocol::Tcp, false, true) => ListenerProtocol::TcpSsl,
            (plain, ..) => plain,
        };
        let mut plan = proxying(NAME, service, protocol, family);
        let asks = |key| names_port(service, key, number);
        plan.profile.proxy_header = if asks(PROXY_V1) {
            Some(ProxyVersion::V1)
        } else {
            PROXY_V2.into_iter().any(asks).then_some(ProxyVersion::V2)
        };
        plan.profile.next_target =
            service.annotations.get(REDISPATCH).is_some_and(|times| times.trim() == "1");
        Some(plan)
    }
}

/// Returns whether a port has certificates: certificates without a prefix of ports are for all
/// ports.
fn has_certificate(service: &Service, port: u16) -> bool {
    let value = service.annotations.get(CERTIFICATES).unwrap_or_default();
    value
        .split(';')
        .filter(|part| !part.trim().is_empty())
        .any(|part| part.split_once(':').is_none_or(|(ports, _)| lists_port(ports, port)))
}

const PROTOCOL_HTTP: &str = "service.beta.kubernetes.io/scw-loadbalancer-protocol-http";
const PROXY_V1: &str = "service.beta.kubernetes.io/scw-loadbalancer-proxy-protocol-v1";
/// The annotations with the ports that get a PROXY header of version 2, the older key last.
const PROXY_V2: [&str; 2] = [
    "service.beta.kubernetes.io/scw-loadbalancer-proxy-protocol-v2",
    "service.beta.kubernetes.io/scw-loadbalancer-send-proxy-v2",
];
/// The annotation with certificates, for all ports or with the ports that have them as a prefix.
const CERTIFICATES: &str = "service.beta.kubernetes.io/scw-loadbalancer-certificate-ids";
/// The annotation that, if `1`, makes a connection that fails go to another target.
const REDISPATCH: &str = "service.beta.kubernetes.io/scw-loadbalancer-redispatch-attempt-count";

/// The annotations that are read, with the kinds of their values.
const READ: &[Annotation] = &[
    Annotation::new(PROTOCOL_HTTP, ValueKind::Ports),
    Annotation::new(PROXY_V1, ValueKind::Ports),
    Annotation::new(PROXY_V2[0], ValueKind::Ports),
    Annotation::new(PROXY_V2[1], ValueKind::Ports),
    Annotation::new(CERTIFICATES, ValueKind::Names),
    Annotation::new(REDISPATCH, ValueKind::Names),
    Annotation::new(remedies::IP_MODE, ValueKind::Words(&["Proxy", "VIP"])),
    Annotation::new(remedies::USE_NAME, ValueKind::Switch),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cloud::product::tests::{plan_of, service};

    #[test]
    fn lists_tell_which_ports_have_what() {
        let of =
            |notes: &[(&str, &str)], port| plan_of(&Balancer, &service(notes, &[80, 443]), port);
        let header = |value, port| of(&[(PROXY_V2[0], value)], port).profile.proxy_header;
        assert_eq!((header("443", 443), header("443", 80)), (Some(ProxyVersion::V2), None));
        assert_eq!(header("80, 443", 80), Some(ProxyVersion::V2));
        assert_eq!((header("*", 80), header("false", 80)), (Some(ProxyVersion::V2), None));
        assert_eq!(of(&[(PROXY_V1, "true")], 80).profile.proxy_header, Some(ProxyVersion::V1));
        let ends = |value, port| of(&[(CERTIFICATES, value)], port).protocol.ends_tls();
        assert!(ends("6f2c", 80) && ends("443:6f2c,77ab", 443) && !ends("443:6f2c", 80));
    }
}
