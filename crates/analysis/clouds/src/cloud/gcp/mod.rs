//! Google Cloud and its load balancers.
//!
//! | file | what it says |
//! | --- | --- |
//! | `application` | application load balancers of Ingresses |
//! | `passthrough` | external and internal passthrough load balancers of Services |

mod application;
mod passthrough;

use super::{CloudEntry, Markers, Words};

/// The description of Google Cloud.
pub static ENTRY: CloudEntry = CloudEntry {
    translates_public_addresses: true,
    annotations: &[application::READ, passthrough::READ],
    products: &[&passthrough::Passthrough],
    ingress_products: &[
        &application::Application { name: application::EXTERNAL },
        &application::Application { name: application::INTERNAL },
    ],
    samples: &[&[("networking.gke.io/load-balancer-type", "Internal")]],
    probers: Some(passthrough::PROBERS),
    words: Words::with_firewall("VPC firewall"),
    label_with_cluster_cidr: Some("cloud.google.com/gke-"),
    ..CloudEntry::recognised(
        "gcp",
        "Google Cloud",
        Markers {
            provider_ids: &["gce://"],
            node_keys: &["cloud.google.com/"],
            service_product: |_| Some(passthrough::NAME),
            service_keys: &["networking.gke.io/", "cloud.google.com/"],
            load_balancer_classes: &[("networking.gke.io/", passthrough::NAME)],
            ingress_controllers: &[("k8s.io/gce", application::EXTERNAL)],
            ingress_classes: &[
                ("gce", application::EXTERNAL),
                ("gce-internal", application::INTERNAL),
            ],
            gateway_classes: &[
                ("gke-l7-rilb", application::INTERNAL),
                ("gke-l7-cross-regional-internal", application::INTERNAL),
                ("gke-l7-", application::EXTERNAL),
                ("networking.gke.io/gateway", application::EXTERNAL),
            ],
            ingress_default: Some(application::EXTERNAL),
            ..Markers::NONE
        },
    )
};
