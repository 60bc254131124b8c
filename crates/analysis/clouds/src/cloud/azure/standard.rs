//! The Standard Load Balancer: it forwards packets and keeps the client's address. It also keeps
//! its own address as the destination unless a Service switches floating IP off.

use std::net::{Ipv4Addr, Ipv6Addr};

use uturn_model::lb::{Delivery, HealthCheck, HealthQuestion, ProbeRanges, ProbeSource, Source};
use uturn_model::service::{Policy, ServicePort};
use uturn_model::{Family, Ipv4Net, Ipv6Net, Protocol, Service};

use crate::cloud::product::{
    PageCheck, PortPlan, Probers, Product, SourceRanges, Targets, UnservedPort, check, passing,
    plain_protocol, question_by_policy,
};
use crate::cloud::{Annotation, ValueKind};

pub(super) const NAME: &str = "Azure Load Balancer";

const INTERNAL: &str = "service.beta.kubernetes.io/azure-load-balancer-internal";
pub(super) const NO_FLOATING_IP: &str =
    "service.beta.kubernetes.io/azure-disable-load-balancer-floating-ip";

/// The annotation for the path that health checks request.
const CHECK_PATH: &str = "service.beta.kubernetes.io/azure-load-balancer-health-probe-request-path";
/// The annotation for the protocol of health checks.
const CHECK_PROTOCOL: &str = "service.beta.kubernetes.io/azure-load-balancer-health-probe-protocol";

/// The address from which Azure asks for the health of targets. A security group's own last rules let
/// it in, before the one that denies all else.
pub(super) const PROBERS: Probers = Probers {
    ranges: ProbeRanges {
        v4: Ipv4Net::new_assert(Ipv4Addr::new(168, 63, 129, 16), 32),
        v6: Ipv6Net::new_assert(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0x1234, 0x5678, 0x9abc), 128),
    },
    are_let_in: true,
};

/// Annotations that allow further sources.
const ALSO_ALLOWED: [&str; 2] = [
    "service.beta.kubernetes.io/azure-allowed-ip-ranges",
    "service.beta.kubernetes.io/azure-allowed-service-tags",
];

/// The Standard Load Balancer.
pub(super) struct Standard;

impl Product for Standard {
    fn name(&self) -> &'static str {
        NAME
    }

    fn unserved_port(&self) -> UnservedPort {
        UnservedPort::Dropped
    }

    /// Floating IP is off unless a rule switches it on, as Kubernetes' controller does.
    fn delivery_by_default(&self) -> Option<Delivery> {
        Some(Delivery::ToTarget)
    }

    fn is_private(&self, service: &Service) -> Option<bool> {
        Some(is_internal(service))
    }

    /// The controller writes the source ranges into the nodes' security group.
    fn source_ranges(&self, service: &Service) -> SourceRanges {
        let has_others = ALSO_ALLOWED.iter().any(|key| service.annotations.get(key).is_some());
        if has_others { SourceRanges::Ignored } else { SourceRanges::Applied }
    }

    fn page_check(&self, service: &Service, port: &ServicePort) -> Option<PageCheck> {
        let of_port = |what: &str| {
            let key = format!("service.beta.kubernetes.io/port_{}_health-probe_{what}", port.port);
            service.annotations.get(&key).is_some()
        };
        let is_set =
            [CHECK_PATH, CHECK_PROTOCOL].iter().any(|key| service.annotations.get(key).is_some())
                || ["request-path", "protocol"].into_iter().any(of_port);
        let is_http = matches!(port.app_protocol.as_deref(), Some("http" | "https"));
        (is_http && !is_set && service.external_policy == Policy::Cluster).then_some(PageCheck {
            path: "/",
            because: "the port's appProtocol makes health checks ask for a page, and no annotation names its path",
            condition: "clusterServiceLoadBalancerHealthProbeMode of the cloud's controller is not shared",
            cure: (CHECK_PATH, "/healthz"),
        })
    }

    fn port(&self, service: &Service, port: &ServicePort, family: Family) -> Option<PortPlan> {
        let mut profile = passing(NAME, Source::Kept);
        profile.delivery = delivery(service, family);
        // Without a healthy target, new connections are not forwarded.
        profile.panic_threshold = None;
        let question = match self.page_check(service, port) {
            Some(page) => HealthQuestion::Page {
                path: page.path,
                tls: port.app_protocol.as_deref() == Some("https"),
            },
            None => question_by_policy(service),
        };
        // A UDP port has no health check of its own. With policy Local, all ports use the check of
        // the Service's health check port.
        let is_probed = port.protocol == Protocol::Tcp || question == HealthQuestion::LocalEndpoint;
        profile.health_check = is_probed.then(|| HealthCheck {
            source: ProbeSource::Reserved(PROBERS.ranges),
            ..check(question, (5, 5))
        });
        Some(PortPlan { protocol: plain_protocol(port), targets: Targets::Nodes, profile })
    }
}

fn is_internal(service: &Service) -> bool {
    service.annotations.is(INTERNAL, "true")
}

/// Returns how packets are delivered. Floating IP, which keeps the address, is on by default; an
/// internal load balancer for IPv6 never has it.
fn delivery(service: &Service, family: Family) -> Delivery {
    let is_off = service.annotations.is(NO_FLOATING_IP, "true");
    if is_off || (is_internal(service) && family == Family::V6) {
        Delivery::ToTarget
    } else {
        Delivery::KeepsAddress
    }
}

/// The annotations that are read, with the kinds of their values.
pub(super) const READ: &[Annotation] = &[
    Annotation::new(INTERNAL, ValueKind::Switch),
    Annotation::new(NO_FLOATING_IP, ValueKind::Switch),
    Annotation::new(ALSO_ALLOWED[0], ValueKind::Names),
    Annotation::new(ALSO_ALLOWED[1], ValueKind::Names),
    Annotation::new(CHECK_PATH, ValueKind::Names),
    Annotation::new(CHECK_PROTOCOL, ValueKind::Words(&["http", "https", "tcp"])),
    Annotation::below(
        "service.beta.kubernetes.io/",
        "port_*_health-probe_request-path",
        ValueKind::Names,
    ),
    Annotation::below(
        "service.beta.kubernetes.io/",
        "port_*_health-probe_protocol",
        ValueKind::Words(&["http", "https", "tcp"]),
    ),
];
