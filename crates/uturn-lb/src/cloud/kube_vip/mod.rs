//! kube-vip: a leader announces the addresses of Services, and has them on an interface.

use super::{CloudEntry, Traces};
use crate::cloud::product::Announced;

const NAME: &str = "kube-vip";

/// All that is known of it.
pub static ENTRY: CloudEntry = CloudEntry {
    products: &[&Announced(NAME)],
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
