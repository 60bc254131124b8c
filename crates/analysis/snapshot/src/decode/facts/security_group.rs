//! Reads security groups in Facts.

use uturn_document::Node;
use uturn_lb::client_address::canonical_range;
use uturn_model::network::{SecurityGroup, SecurityRule};
use uturn_model::{IpNet, Protocol};

use crate::decode::value::one_of;
use crate::decode::{Doc, FromNode};

pub(crate) fn security_group<'d>(doc: &Doc<'d>, name: &str, node: &'d Node<'d>) -> SecurityGroup {
    doc.only(node, &["inbound", "outbound"]);
    let rules = |key| doc.maps(node, key).filter_map(|item| security_rule(doc, item)).collect();
    SecurityGroup {
        name: name.into(),
        inbound: rules("inbound"),
        outbound: rules("outbound"),
        origin: doc.origin(node),
    }
}

fn security_rule<'d>(doc: &Doc<'d>, node: &'d Node<'d>) -> Option<SecurityRule> {
    doc.only(node, &["action", "protocol", "ports", "peer"]);
    let accept = doc.need::<Action>(node, "action");
    let protocol = doc.read::<Any<Protocol>>(node, "protocol");
    let ports = doc.read::<Any<Ports>>(node, "ports");
    let peer = doc.read::<Any<IpNet>>(node, "peer");
    Some(SecurityRule {
        accept: accept?.0,
        protocol: protocol.and_then(|protocol| protocol.0),
        ports: ports.and_then(|range| range.0).map(|ports| (ports.0, ports.1)),
        peer: peer.and_then(|peer| peer.0).map(canonical_range),
        origin: doc.origin(node),
    })
}

struct Action(bool);

impl FromNode for Action {
    const EXPECTED: &'static str = "accept or drop";

    fn from_node(node: &Node<'_>) -> Result<Self, String> {
        one_of(node, &[("accept", true), ("drop", false)]).map(Self)
    }
}

/// A value, or `all`.
struct Any<T>(Option<T>);

impl<T: FromNode> FromNode for Any<T> {
    const EXPECTED: &'static str = T::EXPECTED;
    const IS_TEXT: bool = T::IS_TEXT;

    fn from_node(node: &Node<'_>) -> Result<Self, String> {
        match node.as_str() {
            Some("all" | "ALL") => Ok(Self(None)),
            _ => match T::from_node(node) {
                Ok(value) => Ok(Self(Some(value))),
                Err(_) => Err(format!("{} or all", T::EXPECTED)),
            },
        }
    }
}

struct Ports(u16, u16);

impl FromNode for Ports {
    const EXPECTED: &'static str = "a port, a range such as 30000-32768,";

    fn from_node(node: &Node<'_>) -> Result<Self, String> {
        if let Ok(port) = u16::from_node(node) {
            return Ok(Self(port, port));
        }
        let text = node.as_str().ok_or_else(String::new)?;
        let (first, last) = text.split_once('-').unwrap_or((text, text));
        match (first.trim().parse(), last.trim().parse()) {
            (Ok(first), Ok(last)) if first <= last => Ok(Self(first, last)),
            _ => Err(String::new()),
        }
    }
}
