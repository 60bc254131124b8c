//! Cilium, where it gives Services addresses and announces them.

use std::net::{IpAddr, Ipv4Addr};

use super::{CloudEntry, Traces};
use crate::cloud::product::Announced;

const NAME: &str = "Cilium";

/// All that is known of it.
pub static ENTRY: CloudEntry = CloudEntry {
    products: &[&Announced(NAME)],
    serves_services_only: true,
    ..CloudEntry::recognised(
        "cilium",
        NAME,
        Traces {
            service_keys: &["lbipam.cilium.io/", "io.cilium/lb-ipam"],
            load_balancer_classes: &[("io.cilium/", NAME)],
            object_kinds: &[
                "cilium.io/v2alpha1/CiliumLoadBalancerIPPool",
                "cilium.io/v2/CiliumLoadBalancerIPPool",
            ],
            // Of a Service for its own Ingresses and Gateways, which its Envoy on each node serves.
            placeholder_endpoint: Some(IpAddr::V4(Ipv4Addr::new(192, 192, 192, 192))),
            ..Traces::NONE
        },
    )
};
