//! Cilium, where it gives Services addresses and announces them.

use uturn_model::service::ServicePort;
use uturn_model::{Family, Service};

use super::{CloudEntry, PortPlan, Product, Traces};
use crate::cloud::product::announced;

const NAME: &str = "Cilium";

/// All that is known of it.
pub static ENTRY: CloudEntry = CloudEntry {
    products: &[&Announced],
    serves_services_only: true,
    ..CloudEntry::recognised(
        "cilium",
        NAME,
        Traces {
            service_keys: &["lbipam.cilium.io/", "io.cilium/lb-ipam"],
            load_balancer_classes: &[("io.cilium/", NAME)],
            object_kinds: &[
                "cilium.io/v2alpha1/CiliumLoadBalancerIPPool",
                "cilium.io/v2/CiliumLoadBalancerIPPool",
            ],
            ..Traces::NONE
        },
    )
};

/// Addresses that nodes announce.
struct Announced;

impl Product for Announced {
    fn name(&self) -> &'static str {
        NAME
    }

    fn port(&self, service: &Service, port: &ServicePort, _: Family) -> Option<PortPlan> {
        Some(announced(NAME, service, port))
    }
}
