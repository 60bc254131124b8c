//! Passthrough load balancers, external and internal: packets arrive at a node as the client sent
//! them.

use uturn_model::lb::{Delivery, HealthCheck, HealthQuestion, Source};
use uturn_model::service::{Policy, ServicePort};
use uturn_model::{Family, Service};

use crate::cloud::product::{
    PortPlan, Product, SourceRanges, Targets, UnservedPort, check, passing, plain_protocol,
};
use crate::cloud::{Annotation, ValueKind};

pub(super) const NAME: &str = "Google Cloud passthrough load balancer";

/// The annotations that ask for an internal load balancer, the older key last.
const TYPE: [&str; 2] =
    ["networking.gke.io/load-balancer-type", "cloud.google.com/load-balancer-type"];
const INTERNAL_CLASSES: &str = "networking.gke.io/l4-regional-internal";

/// Passthrough load balancers.
pub(super) struct Passthrough;

impl Product for Passthrough {
    fn name(&self) -> &'static str {
        NAME
    }

    fn unserved_port(&self) -> UnservedPort {
        UnservedPort::Dropped
    }

    fn is_private(&self, service: &Service) -> Option<bool> {
        let class = service.load_balancer_class.as_deref();
        let is_asked = TYPE
            .iter()
            .filter_map(|key| service.annotations.get(key))
            .any(|value| value.eq_ignore_ascii_case("internal"));
        Some(is_asked || class.is_some_and(|class| class.starts_with(INTERNAL_CLASSES)))
    }

    /// The controller writes the source ranges into a rule of the network's firewall.
    fn source_ranges(&self, _: &Service) -> SourceRanges {
        SourceRanges::Applied
    }

    /// The guest agent adds a local route for each forwarded address on each backend.
    fn is_held_by_targets(&self) -> bool {
        true
    }

    fn port(&self, service: &Service, port: &ServicePort, _: Family) -> Option<PortPlan> {
        let mut profile = passing(NAME, Source::Kept);
        profile.delivery = Delivery::KeepsAddress;
        let question = match service.external_policy {
            Policy::Local => HealthQuestion::LocalEndpoint,
            Policy::Cluster => HealthQuestion::ServiceProxy,
        };
        profile.health_check = Some(HealthCheck { keeps_address: true, ..check(question, (8, 1)) });
        Some(PortPlan { protocol: plain_protocol(port), targets: Targets::Nodes, profile })
    }
}

/// The annotations that are read, with the kinds of their values.
pub(super) const READ: &[Annotation] = &[
    Annotation::new(TYPE[0], ValueKind::Words(&["internal", "external"])),
    Annotation::new(TYPE[1], ValueKind::Words(&["internal", "external"])),
];
