//! kube-vip: a leader announces the addresses of Services, and has them on an interface.

use uturn_model::service::ServicePort;
use uturn_model::{Family, Service};

use super::{CloudEntry, PortPlan, Product, Traces};
use crate::cloud::product::announced;

const NAME: &str = "kube-vip";

/// All that is known of it.
pub static ENTRY: CloudEntry = CloudEntry {
    products: &[&Announced],
    serves_services_only: true,
    ..CloudEntry::recognised(
        "kube-vip",
        NAME,
        Traces {
            service_keys: &["kube-vip.io/"],
            load_balancer_classes: &[("kube-vip.io/", NAME)],
            program_names: &["kube-vip"],
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
