//! DigitalOcean: a proxy in front of node ports, or a network load balancer that keeps its address.

mod remedies;

use uturn_model::lb::{BehaviourAssumption, Delivery, ListenerProtocol, ProxyVersion, Source};
use uturn_model::service::ServicePort;
use uturn_model::{Family, Service};

use super::{Annotation, CloudEntry, Markers, PortPlan, Product, SourceRanges, ValueKind};
use crate::cloud::product::{plain_protocol, proxying};
use crate::cloud::values::{is_on, names_port, protocol_of};

const NAME: &str = "DigitalOcean Load Balancer";

/// The description of DigitalOcean.
pub static ENTRY: CloudEntry = CloudEntry {
    annotations: &[READ],
    products: &[&Balancer],
    remedies: remedies::remedies,
    samples: &[
        &[("service.beta.kubernetes.io/do-loadbalancer-enable-proxy-protocol", "true")],
        &[("service.beta.kubernetes.io/do-loadbalancer-type", "REGIONAL_NETWORK")],
        &[("service.beta.kubernetes.io/do-loadbalancer-protocol", "http")],
    ],
    ..CloudEntry::recognised(
        "digitalocean",
        "DigitalOcean",
        Markers {
            provider_ids: &["digitalocean://"],
            node_keys: &["doks.digitalocean.com/"],
            service_keys: &["service.beta.kubernetes.io/do-", "kubernetes.digitalocean.com/"],
            service_product: |_| Some(NAME),
            ..Markers::NONE
        },
    )
};

/// A load balancer of DigitalOcean.
struct Balancer;

impl Product for Balancer {
    fn name(&self) -> &'static str {
        NAME
    }

    /// The controller writes the source ranges into the load balancer's firewall.
    fn source_ranges(&self, _: &Service) -> SourceRanges {
        SourceRanges::Applied
    }

    fn port(&self, service: &Service, port: &ServicePort, family: Family) -> Option<PortPlan> {
        if service.annotations.get(TYPE) == Some("REGIONAL_NETWORK") {
            let mut plan = proxying(NAME, service, plain_protocol(port), family);
            plan.profile.source = Source::Kept;
            plan.profile.ends_connections = false;
            plan.profile.delivery = Delivery::KeepsAddress;
            plan.profile.assumption = Some(BehaviourAssumption::new(
                "it keeps the client's address and its own",
                "it sends to the port that clients call, not to a node port",
            ));
            return Some(plan);
        }
        let protocol = protocol(service, port);
        let mut plan = proxying(NAME, service, protocol, family);
        // Targets get plain HTTP wherever the load balancer ends TLS.
        plan.profile.target_tls = Some(false);
        let has_header = is_on(service, PROXY_PROTOCOL);
        plan.profile.proxy_header = has_header.then_some(ProxyVersion::V1);
        // Only the type REGIONAL terminates TLS, speaks HTTP or sends a header.
        let is_sure = service.annotations.get(TYPE).is_some()
            || has_header
            || matches!(protocol, ListenerProtocol::Http | ListenerProtocol::Https);
        plan.profile.assumption = (!is_sure).then(|| BehaviourAssumption {
            assumed: "it is of the type REGIONAL".into(),
            because: "no annotation says so: which type is the default depends on the version of \
                      its controller and on DEFAULT_LB_TYPE"
                .into(),
            settle: format!("look at its type, and state it: {TYPE}").into(),
        });
        Some(plan)
    }
}

/// Returns the protocol of a port. With a certificate, or with TLS passed through, 443 is a port of
/// TLS unless an annotation lists the ports of TLS.
fn protocol(service: &Service, port: &ServicePort) -> ListenerProtocol {
    let number = port.port.number();
    let has = |key: &str| service.annotations.get(key).is_some_and(|text| !text.trim().is_empty());
    let is_passed = is_on(service, PASS_THROUGH);
    let usual_port =
        number == 443 && !has(TLS_PORTS) && (is_passed || CERTIFICATE.into_iter().any(has));
    let mut listed = TLS_LISTS.into_iter();
    let word = if usual_port || listed.any(|key| names_port(service, key, number)) {
        Some("https")
    } else if names_port(service, HTTP_PORTS, number) {
        Some("http")
    } else {
        service.annotations.get(PROTOCOL)
    };
    match word {
        // The load balancer does not read TLS that it passes through.
        Some("https" | "http2") if is_passed => plain_protocol(port),
        Some("http2") => protocol_of(Some("https"), port),
        word => protocol_of(word, port),
    }
}

