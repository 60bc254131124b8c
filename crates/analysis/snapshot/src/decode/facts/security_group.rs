//! Reads security groups in Facts.

use uturn_clouds::cloud::stand_in;
use uturn_document::Node;
use uturn_lb::client_address::canonical_range;
use uturn_model::network::{SecurityGroup, SecurityRule};
use uturn_model::{Family, IpNet, Protocol};

use crate::decode::value::one_of;
use crate::decode::{Doc, FromNode};

pub(crate) fn security_group<'d>(doc: &Doc<'d>, name: &str, node: &'d Node<'d>) -> SecurityGroup {
    doc.only(node, &["inbound", "outbound"]);
    let rules = |key| doc.maps(node, key).flat_map(|item| security_rules(doc, item)).collect();
    SecurityGroup {
        name: name.into(),
        inbound: rules("inbound"),
        outbound: rules("outbound"),
        origin: doc.origin(node),
    }
}

/// Reads a rule. That for load balancers is one for each family.
fn security_rules<'d>(doc: &Doc<'d>, node: &'d Node<'d>) -> Vec<SecurityRule> {
    doc.only(node, &["action", "protocol", "ports", "peer"]);
    let accept = doc.need::<Action>(node, "action");
    let protocol = doc.read::<Any<Protocol>>(node, "protocol");
    let ports = doc.read::<Any<Ports>>(node, "ports");
    let peer = doc.read::<Peer>(node, "peer");
    let Some(Action(accept)) = accept else { return Vec::new() };
    let rule = |peer: Option<IpNet>| SecurityRule {
        accept,
        protocol: protocol.as_ref().and_then(|protocol| protocol.0),
        ports: ports.as_ref().and_then(|range| range.0.as_ref()).map(|ports| (ports.0, ports.1)),
        peer,
        origin: doc.origin(node),
    };
    match peer {
        None | Some(Peer::All) => vec![rule(None)],
        Some(Peer::Range(net)) => vec![rule(Some(canonical_range(net)))],
        Some(Peer::LoadBalancers) => {
            Family::BOTH.map(|family| rule(Some(IpNet::from(stand_in(family))))).into()
        }
    }
}

/// The other side of a rule.
enum Peer {
    All,
    Range(IpNet),
    /// The load balancers whose own addresses are not given.
    LoadBalancers,
}

impl FromNode for Peer {
    const EXPECTED: &'static str = "an address range, all or load-balancers";
    const IS_TEXT: bool = IpNet::IS_TEXT;

    fn from_node(node: &Node<'_>) -> Result<Self, String> {
        match node.as_str() {
            Some("all" | "ALL") => Ok(Self::All),
            Some("load-balancers") => Ok(Self::LoadBalancers),
            _ => match IpNet::from_node(node) {
                Ok(net) => Ok(Self::Range(net)),
                Err(_) => Err(Self::EXPECTED.to_owned()),
            },
        }
    }
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
