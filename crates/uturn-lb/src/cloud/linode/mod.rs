//! Linode: NodeBalancers, proxies in front of node ports.

use uturn_model::lb::{ListenerProtocol, ProxyVersion};
use uturn_model::service::ServicePort;
use uturn_model::{Family, Service};

use super::{CloudEntry, PortPlan, Product, Traces};
use crate::cloud::product::{plain_protocol, proxying};

const NAME: &str = "Linode NodeBalancer";

/// All that is known of it.
pub static ENTRY: CloudEntry = CloudEntry {
    products: &[&Balancer],
    ..CloudEntry::recognised(
        "linode",
        "Linode",
        Traces {
            provider_ids: &["linode://"],
            service_keys: &["service.beta.kubernetes.io/linode-"],
            host_names: &[(".ip.linodeusercontent.com", "Linode")],
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
        let own = settings_of_port(service, port.port.number());
        let read = |key: &str, usual: &str| {
            let own = own.as_ref().and_then(|own| Some(own.get(key)?.as_str()?.to_owned()));
            own.or_else(|| service.annotations.get(usual).map(str::to_owned))
        };
        let protocol = match read("protocol", DEFAULT_PROTOCOL).as_deref() {
            Some("http") => ListenerProtocol::Http,
            Some("https") => ListenerProtocol::Https,
            _ => plain_protocol(port),
        };
        let mut plan = proxying(NAME, service, protocol, family);
        plan.profile.proxy_header = match read("proxy-protocol", DEFAULT_PROXY_PROTOCOL).as_deref()
        {
            Some("v1") => Some(ProxyVersion::V1),
            Some("v2") => Some(ProxyVersion::V2),
            _ => None,
        };
        Some(plan)
    }
}

/// What an annotation sets for a single port, as JSON.
fn settings_of_port(service: &Service, port: u16) -> Option<serde_json::Value> {
    let text = service.annotations.get(&format!("{PORT}{port}"))?;
    serde_json::from_str(text).ok()
}

const PORT: &str = "service.beta.kubernetes.io/linode-loadbalancer-port-";
const DEFAULT_PROTOCOL: &str = "service.beta.kubernetes.io/linode-loadbalancer-default-protocol";
const DEFAULT_PROXY_PROTOCOL: &str =
    "service.beta.kubernetes.io/linode-loadbalancer-default-proxy-protocol";
