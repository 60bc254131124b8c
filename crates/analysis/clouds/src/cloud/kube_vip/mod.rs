//! kube-vip: a leader announces the addresses of Services, and has them on an interface.

use uturn_model::lb::BehaviourAssumption;
use uturn_model::service::{Policy, ServicePort};
use uturn_model::{Cluster, Family, Name, NamespacedName, Node, Service, Version};

use super::{
    Annotation, CloudEntry, Markers, NoAddress, ProgramArgument, VERSION, ValueKind, argument, runs,
};
use crate::cloud::product::{Announced, Leases, PortPlan, Product, Targets, lease_holder};
use crate::targets;

const NAME: &str = "kube-vip";

/// The annotation with the node that has the addresses of a Service, which kube-vip itself writes.
const HOST: &str = "kube-vip.io/vipHost";

/// The Lease of the leader for all Services, unless one is elected for each.
const COMMON_LEASE: &str = "plndr-svcs-lock";

/// The prefix of the Lease of a Service that elects its own leader; the name of the Service
/// follows.
const OWN_LEASE: &str = "kubevip-";

/// The first release that reads policy Local.
const READS_POLICY: Version = Version::new(0, 5, 0);

/// The first release that is assumed to read policy Local in BGP mode: reports that it is ignored
/// exist up to 0.7.0.
const READS_POLICY_BY_ROUTES: Version = Version::new(0, 8, 0);

/// The annotations with the addresses of a Service, which users or [`CHOOSER`] write.
const ADDRESSES: [&str; 2] = ["kube-vip.io/loadbalancerIPs", "kube-vip.io/loadbalancerHostname"];

/// The program that chooses addresses for Services.
const CHOOSER: &str = "kube-vip-cloud-provider";

/// The image of kube-vip.
const PROGRAM: &[&str] = &["kube-vip"];

/// The settings that make each Service elect its own leader: a variable, and an argument.
const ELECTS: [&str; 2] = ["svc_election", "servicesElection"];

/// The settings that make kube-vip announce addresses with BGP, from every node: a variable, and an
/// argument.
const BY_ROUTES: [&str; 2] = ["bgp_enable", "bgp"];

/// The load balancer: the leader has the address on an interface.
struct OnLeader;

impl Product for OnLeader {
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

    fn port_in(
        &self,
        cluster: &Cluster,
        service: &Service,
        port: &ServicePort,
        family: Family,
    ) -> Option<PortPlan> {
        let mut plan = self.port(service, port, family)?;
        let version = argument(cluster, ENTRY.cloud, VERSION);
        let version: Option<Version> = version.and_then(|text| text.parse().ok());
        let is_on = |names: [&str; 2]| {
            names.into_iter().any(|name| argument(cluster, ENTRY.cloud, name).is_some_and(is_true))
        };
        let (by_routes, elects) = (is_on(BY_ROUTES), is_on(ELECTS));
        let is_local = service.external_policy == Policy::Local;
        match version {
            Some(version) if version < READS_POLICY => plan.targets = Targets::Nodes,
            // One leader has the addresses of all Services.
            Some(_) if is_local && !by_routes && !elects => plan.targets = Targets::Nodes,
            Some(version) if is_local && by_routes && version < READS_POLICY_BY_ROUTES => {
                plan.profile.assumption = Some(BehaviourAssumption {
                    assumed: "only nodes with an endpoint announce the address".into(),
                    because: "in BGP mode, this release may announce it from every node".into(),
                    settle: "ask the router for its routes to the address".into(),
                });
            }
            None if is_local => {
                plan.profile.assumption = Some(BehaviourAssumption {
                    assumed: "each Service has a leader of its own, on a node with an endpoint"
                        .into(),
                    because: "its pods are not given: by default one leader has all addresses"
                        .into(),
                    settle: "give its DaemonSet or pods: svc_election tells".into(),
                });
            }
            _ => {}
        }
        Some(plan)
    }

    fn no_address(&self, cluster: &Cluster, service: &Service) -> Option<NoAddress> {
        let asks = |key: &&str| service.annotations.get(key).is_some_and(|text| !text.is_empty());
        let has_chooser = runs(cluster, |program| program == CHOOSER);
        if service.asked_address.is_none() && !ADDRESSES.iter().any(asks) && !has_chooser {
            let because = format!(
                "{NAME} announces the address that a Service asks for, and neither its annotations \
                 nor loadBalancerIP ask for one: {CHOOSER}, which would choose one, does not run here"
            );
            let condition = (!cluster.extent.pods).then_some("no program chooses its address");
            return Some(NoAddress { because, condition });
        }
        let waits_for_pods = |port: &ServicePort| {
            let plan = self.port_in(cluster, service, port, Family::V4);
            plan.is_some_and(|plan| plan.targets == Targets::NodesWithPods)
        };
        let has_pod = |node: &&Node| targets::has_ready_pod(cluster, service, &node.name);
        let mut homes = cluster.nodes.values().filter(has_pod).peekable();
        let first = &homes.peek()?.name;
        if !service.ports.iter().any(waits_for_pods) || !homes.all(|node| node.lacks_announcer) {
            return None;
        }
        let because = format!(
            "under policy Local a node with an endpoint has to announce the address, and {NAME} runs \
             on no such node: an endpoint is on node {first}"
        );
        Some(NoAddress { because, condition: None })
    }

    fn is_held_by(&self, service: &Service, node: &Node) -> bool {
        service.holder.as_ref() == Some(&node.name)
    }

    fn holder(&self, service: &Service, leases: &Leases) -> Option<Name> {
        let namespace = service.name.namespace.clone();
        let own = Name::new(format!("{OWN_LEASE}{}", service.name.name)).ok();
        let own = own.and_then(|name| leases.get(&NamespacedName { namespace, name }).cloned());
        let written = || service.annotations.get(HOST).and_then(|host| Name::new(host.trim()).ok());
        own.or_else(written).or_else(|| lease_holder(leases, COMMON_LEASE))
    }
}

/// The description of kube-vip.
pub static ENTRY: CloudEntry = CloudEntry {
    annotations: &[READ],
    products: &[&OnLeader],
    versions_of: PROGRAM,
    announcer_images: PROGRAM,
    arguments: &[
        ProgramArgument { images: PROGRAM, name: ELECTS[0] },
        ProgramArgument { images: PROGRAM, name: ELECTS[1] },
        ProgramArgument { images: PROGRAM, name: BY_ROUTES[0] },
        ProgramArgument { images: PROGRAM, name: BY_ROUTES[1] },
    ],
    serves_services_only: true,
    ..CloudEntry::recognised(
        "kube-vip",
        NAME,
        Markers {
            service_keys: &["kube-vip.io/"],
            load_balancer_classes: &[("kube-vip.io/", NAME)],
            program_names: &["kube-vip"],
            ..Markers::NONE
        },
    )
};

/// Returns whether a switch is on, as programs in Go read it.
fn is_true(value: &str) -> bool {
    matches!(value.trim(), "" | "1" | "t" | "T" | "true" | "TRUE" | "True")
}

/// The annotations that are read, with the kinds of their values.
const READ: &[Annotation] = &[
    Annotation::new(HOST, ValueKind::Names),
    Annotation::new(ADDRESSES[0], ValueKind::Names),
    Annotation::new(ADDRESSES[1], ValueKind::Names),
];
