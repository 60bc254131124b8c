//! Vultr: a proxy in front of node ports.

use uturn_model::lb::{ListenerProtocol, ProxyVersion};
use uturn_model::service::ServicePort;
use uturn_model::{Family, Service};

use super::{CloudEntry, PortPlan, Product, Traces};
use crate::cloud::product::{plain_protocol, proxying};
use crate::cloud::values::{is_on, names_port};

const NAME: &str = "Vultr Load Balancer";

/// All that is known of it.
pub static ENTRY: CloudEntry = CloudEntry {
    products: &[&Balancer],
    ..CloudEntry::recognised(
        "vultr",
        "Vultr",
        Traces {
            provider_ids: &["vultr://"],
            service_keys: &["service.beta.kubernetes.io/vultr-"],
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
        let protocol = match names_port(service, HTTPS_PORTS, port.port.number()) {
            true => ListenerProtocol::Https,
            false => plain_protocol(port),
        };
        let mut plan = proxying(NAME, service, protocol, family);
        plan.profile.proxy_header = is_on(service, PROXY_PROTOCOL).then_some(ProxyVersion::V1);
        Some(plan)
    }
}

const HTTPS_PORTS: &str = "service.beta.kubernetes.io/vultr-loadbalancer-https-ports";
const PROXY_PROTOCOL: &str = "service.beta.kubernetes.io/vultr-loadbalancer-proxy-protocol";
