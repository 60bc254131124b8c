//! Reads Services.

use std::net::IpAddr;

use ipnet::IpNet;
use uturn_document::{Node, Value};
use uturn_model::service::{IpMode, LbIngress, Policy, ServiceKind, ServicePort, TargetPort};
use uturn_model::{Family, Port, Protocol, Selector, Service, Text};

use super::objects::Objects;
use super::value::one_of;
use super::{Doc, FromNode, fields, meta};

/// Reads a Service.
pub(crate) fn read(doc: &Doc<'_>, objects: &mut Objects) {
    let meta = meta::read(doc);
    let Some(spec) = doc.root.get("spec") else {
        doc.missing(doc.root, "spec", "the Service's ports");
        return;
    };
    if !doc.is_map(spec) {
        return;
    }
    doc.spelled(spec, fields::SERVICE);
    let kind = kind(doc, spec);
    let headless = is_none(spec.get("clusterIP"));
    let ports: Vec<ServicePort> =
        doc.maps(spec, "ports").filter_map(|item| port(doc, item)).collect();
    let listed = doc.items(spec, "ports").len();
    if listed == 0 && !headless && !matches!(kind, Some(ServiceKind::ExternalName(_))) {
        doc.missing(
            spec,
            "ports",
            "at least one port, unless the Service is headless or an ExternalName",
        );
    }
    if listed > 1 {
        check_names(doc, spec, &ports);
    }
    let selector = meta::labels(doc, spec, "selector");
    let external_ips = doc.list(spec, "externalIPs");
    let external_policy = doc.read(spec, "externalTrafficPolicy").unwrap_or_default();
    let internal_policy = doc.read(spec, "internalTrafficPolicy").unwrap_or_default();
    let affinity_seconds = affinity(doc, spec);
    let source_ranges = doc.list::<IpNet>(spec, "loadBalancerSourceRanges");
    let asked_address = spec.get("loadBalancerIP").and_then(Node::as_str);
    let load_balancer = load_balancer(doc);
    let cluster_ips = cluster_ips(doc, spec);
    let families = doc.list::<Family>(spec, "ipFamilies");
    let health_check_node_port = optional_port(doc, spec, "healthCheckNodePort");
    let (Some(meta), Some(kind)) = (meta, kind) else { return };
    let is_pending = kind == ServiceKind::LoadBalancer
        && !cluster_ips.is_empty()
        && load_balancer.is_empty()
        && states_load_balancer(doc);
    let service = Service {
        labels: meta.labels,
        annotations: meta.annotations,
        kind,
        cluster_ips,
        headless,
        ports,
        selector: (!selector.is_empty()).then(|| Selector::labels(selector)),
        external_ips,
        external_policy,
        internal_policy,
        affinity_seconds,
        source_ranges,
        health_check_node_port,
        allocates_node_ports: doc.read(spec, "allocateLoadBalancerNodePorts").unwrap_or(true),
        publishes_not_ready: doc.read(spec, "publishNotReadyAddresses").unwrap_or_default(),
        traffic_distribution: doc.read(spec, "trafficDistribution"),
        load_balancer_class: doc.read(spec, "loadBalancerClass"),
        families,
        asked_address: asked_address.and_then(|text| text.trim().parse().ok()),
        load_balancer,
        is_pending,
        holder: None,
        unjudged: Vec::new(),
        origin: meta.origin,
        name: meta.name,
    };
    if doc.is_written() {
        objects.written_services.insert(service.name.clone());
    }
    objects.services.add(doc, service.name.clone(), service);
}

fn kind<'d>(doc: &Doc<'d>, spec: &'d Node<'d>) -> Option<ServiceKind> {
    let Some(node) = spec.get("type") else { return Some(ServiceKind::ClusterIp) };
    match node.as_str() {
        Some("ClusterIP" | "") => Some(ServiceKind::ClusterIp),
        Some("NodePort") => Some(ServiceKind::NodePort),
        Some("LoadBalancer") => Some(ServiceKind::LoadBalancer),
        Some("ExternalName") => {
            doc.need::<Text>(spec, "externalName").map(ServiceKind::ExternalName)
        }
        _ => {
            let expected = "expected ClusterIP, NodePort, LoadBalancer or ExternalName";
            doc.fault(node, format!("{expected}, found {}", node.describe()));
            None
        }
    }
}

fn is_none(node: Option<&Node<'_>>) -> bool {
    node.and_then(Node::as_str) == Some("None")
}

fn cluster_ips<'d>(doc: &Doc<'d>, spec: &'d Node<'d>) -> Vec<IpAddr> {
    let given = |node: &&Node<'_>| !matches!(node.as_str(), Some("" | "None"));
    let several = doc.items(spec, "clusterIPs").iter().filter(given);
    let mut ips: Vec<IpAddr> = several.filter_map(|ip| doc.value(ip)).collect();
    if ips.is_empty() {
        ips.extend(spec.get("clusterIP").filter(given).and_then(|ip| doc.value::<IpAddr>(ip)));
    }
    ips
}

