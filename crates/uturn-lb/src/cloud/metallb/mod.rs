//! MetalLB: speakers on nodes announce the addresses of Services.

use super::{CloudEntry, StatusShape, Traces};
use crate::cloud::product::Announced;

const NAME: &str = "MetalLB";

/// All that is known of it.
pub static ENTRY: CloudEntry = CloudEntry {
    products: &[&Announced(NAME)],
    serves_services_only: true,
    writes: StatusShape::Addresses,
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
