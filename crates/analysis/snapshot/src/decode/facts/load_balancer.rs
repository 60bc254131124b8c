//! Reads load balancers in Facts.

use std::net::{IpAddr, Ipv4Addr};

use uturn_clouds::stated::Kind;
use uturn_document::Node;
use uturn_model::lb::{Delivery, ListenerFact, LoadBalancerFact, StatedTargets, TargetNodes};
use uturn_model::{Family, Port, Text};

use crate::decode::{Doc, FromNode, meta};

/// A load balancer that Facts state.
pub(super) enum Stated {
    /// A load balancer with an address.
    At(LoadBalancerFact),
    /// A load balancer of which only the host name is stated. Its address is derived later.
    Named(LoadBalancerFact),
}

pub(super) fn load_balancer<'d>(doc: &Doc<'d>, node: &'d Node<'d>) -> Option<Stated> {
    doc.only(
        node,
        &[
            "vip",
            "name",
            "hostname",
            "zone",
            "product",
            "scope",
            "probeSource",
            "measured",
            "securityGroups",
            "listeners",
        ],
    );
    let hostname = doc.read::<Text>(node, "hostname");
    let hostname = hostname.map(|name| name.trim_end_matches('.').to_ascii_lowercase().into());
    let is_named = node.get("hostname").is_some() && node.get("vip").is_none();
    let vip =
        if is_named { Some(IpAddr::V4(Ipv4Addr::UNSPECIFIED)) } else { doc.need(node, "vip") };
    let security_groups = node.get("securityGroups").map(|_| doc.list(node, "securityGroups"));
    let product = doc.read::<Product>(node, "product").map(|product| product.0);
    let listeners: Vec<_> =
        doc.maps(node, "listeners").filter_map(|item| listener(doc, item)).collect();
    let mut fact = LoadBalancerFact {
        name: doc.read(node, "name"),
        hostname,
        zone: doc.read(node, "zone"),
        product,
        scope: doc.read(node, "scope"),
        probe_source: doc.read(node, "probeSource"),
        measured: doc.read(node, "measured").unwrap_or(false),
        security_groups,
        ..LoadBalancerFact::new(vip?, doc.origin(node))
    };
    let mut read = Vec::new();
    for (item, listener) in listeners {
        check(doc, item, &fact, &listener);
        read.push(listener);
    }
    fact.listeners = read;
    Some(if is_named { Stated::Named(fact) } else { Stated::At(fact) })
}

fn listener<'d>(doc: &Doc<'d>, node: &'d Node<'d>) -> Option<(&'d Node<'d>, ListenerFact)> {
    doc.only(
        node,
        &[
            "port",
            "protocol",
            "snat",
            "delivery",
            "healthCheck",
            "proxyHeader",
            "scheduler",
            "targets",
        ],
    );
    let port = doc.need::<Port>(node, "port");
    let targets = doc.map(node, "targets").and_then(|map| targets(doc, map, port));
    let fact = ListenerFact {
        protocol: doc.read(node, "protocol"),
        snat: doc.read(node, "snat"),
        delivery: doc.read(node, "delivery"),
        health_check: doc.read(node, "healthCheck"),
        proxy_header: doc.read(node, "proxyHeader"),
        scheduler: doc.read(node, "scheduler"),
        targets,
        ..ListenerFact::new(port?, doc.origin(node))
    };
    Some((node, fact))
}

fn targets<'d>(doc: &Doc<'d>, node: &'d Node<'d>, listener: Option<Port>) -> Option<StatedTargets> {
    doc.only(node, &["nodes", "nodeLabels", "port"]);
    let is_all = node.get("nodes").and_then(Node::as_str) == Some("all");
    let nodes = match (node.get("nodes"), node.get("nodeLabels")) {
        (Some(_), Some(both)) => {
            doc.fault(both, "nodes are chosen by name already");
            return None;
        }
        (None, None) => {
            doc.missing(node, "nodes", "all, a list of names, or nodeLabels instead");
            return None;
        }
        (Some(_), None) if is_all => TargetNodes::All,
        (Some(_), None) => TargetNodes::Named(doc.list(node, "nodes")),
        (None, Some(_)) => TargetNodes::Labelled(meta::labels(doc, node, "nodeLabels")),
    };
    let port = match node.get("port") {
        Some(_) => doc.read(node, "port"),
        None => listener,
    };
    Some(StatedTargets { nodes, port: port? })
}

/// Reports values that are missing or contradict each other in a listener that no Service owns.
fn check<'d>(doc: &Doc<'d>, node: &'d Node<'d>, fact: &LoadBalancerFact, listener: &ListenerFact) {
    let Some(targets) = &listener.targets else { return };
    let delivery = match fact.product.as_deref().and_then(Kind::named) {
        None if listener.snat.is_none() => {
            doc.missing(
                node,
                "snat",
                "true or false, or a product: otherwise the source that targets see is not known",
            );
            return;
        }
        None => listener.delivery.unwrap_or_default(),
        Some(kind) => match kind.profile(listener, Family::of(fact.vip)) {
            Some(profile) => listener.delivery.unwrap_or(profile.delivery),
            None => {
                let product = fact.product.as_deref().unwrap_or_default();
                doc.fault(node, format!("{product} has no listeners of this protocol"));
                return;
            }
        },
    };
    if delivery == Delivery::KeepsAddress && targets.port != listener.port {
        let at = node.get("targets").and_then(|targets| targets.get("port")).unwrap_or(node);
        let message = "packets keep the address and port that were called, so targets cannot \
                       have another port: state delivery: to-target, or the listener's port";
        doc.fault(at, message);
    }
}

/// The name of a product whose behaviour is described.
struct Product(Text);

impl FromNode for Product {
    const EXPECTED: &'static str = "a product";
    const IS_TEXT: bool = true;

    fn from_node(node: &Node<'_>) -> Result<Self, String> {
        let text = Text::from_node(node)?;
        match Kind::named(&text) {
            Some(_) => Ok(Self(text)),
            None => Err(format!("one of {}", Kind::names().join(", "))),
        }
    }
}
