//! MetalLB: speakers on nodes announce the addresses of Services.

use uturn_model::service::ServicePort;
use uturn_model::{Family, Service};

use super::{CloudEntry, PortPlan, Product, Traces};
use crate::cloud::product::announced;

const NAME: &str = "MetalLB";

/// All that is known of it.
pub static ENTRY: CloudEntry = CloudEntry {
    products: &[&Announced],
    serves_services_only: true,
    ..CloudEntry::recognised(
        "metallb",
        NAME,
        Traces {
            service_keys: &["metallb.io/", "metallb.universe.tf/"],
            load_balancer_classes: &[("metallb.io/", NAME), ("metallb.universe.tf/", NAME)],
            namespaces: &["metallb-system"],
            program_names: &["metallb-speaker"],
            object_kinds: &["metallb.io/"],
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
