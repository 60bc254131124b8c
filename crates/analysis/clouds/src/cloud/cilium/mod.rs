//! Cilium as a load balancer: it assigns addresses to Services and announces them.

use std::net::{IpAddr, Ipv4Addr};

use uturn_model::service::ServicePort;
use uturn_model::{Cluster, Family, Name, Service};

use super::{CloudEntry, Markers};
use crate::cloud::product::{Announced, Leases, PortPlan, Product, lease_holder};

const NAME: &str = "Cilium";

/// The prefix of the Lease of a Service; its namespace and its name follow.
const LEASE: &str = "cilium-l2announce-";

/// The load balancer: the node that holds the Service's Lease announces the address.
struct OnHolder;

impl Product for OnHolder {
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

    fn holder(&self, service: &Service, leases: &Leases) -> Option<Name> {
        let name = format!("{LEASE}{}-{}", service.name.namespace, service.name.name);
        lease_holder(leases, &name)
    }
}

/// The description of Cilium.
pub static ENTRY: CloudEntry = CloudEntry {
    products: &[&OnHolder],
    serves_services_only: true,
    ..CloudEntry::recognised(
        "cilium",
        NAME,
        Markers {
            service_keys: &["lbipam.cilium.io/", "io.cilium/lb-ipam"],
            load_balancer_classes: &[("io.cilium/", NAME)],
            object_kinds: &[
                "cilium.io/v2alpha1/CiliumLoadBalancerIPPool",
                "cilium.io/v2/CiliumLoadBalancerIPPool",
            ],
            // The endpoint of Services for Cilium's own Ingresses and Gateways, which its Envoy on
            // each node serves.
            placeholder_endpoint: Some(IpAddr::V4(Ipv4Addr::new(192, 192, 192, 192))),
            ..Markers::NONE
        },
    )
};
