//! Azure and its load balancers.
//!
//! | file | what it says |
//! | --- | --- |
//! | `standard` | the Standard Load Balancer of a Service |

mod standard;

use super::{CloudEntry, Traces, Words};

/// All that is known of it.
pub static ENTRY: CloudEntry = CloudEntry {
    products: &[&standard::Standard],
    words: Words::with_firewall("network security group"),
    ..CloudEntry::recognised(
        "azure",
        "Azure",
        Traces {
            provider_ids: &["azure://"],
            node_keys: &["kubernetes.azure.com/"],
            service_product: |_| Some(standard::NAME),
            service_keys: &["service.beta.kubernetes.io/azure-"],
            ingress_controllers: &[
                ("azure/application-gateway", "Azure Application Gateway"),
                ("alb.networking.azure.io/", "Azure Application Gateway for Containers"),
            ],
            ingress_classes: &[
                ("azure/application-gateway", "Azure Application Gateway"),
                ("azure-application-gateway", "Azure Application Gateway"),
                ("azure-alb-external", "Azure Application Gateway for Containers"),
            ],
            ingress_keys: &[("appgw.ingress.kubernetes.io/", "Azure Application Gateway")],
            ..Traces::NONE
        },
    )
};