const TYPE: &str = "service.beta.kubernetes.io/do-loadbalancer-type";
/// The protocol of ports that no list names.
const PROTOCOL: &str = "service.beta.kubernetes.io/do-loadbalancer-protocol";
const HTTP_PORTS: &str = "service.beta.kubernetes.io/do-loadbalancer-http-ports";
const TLS_PORTS: &str = "service.beta.kubernetes.io/do-loadbalancer-tls-ports";
/// Ports at which the load balancer terminates TLS, with either version of HTTP.
const TLS_LISTS: [&str; 2] = [TLS_PORTS, "service.beta.kubernetes.io/do-loadbalancer-http2-ports"];
const CERTIFICATE: [&str; 2] = [
    "service.beta.kubernetes.io/do-loadbalancer-certificate-id",
    "service.beta.kubernetes.io/do-loadbalancer-certificate-name",
];
const PASS_THROUGH: &str = "service.beta.kubernetes.io/do-loadbalancer-tls-passthrough";
const PROXY_PROTOCOL: &str = "service.beta.kubernetes.io/do-loadbalancer-enable-proxy-protocol";

/// The annotations that are read, with the kinds of their values.
const READ: &[Annotation] = &[
    Annotation::new(TYPE, ValueKind::Words(&["REGIONAL", "REGIONAL_NETWORK", "GLOBAL"])),
    Annotation::new(PROTOCOL, ValueKind::Words(&["http", "https", "http2", "http3", "tcp", "udp"])),
    Annotation::new(HTTP_PORTS, ValueKind::Ports),
    Annotation::new(TLS_LISTS[0], ValueKind::Ports),
    Annotation::new(TLS_LISTS[1], ValueKind::Ports),
    Annotation::new(CERTIFICATE[0], ValueKind::Names),
    Annotation::new(CERTIFICATE[1], ValueKind::Names),
    Annotation::new(PASS_THROUGH, ValueKind::Switch),
    Annotation::new(PROXY_PROTOCOL, ValueKind::Switch),
    Annotation::new(remedies::HOST_NAME, ValueKind::Names),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cloud::product::tests::{plan_of, service};

    #[test]
    fn a_certificate_ends_tls_at_443_unless_other_ports_are_listed() {
        let of = |notes: &[(&str, &str)], port| {
            plan_of(&Balancer, &service(notes, &[80, 443, 8443]), port).protocol
        };
        let certificate = (CERTIFICATE[0], "b7ce");
        assert_eq!(of(&[certificate], 443), ListenerProtocol::Https);
        assert_eq!(of(&[certificate], 80), ListenerProtocol::Tcp);
        assert_eq!(of(&[certificate, (PROTOCOL, "http")], 80), ListenerProtocol::Http);
        assert_eq!(of(&[certificate, (TLS_PORTS, "8443")], 8443), ListenerProtocol::Https);
        assert_eq!(of(&[certificate, (TLS_PORTS, "8443")], 443), ListenerProtocol::Tcp);
        assert_eq!(of(&[(PASS_THROUGH, "true")], 443), ListenerProtocol::Tcp);
        assert_eq!(of(&[certificate, (TLS_LISTS[1], "443")], 443), ListenerProtocol::Https);
    }

    #[test]
    fn without_a_trace_of_its_type_there_is_a_doubt() {
        let doubts = |notes: &[(&str, &str)]| {
            plan_of(&Balancer, &service(notes, &[80]), 80).profile.assumption.is_some()
        };
        assert!(doubts(&[]) && doubts(&[(TYPE, "REGIONAL_NETWORK")]));
        assert!(!doubts(&[(TYPE, "REGIONAL")]) && !doubts(&[(PROXY_PROTOCOL, "true")]));
    }
}
