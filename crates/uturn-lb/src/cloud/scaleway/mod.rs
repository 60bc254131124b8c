//! Scaleway: a proxy in front of node ports.

use uturn_model::lb::{ListenerProtocol, ProxyVersion};
use uturn_model::service::ServicePort;
use uturn_model::{Family, Service};

use super::{CloudEntry, PortPlan, Product, Traces};
use crate::cloud::product::{plain_protocol, proxying};
use crate::cloud::values::names_port;

const NAME: &str = "Scaleway Load Balancer";

/// All that is known of it.
pub static ENTRY: CloudEntry = CloudEntry {
    products: &[&Balancer],
    ..CloudEntry::recognised(
        "scaleway",
        "Scaleway",
        Traces {
            provider_ids: &["scaleway://"],
            service_keys: &["service.beta.kubernetes.io/scw-"],
            host_names: &[(".scw.cloud", "Scaleway")],
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
        let number = port.port.number();
        let protocol = match names_port(service, PROTOCOL_HTTP, number) {
            true => ListenerProtocol::Http,
            false => plain_protocol(port),
        };
        let mut plan = proxying(NAME, service, protocol, family);
        plan.profile.proxy_header = if names_port(service, PROXY_V2, number) {
            Some(ProxyVersion::V2)
        } else {
            names_port(service, PROXY_V1, number).then_some(ProxyVersion::V1)
        };
        Some(plan)
    }
}

const PROTOCOL_HTTP: &str = "service.beta.kubernetes.io/scw-loadbalancer-protocol-http";
const PROXY_V1: &str = "service.beta.kubernetes.io/scw-loadbalancer-proxy-protocol-v1";
const PROXY_V2: &str = "service.beta.kubernetes.io/scw-loadbalancer-proxy-protocol-v2";
