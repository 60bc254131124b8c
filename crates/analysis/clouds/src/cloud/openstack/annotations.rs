//! The keys that the controller reads.

use uturn_model::Service;

use crate::cloud::{Annotation, ValueKind};

/// A name for the status in place of the address.
pub(super) const HOST_NAME: &str = "hostname";

const PREFIX: &str = "loadbalancer.openstack.org/";

/// How a target is picked.
pub(super) const LB_METHOD: &str = "lb-method";
/// Connections to targets begin with a PROXY header: `true` and `v1`, `v2`.
pub(super) const PROXY_PROTOCOL: &str = "proxy-protocol";
/// Its listeners speak HTTP, and write the client's address into a header.
pub(super) const FORWARDED_FOR: &str = "x-forwarded-for";
/// The certificate that TLS ends with.
pub(super) const TLS: &str = "default-tls-container-ref";
/// Whether targets are probed.
pub(super) const HEALTH_MONITOR: &str = "enable-health-monitor";
/// The address, which the controller writes itself.
pub(super) const ADDRESS: &str = "load-balancer-address";

/// Asks for one without an address on the internet.
const INTERNAL: &str = "service.beta.kubernetes.io/openstack-internal-load-balancer";

/// The value of one of the keys.
pub(super) fn get<'s>(service: &'s Service, key: &str) -> Option<&'s str> {
    service.annotations.get(&format!("{PREFIX}{key}")).map(str::trim)
}

/// One of the keys in full.
pub(super) fn key(key: &str) -> String {
    format!("{PREFIX}{key}")
}

/// Whether a key is switched on or off: the controller reads these two words only.
pub(super) fn switch(service: &Service, key: &str) -> Option<bool> {
    get(service, key)?.parse().ok()
}

/// Whether a Service asks for an internal one.
pub(super) fn is_internal(service: &Service) -> bool {
    service.annotations.is(INTERNAL, "true")
}

/// What the annotations hold.
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
