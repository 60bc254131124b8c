//! Huawei Cloud and its load balancers, also as other providers run them.
//!
//! | file | what it says |
//! | --- | --- |
//! | `annotations` | the keys that the controllers read, and lists within their values |
//! | `elb` | Elastic Load Balancers, shared and dedicated |
//! | `remedies` | the annotations that change their behaviour |

mod annotations;
mod elb;
mod remedies;

use super::{CloudEntry, Markers, Words};

/// The description of Huawei Cloud.
pub static ENTRY: CloudEntry = CloudEntry {
    translates_public_addresses: true,
    annotations: &[annotations::READ],
    words: Words::with_firewall("security group"),
    products: &[&elb::SHARED, &elb::DEDICATED],
    remedies: remedies::remedies,
    ..CloudEntry::recognised(
        "huawei",
        "Huawei Cloud",
        Markers {
            provider_ids: &["huaweicloud://"],
            service_keys: &["kubernetes.io/elb."],
            service_product: |service| Some(elb::of(service).name),
            ingress_classes: &[("cce", "Huawei Cloud")],
            ..Markers::NONE
        },
    )
};
