//! The keys that the controllers read, and lists within their values.

use uturn_model::{Node, Service};

use crate::cloud::{Annotation, ValueKind};

const PREFIX: &str = "service.beta.kubernetes.io/aws-load-balancer-";

/// Which controller and product a Service asks for.
pub(super) const TYPE: &str = "type";
/// Nodes or pods as targets: `instance`, `ip`.
pub(super) const TARGET_TYPE: &str = "nlb-target-type";
/// `internal` or `internet-facing`.
pub(super) const SCHEME: &str = "scheme";
/// Asks the in-tree controller for an internal one.
pub(super) const INTERNAL: &str = "internal";
/// `*`: connections to targets begin with a PROXY header.
pub(super) const PROXY_PROTOCOL: &str = "proxy-protocol";
/// `key=value` pairs of target groups.
pub(super) const TARGET_GROUP_ATTRIBUTES: &str = "target-group-attributes";
/// `key=value` pairs of the load balancer.
pub(super) const ATTRIBUTES: &str = "attributes";
/// The attribute that says which address its name leads to.
pub(super) const CLIENT_ROUTING: &str = "dns_record.client_routing_policy";
/// Whether each address serves the targets of all zones.
pub(super) const CROSS_ZONE: &str = "cross-zone-load-balancing-enabled";
/// The certificate that TLS ends with.
pub(super) const CERTIFICATE: &str = "ssl-cert";
/// The ports at which TLS ends; all without it.
pub(super) const TLS_PORTS: &str = "ssl-ports";
/// What targets speak: `http`, `https`, `tcp`, `ssl`.
pub(super) const BACKEND_PROTOCOL: &str = "backend-protocol";

/// What health checks speak: `http`, `https`, `tcp`.
pub(super) const CHECK_PROTOCOL: &str = "healthcheck-protocol";
/// The port that health checks ask: a number, or `traffic-port`.
pub(super) const CHECK_PORT: &str = "healthcheck-port";
/// The subnets that the load balancer has an address in, one for each zone.
pub(super) const SUBNETS: &str = "subnets";
/// Elastic addresses, one for each subnet.
pub(super) const ADDRESSES: &str = "eip-allocations";
/// Addresses of its own choice, one for each subnet.
pub(super) const PRIVATE_ADDRESSES: &str = "private-ipv4-addresses";

/// Security groups of the user's own, which replace those that the controller makes.
pub(super) const SECURITY_GROUPS: &str = "security-groups";

/// The families of its own addresses: `ipv4`, `dualstack`.
pub(super) const ADDRESS_TYPE: &str = "ip-address-type";

/// Labels of the nodes that are targets: `key=value`, or `key=` and `key` for no value.
pub(super) const NODE_LABELS: &str = "target-node-labels";

/// Whether a node has the labels that targets have to have.
pub(super) fn has_target_labels(service: &Service, node: &Node) -> bool {
    let wanted = get(service, NODE_LABELS).unwrap_or_default();
    let mut wanted = wanted.split(',').map(str::trim).filter(|pair| !pair.is_empty());
    wanted.all(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        node.labels.is(key.trim(), value.trim())
    })
}

/// A key as it is written.
pub(super) fn key(name: &str) -> String {
    format!("{PREFIX}{name}")
}

/// The value of one of the keys.
pub(super) fn get<'s>(service: &'s Service, name: &str) -> Option<&'s str> {
    service.annotations.get(&key(name)).map(str::trim)
}

/// The value of an attribute in a list of `key=value` pairs.
pub(super) fn attribute<'s>(service: &'s Service, list: &str, name: &str) -> Option<&'s str> {
    let mut pairs = get(service, list)?.split(',').filter_map(|pair| pair.split_once('='));
    Some(pairs.rfind(|(key, _)| key.trim() == name)?.1.trim())
}

/// Whether a list of `key=value` pairs says that an attribute is on or off. Returns `None` if it
/// does not name it.
pub(super) fn switch(service: &Service, list: &str, name: &str) -> Option<bool> {
    attribute(service, list, name)?.parse().ok()
}

/// Whether TLS ends at a port: a certificate is named, and the port is among those for it.
pub(super) fn ends_tls(service: &Service, port: u16, name: Option<&str>) -> bool {
    let has_certificate = get(service, CERTIFICATE).is_some_and(|text| !text.is_empty());
    let is_listed = get(service, TLS_PORTS).is_none_or(|ports| {
        let mut all = ports.split(',').map(str::trim);
        all.any(|listed| listed == "*" || listed.parse() == Ok(port) || name == Some(listed))
    });
    has_certificate && is_listed
}

/// What the annotations hold that the controllers read.
pub(super) const READ: &[Annotation] = &[
    of(TYPE, ValueKind::Words(&["nlb", "nlb-ip", "external"])),
    of(TARGET_TYPE, ValueKind::Words(&["instance", "ip"])),
    of(SCHEME, ValueKind::Words(&["internal", "internet-facing"])),
    of(INTERNAL, ValueKind::Switch),
    of(PROXY_PROTOCOL, ValueKind::Names),
    of(TARGET_GROUP_ATTRIBUTES, ATTRIBUTE_WORDS),
    of(ATTRIBUTES, ATTRIBUTE_WORDS),
    of(CROSS_ZONE, ValueKind::Switch),
    of(CERTIFICATE, ValueKind::Names),
    of(TLS_PORTS, ValueKind::Ports),
    of(BACKEND_PROTOCOL, ValueKind::Words(&["http", "https", "tcp", "ssl"])),
    of(CHECK_PROTOCOL, ValueKind::Words(&["http", "https", "tcp"])),
    of(CHECK_PORT, ValueKind::Words(&["traffic-port"])),
    of(SUBNETS, ValueKind::Names),
    of(ADDRESSES, ValueKind::Names),
    of(PRIVATE_ADDRESSES, ValueKind::Names),
    of(SECURITY_GROUPS, ValueKind::Names),
    of(ADDRESS_TYPE, ValueKind::Words(&["ipv4", "dualstack"])),
    of(NODE_LABELS, ValueKind::Names),
];

/// The attributes of load balancers and of target groups that are read.
const ATTRIBUTE_WORDS: ValueKind = ValueKind::Words(&[
    "true",
    "false",
    CLIENT_ROUTING,
    "availability_zone_affinity",
    "partial_availability_zone_affinity",
    "any_availability_zone",
    "load_balancing.cross_zone.enabled",
    "preserve_client_ip.enabled",
    "proxy_protocol_v2.enabled",
]);

const fn of(name: &'static str, holds: ValueKind) -> Annotation {
    Annotation::below(PREFIX, name, holds)
}
