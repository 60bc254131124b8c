//! MetalLB: speakers on nodes announce the addresses of Services.

use uturn_model::service::ServicePort;
use uturn_model::{Cluster, Family, Service};

use super::{CloudEntry, PortPlan, Product, ProgramArgument, StatusShape, Traces, argument};
use crate::cloud::product::Announced;

const NAME: &str = "MetalLB";

/// Has speakers announce addresses from nodes that are excluded from load balancers, too.
const IGNORES_EXCLUSION: &str = "ignore-exclude-lb";

/// The load balancer: a speaker announces the address from its node.
struct Speakers;

impl Product for Speakers {
    fn name(&self) -> &'static str {
        NAME
    }

    fn is_announced(&self) -> bool {
        true
    }

    fn reads_exclusion(&self, cluster: &Cluster) -> bool {
        let value = argument(cluster, ENTRY.cloud, IGNORES_EXCLUSION);
        value.is_none_or(|value| matches!(value, "false" | "False" | "FALSE" | "f" | "F" | "0"))
    }

    fn port(&self, service: &Service, port: &ServicePort, family: Family) -> Option<PortPlan> {
        Announced(NAME).port(service, port, family)
    }
}

/// All that is known of it.
pub static ENTRY: CloudEntry = CloudEntry {
    products: &[&Speakers],
    serves_services_only: true,
    writes: StatusShape::Addresses,
    arguments: &[ProgramArgument {
        images: &["speaker", "metallb-speaker"],
        name: IGNORES_EXCLUSION,
    }],
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
