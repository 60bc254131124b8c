//! Passthrough load balancers, external and internal: packets arrive at a node as the client sent
//! them.

use std::net::{Ipv4Addr, Ipv6Addr};

use uturn_model::lb::{Delivery, HealthCheck, HealthQuestion, ProbeRanges, ProbeSource, Source};
use uturn_model::service::{Policy, ServicePort};
use uturn_model::{Family, Ipv4Net, Ipv6Net, Service};

use crate::cloud::product::{
    PortPlan, Probers, Product, SourceRanges, Targets, UnservedPort, check, passing, plain_protocol,
};
use crate::cloud::{Annotation, ValueKind};

pub(super) const NAME: &str = "Google Cloud passthrough load balancer";

/// The addresses from which Google Cloud asks for the health of targets. A rule of the firewall has to
/// let them in; its controllers add one.
pub(super) const PROBERS: Probers = Probers {
    ranges: ProbeRanges {
        v4: Ipv4Net::new_assert(Ipv4Addr::new(35, 191, 0, 0), 16),
        v6: Ipv6Net::new_assert(Ipv6Addr::new(0x2600, 0x2d00, 1, 0xb029, 0, 0, 0, 0), 64),
    },
    are_let_in: false,
};

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
        profile.health_check = Some(HealthCheck {
            keeps_address: true,
            source: ProbeSource::Reserved(PROBERS.ranges),
            ..check(question, (8, 1))
        });
        Some(PortPlan { protocol: plain_protocol(port), targets: Targets::Nodes, profile })
    }
}

/// The annotations that are read, with the kinds of their values.
pub(super) const READ: &[Annotation] = &[
    Annotation::new(TYPE[0], ValueKind::Words(&["internal", "external"])),
    Annotation::new(TYPE[1], ValueKind::Words(&["internal", "external"])),
];
