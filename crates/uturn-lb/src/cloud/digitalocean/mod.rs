//! DigitalOcean: a proxy in front of node ports, or a network load balancer that keeps its address.

use uturn_model::lb::{Delivery, ListenerProtocol, ProxyVersion, Source};
use uturn_model::service::ServicePort;
use uturn_model::{Family, Service};

use super::{CloudEntry, PortPlan, Product, Traces};
use crate::cloud::product::{plain_protocol, proxying};
use crate::cloud::values::{is_on, names_port};

const NAME: &str = "DigitalOcean Load Balancer";

/// All that is known of it.
pub static ENTRY: CloudEntry = CloudEntry {
    products: &[&Balancer],
    ..CloudEntry::recognised(
        "digitalocean",
        "DigitalOcean",
        Traces {
            provider_ids: &["digitalocean://"],
            node_keys: &["doks.digitalocean.com/"],
            service_keys: &["service.beta.kubernetes.io/do-", "kubernetes.digitalocean.com/"],
            service_product: |_| Some(NAME),
            ..Traces::NONE
        },
    )
};

/// Its load balancer.
struct Balancer;

impl Product for Balancer {
    fn name(&self) -> &'static str {
        NAME
    }

    fn port(&self, service: &Service, port: &ServicePort, family: Family) -> Option<PortPlan> {
        if service.annotations.get(TYPE) == Some("REGIONAL_NETWORK") {
            let mut plan = proxying(NAME, service, plain_protocol(port), family);
            plan.profile.source = Source::Kept;
            plan.profile.delivery = Delivery::KeepsAddress;
            plan.profile.doubt = Some(
                "it keeps the client's address and its own, since it sends to the same port".into(),
            );
            return Some(plan);
        }
        let number = port.port.number();
        let is_tls = names_port(service, TLS_PORTS, number);
        let protocol = match service.annotations.get(PROTOCOL) {
            Some("https" | "http2") => ListenerProtocol::Https,
            _ if is_tls => ListenerProtocol::Https,
            Some("http") => ListenerProtocol::Http,
            _ => plain_protocol(port),
        };
        let mut plan = proxying(NAME, service, protocol, family);
        plan.profile.proxy_header = is_on(service, PROXY_PROTOCOL).then_some(ProxyVersion::V1);
        Some(plan)
    }
}

const TYPE: &str = "service.beta.kubernetes.io/do-loadbalancer-type";
const PROTOCOL: &str = "service.beta.kubernetes.io/do-loadbalancer-protocol";
const TLS_PORTS: &str = "service.beta.kubernetes.io/do-loadbalancer-tls-ports";
const PROXY_PROTOCOL: &str = "service.beta.kubernetes.io/do-loadbalancer-enable-proxy-protocol";
