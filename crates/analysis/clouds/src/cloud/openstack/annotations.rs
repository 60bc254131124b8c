//! The keys of the annotations that the controller reads.

use uturn_model::Service;

use crate::cloud::{Annotation, ValueKind};

/// The annotation with a name for the status in place of the address.
pub(super) const HOST_NAME: &str = "hostname";

const PREFIX: &str = "loadbalancer.openstack.org/";

/// The annotation for the choice of a target.
pub(super) const LB_METHOD: &str = "lb-method";
/// The annotation that begins connections to targets with a PROXY header: `true` and `v1` for
/// version 1, `v2`.
pub(super) const PROXY_PROTOCOL: &str = "proxy-protocol";
/// The annotation that makes listeners speak HTTP and write the client's address into a header.
pub(super) const FORWARDED_FOR: &str = "x-forwarded-for";
/// The annotation with the certificate with which listeners terminate TLS.
pub(super) const TLS: &str = "default-tls-container-ref";
/// The annotation that states whether targets have health checks.
pub(super) const HEALTH_MONITOR: &str = "enable-health-monitor";
/// The annotation with the load balancer's address, which the controller writes itself.
pub(super) const ADDRESS: &str = "load-balancer-address";

/// The annotation that asks for a load balancer without an address on the internet.
const INTERNAL: &str = "service.beta.kubernetes.io/openstack-internal-load-balancer";

/// Returns the value of an annotation by its key without the prefix.
pub(super) fn get<'s>(service: &'s Service, key: &str) -> Option<&'s str> {
    service.annotations.get(&format!("{PREFIX}{key}")).map(str::trim)
}

/// Returns a key with its prefix.
pub(super) fn key(key: &str) -> String {
    format!("{PREFIX}{key}")
}

/// Returns whether an annotation is switched on or off. The controller reads only `true` and
/// `false`.
pub(super) fn switch(service: &Service, key: &str) -> Option<bool> {
    get(service, key)?.parse().ok()
}

/// Returns whether a Service asks for an internal load balancer.
pub(super) fn is_internal(service: &Service) -> bool {
    service.annotations.is(INTERNAL, "true")
}

/// The annotations that are read, with the kinds of their values.
pub(super) const READ: &[Annotation] = &[
    of(
        LB_METHOD,
        ValueKind::Words(&["ROUND_ROBIN", "LEAST_CONNECTIONS", "SOURCE_IP", "SOURCE_IP_PORT"]),
    ),
    of(PROXY_PROTOCOL, ValueKind::Words(&["true", "false", "v1", "v2"])),
    of(FORWARDED_FOR, ValueKind::Switch),
    of(TLS, ValueKind::Names),
    of(HEALTH_MONITOR, ValueKind::Switch),
    of(ADDRESS, ValueKind::Names),
    of(HOST_NAME, ValueKind::Names),
    Annotation::new(INTERNAL, ValueKind::Switch),
];

const fn of(name: &'static str, holds: ValueKind) -> Annotation {
    Annotation::below(PREFIX, name, holds)
}
