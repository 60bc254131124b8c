//! Google Cloud and its load balancers.
//!
//! | file | what it says |
//! | --- | --- |
//! | `passthrough` | external and internal passthrough load balancers of Services |

mod passthrough;

use super::{CloudEntry, Traces, Words};

/// All that is known of it.
pub static ENTRY: CloudEntry = CloudEntry {
    products: &[&passthrough::Passthrough],
    words: Words::with_firewall("VPC firewall"),
    ..CloudEntry::recognised(
        "gcp",
        "Google Cloud",
        Traces {
            provider_ids: &["gce://"],
            node_keys: &["cloud.google.com/"],
            service_product: |_| Some(passthrough::NAME),
            service_keys: &["networking.gke.io/", "cloud.google.com/"],
            load_balancer_classes: &[("networking.gke.io/", passthrough::NAME)],
            ingress_controllers: &[("k8s.io/gce", "Google Cloud")],
            ingress_classes: &[("gce", "Google Cloud"), ("gce-internal", "Google Cloud")],
            ..Traces::NONE
        },
    )
};
