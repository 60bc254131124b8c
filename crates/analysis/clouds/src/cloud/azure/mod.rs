//! Azure and its load balancers.
//!
//! | file | what it says |
//! | --- | --- |
//! | `gateway` | the Application Gateways of Ingresses |
//! | `standard` | the Standard Load Balancer of a Service |
//! | `remedies` | the annotations that change its behaviour |

mod gateway;
mod remedies;
mod standard;

use super::{CloudEntry, Markers, Words};

/// The description of Azure.
pub static ENTRY: CloudEntry = CloudEntry {
    translates_public_addresses: true,
    annotations: &[standard::READ, gateway::READ],
    products: &[&standard::Standard],
    ingress_products: &[&gateway::ApplicationGateway, &gateway::ForContainers],
    probers: Some(standard::PROBERS),
    remedies: remedies::remedies,
    samples: &[
        &[("service.beta.kubernetes.io/azure-load-balancer-internal", "true")],
        &[("service.beta.kubernetes.io/azure-disable-load-balancer-floating-ip", "true")],
    ],
    words: Words::with_firewall("network security group"),
    ..CloudEntry::recognised(
        "azure",
        "Azure",
        Markers {
            provider_ids: &["azure://"],
            node_keys: &["kubernetes.azure.com/"],
            service_product: |_| Some(standard::NAME),
            service_keys: &["service.beta.kubernetes.io/azure-"],
            ingress_controllers: &[
                ("azure/application-gateway", gateway::NAME),
                ("alb.networking.azure.io/", gateway::CONTAINERS),
            ],
            ingress_classes: &[
                ("azure/application-gateway", gateway::NAME),
                ("azure-application-gateway", gateway::NAME),
                ("azure-alb-external", gateway::CONTAINERS),
            ],
            ingress_keys: &[(gateway::PREFIX, gateway::NAME)],
            gateway_classes: &[
                ("azure-alb-external", gateway::CONTAINERS),
                ("alb.networking.azure.io/", gateway::CONTAINERS),
            ],
            ..Markers::NONE
        },
    )
};
