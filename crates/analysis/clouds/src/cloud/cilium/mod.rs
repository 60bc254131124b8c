//! Cilium as a load balancer: it assigns addresses to Services and announces them.

use std::net::{IpAddr, Ipv4Addr};

use uturn_model::service::{Policy, ServicePort};
use uturn_model::{Cluster, Family, Name, NamespacedName, Service};

use super::{Announcing, CloudEntry, Markers, Need, NewObject, NewValue, NoAddress, argument};
use crate::cloud::product::{Announced, Leases, PortPlan, Product, Targets, lease_holder};

const NAME: &str = "Cilium";

/// The prefix of the Lease of a Service; its namespace and its name follow.
const LEASE: &str = "cilium-l2announce-";

/// The switches of `cilium-config` for announcements on the nodes' segment and by routes.
const BY_NEIGHBOURS: &str = "enable-l2-announcements";
const BY_ROUTES: &str = "enable-bgp-control-plane";
const BY_OLD_ROUTES: &str = "bgp-announce-lb-ip";

/// The settings in `cilium-config` that decide whether addresses are announced.
pub const SWITCHES: [&str; 3] = [BY_NEIGHBOURS, BY_ROUTES, BY_OLD_ROUTES];

/// The kinds of objects without which nothing is announced, by the switch that needs one of them.
const POLICIES: [(&str, &[&str]); 2] = [
    (BY_NEIGHBOURS, &["CiliumL2AnnouncementPolicy"]),
    (BY_ROUTES, &["CiliumBGPClusterConfig", "CiliumBGPPeeringPolicy"]),
];

/// The class of Services whose addresses are those of nodes. (In two parts, since no annotation has
/// this key.)
const OF_NODES: &str = concat!("io.cilium", "/node");

fn is_on(cluster: &Cluster, switch: &str) -> bool {
    argument(cluster, ENTRY.cloud, switch) == Some("true")
}

/// Returns whether there is an object without which a switch has no effect. Without a known kind,
/// the switch alone suffices.
fn has_policy(cluster: &Cluster, switch: &str) -> bool {
    let known = POLICIES.iter().find(|(own, _)| *own == switch);
    known.is_none_or(|(_, kinds)| {
        kinds.iter().any(|kind| {
            let ends = |skipped: &uturn_model::Skipped| {
                skipped.kind.rsplit_once('/').is_some_and(|(_, own)| own == *kind)
            };
            cluster.skipped.iter().any(ends)
        })
    })
}

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

    /// A node's turn to announce on the segment does not depend on its endpoints.
    fn port_in(
        &self,
        cluster: &Cluster,
        service: &Service,
        port: &ServicePort,
        family: Family,
    ) -> Option<PortPlan> {
        let mut plan = self.port(service, port, family)?;
        let by_routes = is_on(cluster, BY_ROUTES) || is_on(cluster, BY_OLD_ROUTES);
        let is_local = service.external_policy == Policy::Local;
        if is_local && is_on(cluster, BY_NEIGHBOURS) && !by_routes {
            plan.targets = Targets::Nodes;
        }
        Some(plan)
    }

    fn nothing_announces(
        &self,
        cluster: &Cluster,
        service: &Service,
        address: IpAddr,
    ) -> Option<NoAddress> {
        let is_of_node = cluster.nodes.values().any(|node| node.has_address(address));
        let is_given = SWITCHES.iter().all(|key| argument(cluster, ENTRY.cloud, key).is_some());
        if is_of_node || !is_given || service.load_balancer_class.as_deref() == Some(OF_NODES) {
            return None;
        }
        let on: Vec<&str> = SWITCHES.into_iter().filter(|key| is_on(cluster, key)).collect();
        if on.is_empty() {
            let because = format!(
                "{NAME} gives the address and announces it nowhere: cilium-config has neither \
                 {BY_NEIGHBOURS} nor {BY_ROUTES}"
            );
            return Some(NoAddress { because, condition: None });
        }
        if service.holder.is_some() || on.iter().any(|switch| has_policy(cluster, switch)) {
            return None;
        }
        let because = format!(
            "{NAME} announces an address only if a policy selects it ({}), and none is given",
            POLICIES
                .iter()
                .filter(|(switch, _)| on.contains(switch))
                .flat_map(|(_, kinds)| *kinds)
                .copied()
                .collect::<Vec<_>>()
                .join(", ")
        );
        Some(NoAddress { because, condition: Some("no such policy exists") })
    }

    fn announcing(&self, cluster: &Cluster, _: IpAddr) -> Vec<Announcing> {
        let Ok(config) = NamespacedName::new("kube-system", "cilium-config") else {
            return Vec::new();
        };
        let is_switched = is_on(cluster, BY_NEIGHBOURS);
        if !is_switched && is_on(cluster, BY_ROUTES) {
            return Vec::new();
        }
        let policy = NewObject {
            version: "cilium.io/v2alpha1",
            kind: POLICIES[0].1[0],
            namespace: None,
            name: "load-balancers".to_owned(),
            spec: vec![("loadBalancerIPs", NewValue::On)],
        };
        let has_policy = has_policy(cluster, BY_NEIGHBOURS);
        let title = match (is_switched, has_policy) {
            (true, _) => format!("a {} for addresses of load balancers", policy.kind),
            (false, true) => format!("{BY_NEIGHBOURS} in cilium-config"),
            (false, false) => format!("{BY_NEIGHBOURS} in cilium-config, and a {}", policy.kind),
        };
        let is_replaced = cluster.proxy.replaced_by().is_some();
        let replaced = Need {
            what: "Cilium replaces kube-proxy",
            holds: is_replaced.then_some(true),
            because: if is_replaced {
                "it does; announcements on the segment need it".to_owned()
            } else {
                "announcements on the segment need kube-proxy-replacement: \"true\"".to_owned()
            },
        };
        let on_segment = Need {
            what: "the addresses of the pool are on the nodes' segment",
            holds: None,
            because: "a node answers ARP for them there; elsewhere BGP announces them to a router"
                .to_owned(),
        };
        vec![Announcing {
            title,
            settings: if is_switched { Vec::new() } else { vec![(config, BY_NEIGHBOURS, "true")] },
            objects: if has_policy { Vec::new() } else { vec![policy] },
            needs: vec![replaced, on_segment],
            costs: vec!["a node answers for the addresses of all load balancers"],
            command: (!is_switched).then_some("kubectl -n kube-system rollout restart ds/cilium"),
        }]
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