fn port<'d>(doc: &Doc<'d>, node: &'d Node<'d>) -> Option<ServicePort> {
    doc.spelled(node, fields::SERVICE_PORT);
    let number = doc.need::<Port>(node, "port");
    let name = node.get("name").filter(|name| name.as_str() != Some(""));
    let name = name.and_then(|name| doc.value::<Text>(name));
    let protocol = protocol(doc, node);
    let target = match node.get("targetPort") {
        // A missing port, 0 and an empty text mean the port itself.
        Some(target) if u16::from_node(target) != Ok(0) && target.as_str() != Some("") => {
            doc.value::<TargetPort>(target)
        }
        _ => number.map(TargetPort::Number),
    };
    let node_port = optional_port(doc, node, "nodePort");
    let app_protocol = doc.read(node, "appProtocol");
    Some(ServicePort { name, protocol, port: number?, target: target?, node_port, app_protocol })
}

/// Reads the protocol of a port. As in the API server, an empty one means TCP.
pub(super) fn protocol<'d>(doc: &Doc<'d>, port: &'d Node<'d>) -> Protocol {
    let given = port.get("protocol").filter(|protocol| protocol.as_str() != Some(""));
    given.and_then(|protocol| doc.value(protocol)).unwrap_or_default()
}

/// Reads a port that may be missing. Zero counts as missing.
fn optional_port<'d>(doc: &Doc<'d>, parent: &'d Node<'d>, key: &str) -> Option<Port> {
    let node = parent.get(key).filter(|node| u16::from_node(node) != Ok(0))?;
    doc.value(node)
}

/// Reports ports without a name, and equal names or ports, in a Service with several ports.
fn check_names<'d>(doc: &Doc<'d>, spec: &'d Node<'d>, ports: &[ServicePort]) {
    let items = doc.items(spec, "ports");
    for (at, item) in items.iter().enumerate() {
        let name = |node: &Node<'_>| node.get("name").and_then(Node::as_str).map(str::to_owned);
        match name(item) {
            None if matches!(item.value, Value::Map(_)) => {
                doc.missing(item, "name", "a name, since the Service has several ports");
            }
            Some(this) if items[..at].iter().any(|item| name(item).as_ref() == Some(&this)) => {
                doc.fault(item, format!("two ports have the name {this:?}"));
            }
            _ => {}
        }
    }
    for (at, port) in ports.iter().enumerate() {
        let same =
            |other: &&ServicePort| (other.port, other.protocol) == (port.port, port.protocol);
        if ports.len() == items.len() && ports[..at].iter().any(|earlier| same(&earlier)) {
            doc.fault(&items[at], format!("two ports are {} {}", port.protocol, port.port));
        }
    }
}

fn affinity<'d>(doc: &Doc<'d>, spec: &'d Node<'d>) -> Option<u32> {
    if spec.get("sessionAffinity").and_then(Node::as_str) != Some("ClientIP") {
        return None;
    }
    let config = doc.map(spec, "sessionAffinityConfig");
    let client = config.and_then(|config| doc.map(config, "clientIP"));
    client.and_then(|client| doc.read(client, "timeoutSeconds")).or(Some(10_800))
}

/// Reads `status.loadBalancer.ingress` of a Service or an Ingress.
pub(crate) fn load_balancer(doc: &Doc<'_>) -> Vec<LbIngress> {
    let status = doc.map(doc.root, "status");
    let Some(status) = status.and_then(|status| doc.map(status, "loadBalancer")) else {
        return Vec::new();
    };
    let given = |node: &&Node<'_>| node.as_str() != Some("");
    doc.maps(status, "ingress")
        .map(|item| LbIngress {
            ip: item.get("ip").filter(given).and_then(|ip| doc.value(ip)),
            hostname: item.get("hostname").filter(given).and_then(|name| doc.value(name)),
            mode: doc.read(item, "ipMode").unwrap_or_default(),
        })
        .collect()
}

/// Returns whether the status is given as API servers write it, with or without an address.
pub(crate) fn states_load_balancer(doc: &Doc<'_>) -> bool {
    let status = doc.root.get("status");
    status.is_some_and(|status| status.get("loadBalancer").is_some())
}

impl FromNode for Policy {
    const EXPECTED: &'static str = "Cluster or Local";

    fn from_node(node: &Node<'_>) -> Result<Self, String> {
        // Old objects have an empty policy if it does not apply.
        one_of(node, &[("Cluster", Self::Cluster), ("Local", Self::Local), ("", Self::Cluster)])
            .map_err(|_| String::new())
    }
}

impl FromNode for IpMode {
    const EXPECTED: &'static str = "VIP or Proxy";

    fn from_node(node: &Node<'_>) -> Result<Self, String> {
        one_of(node, &[("VIP", Self::Vip), ("Proxy", Self::Proxy)])
    }
}

impl FromNode for TargetPort {
    const EXPECTED: &'static str = "a port from 1 to 65535 or a port's name";

    fn from_node(node: &Node<'_>) -> Result<Self, String> {
        match &node.value {
            Value::String(name) => Ok(Self::Name((&**name).into())),
            _ => Port::from_node(node).map(Self::Number),
        }
    }
}

impl FromNode for Family {
    const EXPECTED: &'static str = "IPv4 or IPv6";

    fn from_node(node: &Node<'_>) -> Result<Self, String> {
        one_of(node, &[("IPv4", Self::V4), ("IPv6", Self::V6)])
    }
}
