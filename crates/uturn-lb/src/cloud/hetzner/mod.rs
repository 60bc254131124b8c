//! Hetzner Cloud: a proxy in front of node ports.

mod remedies;

use uturn_model::lb::ProxyVersion;
use uturn_model::service::ServicePort;
use uturn_model::{Family, Service};

use super::{CloudEntry, PortPlan, Product, Traces};
use crate::cloud::product::proxying;
use crate::cloud::values::{is_on, protocol_of};

const NAME: &str = "Hetzner Load Balancer";

/// All that is known of it.
pub static ENTRY: CloudEntry = CloudEntry {
    products: &[&Balancer],
    remedies: remedies::remedies,
    samples: &[&[("load-balancer.hetzner.cloud/uses-proxyprotocol", "true")]],
    ..CloudEntry::recognised(
        "hetzner",
        "Hetzner",
        Traces {
            provider_ids: &["hcloud://", "hrobot://"],
            service_keys: &["load-balancer.hetzner.cloud/"],
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
        let protocol = protocol_of(service.annotations.get(PROTOCOL), port);
        let mut plan = proxying(NAME, service, protocol, family);
        plan.profile.proxy_header = is_on(service, PROXY_PROTOCOL).then_some(ProxyVersion::V2);
        Some(plan)
    }
}

const PROTOCOL: &str = "load-balancer.hetzner.cloud/protocol";
const PROXY_PROTOCOL: &str = "load-balancer.hetzner.cloud/uses-proxyprotocol";
