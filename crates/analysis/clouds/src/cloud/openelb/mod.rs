//! OpenELB, formerly Porter: nodes announce the addresses of Services.

use uturn_model::service::ServicePort;
use uturn_model::{Cluster, Family, Service};

use super::{CloudEntry, Markers, PortPlan, Product};
use crate::cloud::product::Announced;

const NAME: &str = "OpenELB";

/// The load balancer: a node announces the address, under policy Local one with an endpoint.
struct OnNode;

impl Product for OnNode {
    fn name(&self) -> &'static str {
        NAME
    }

    fn is_announced(&self) -> bool {
        true
    }

    fn reads_exclusion(&self, _: &Cluster) -> bool {
        false
    }

    fn port(&self, service: &Service, port: &ServicePort, family: Family) -> Option<PortPlan> {
        Announced(NAME).port(service, port, family)
    }
}

/// The description of OpenELB.
pub static ENTRY: CloudEntry = CloudEntry {
    products: &[&OnNode],
    serves_services_only: true,
    ..CloudEntry::recognised(
        "openelb",
        NAME,
        Markers {
            service_keys: &[
                "lb.kubesphere.io/",
                "protocol.openelb.kubesphere.io/",
                "eip.openelb.kubesphere.io/",
                "protocol.porter.kubesphere.io/",
                "eip.porter.kubesphere.io/",
            ],
            namespaces: &["openelb-system", "porter-system"],
            program_names: &["openelb-", "porter-manager"],
            object_kinds: &["network.kubesphere.io/"],
            ..Markers::NONE
        },
    )
};
