//! The keys of the annotations that the controllers read, and lists within their values. Most
//! constants are keys without their common prefix.

use uturn_model::{Node, Service};

use crate::cloud::{Annotation, ValueKind};

const PREFIX: &str = "service.beta.kubernetes.io/aws-load-balancer-";

/// The annotation that chooses the controller and product of a Service.
pub(super) const TYPE: &str = "type";
/// The annotation for the kind of targets: `instance` for nodes, `ip` for pods.
pub(super) const TARGET_TYPE: &str = "nlb-target-type";
/// The annotation for the kind of address: `internal` or `internet-facing`.
pub(super) const SCHEME: &str = "scheme";
/// The annotation that asks the in-tree controller for an internal load balancer.
pub(super) const INTERNAL: &str = "internal";
/// The annotation that, if `*`, begins connections to targets with a PROXY header.
pub(super) const PROXY_PROTOCOL: &str = "proxy-protocol";
/// The annotation with attributes of target groups: `key=value` pairs.
pub(super) const TARGET_GROUP_ATTRIBUTES: &str = "target-group-attributes";
/// The annotation with attributes of the load balancer: `key=value` pairs.
pub(super) const ATTRIBUTES: &str = "attributes";
/// The attribute that determines to which address the load balancer's name resolves.
pub(super) const CLIENT_ROUTING: &str = "dns_record.client_routing_policy";
/// The annotation that states whether each address serves the targets of all zones.
pub(super) const CROSS_ZONE: &str = "cross-zone-load-balancing-enabled";
/// The annotation with the certificate with which the load balancer terminates TLS.
pub(super) const CERTIFICATE: &str = "ssl-cert";
/// The annotation with the ports at which the load balancer terminates TLS; all ports without it.
pub(super) const TLS_PORTS: &str = "ssl-ports";
/// The annotation for the protocol of targets: `http`, `https`, `tcp`, `ssl`.
pub(super) const BACKEND_PROTOCOL: &str = "backend-protocol";

/// The annotation for the protocol of health checks: `http`, `https`, `tcp`.
pub(super) const CHECK_PROTOCOL: &str = "healthcheck-protocol";
/// The annotation for the port of health checks: a number, or `traffic-port`.
pub(super) const CHECK_PORT: &str = "healthcheck-port";
/// The annotation with the subnets in which the load balancer has an address, one for each zone.
pub(super) const SUBNETS: &str = "subnets";
/// The annotation with Elastic IP addresses, one for each subnet.
pub(super) const ADDRESSES: &str = "eip-allocations";
/// The annotation with private addresses that the user chooses, one for each subnet.
pub(super) const PRIVATE_ADDRESSES: &str = "private-ipv4-addresses";

/// The annotation with the user's own security groups, which replace those that the controller
/// makes.
pub(super) const SECURITY_GROUPS: &str = "security-groups";

/// The annotation that asks the controller to open the groups of the targets for them.
pub(super) const MANAGES_GROUPS: &str = "manage-backend-security-group-rules";

/// The annotation for the families of the load balancer's addresses: `ipv4`, `dualstack`.
pub(super) const ADDRESS_TYPE: &str = "ip-address-type";

/// The annotation with labels of the nodes that are targets: `key=value`, or `key=` and `key` for
/// no value.
pub(super) const NODE_LABELS: &str = "target-node-labels";

/// Returns whether a node has the labels that targets must have.
pub(super) fn has_target_labels(service: &Service, node: &Node) -> bool {
    let wanted = get(service, NODE_LABELS).unwrap_or_default();
    let mut wanted = wanted.split(',').map(str::trim).filter(|pair| !pair.is_empty());
    wanted.all(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        node.labels.is(key.trim(), value.trim())
    })
}

/// Returns a key with its prefix.
pub(super) fn key(name: &str) -> String {
    format!("{PREFIX}{name}")
}

/// Returns the value of an annotation by its key without the prefix.
pub(super) fn get<'s>(service: &'s Service, name: &str) -> Option<&'s str> {
    service.annotations.get(&key(name)).map(str::trim)
}

/// Returns the last value of an attribute in a list of `key=value` pairs.
pub(super) fn attribute<'s>(service: &'s Service, list: &str, name: &str) -> Option<&'s str> {
    let mut pairs = get(service, list)?.split(',').filter_map(|pair| pair.split_once('='));
    Some(pairs.rfind(|(key, _)| key.trim() == name)?.1.trim())
}

/// Returns whether a list of `key=value` pairs switches an attribute on or off. Returns `None` if
/// the list does not contain the attribute.
pub(super) fn switch(service: &Service, list: &str, name: &str) -> Option<bool> {
    attribute(service, list, name)?.parse().ok()
}

/// Returns whether the load balancer terminates TLS at a port: a certificate is named, and the port
/// is one of those for TLS.
pub(super) fn ends_tls(service: &Service, port: u16, name: Option<&str>) -> bool {
    let has_certificate = get(service, CERTIFICATE).is_some_and(|text| !text.is_empty());
    let is_listed = get(service, TLS_PORTS).is_none_or(|ports| {
        let mut all = ports.split(',').map(str::trim);
        all.any(|listed| listed == "*" || listed.parse() == Ok(port) || name == Some(listed))
    });
    has_certificate && is_listed
}

/// The annotations that the controllers read, with the kinds of their values.
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
    of(MANAGES_GROUPS, ValueKind::Switch),
    of(ADDRESS_TYPE, ValueKind::Words(&["ipv4", "dualstack"])),
    of(NODE_LABELS, ValueKind::Names),
];

/// The attributes of load balancers and target groups that are read, with the words of their
/// values.
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
