//! Reads kube-proxy's own configuration: a document in its ConfigMap, or its command line.

use std::str::FromStr;

use ipnet::IpNet;
use uturn_document::Node;
use uturn_model::proxy::{LocalDetector, NodePortAddresses};
use uturn_model::{NamespacedName, Origin, ProxyMode, Text};

use super::Doc;

/// The settings of a configuration. Settings that it leaves out are `None`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ProxyConfig {
    pub(crate) mode: Option<(ProxyMode, Origin)>,
    pub(crate) cluster_cidrs: Option<(Vec<IpNet>, Origin)>,
    pub(crate) detector: Option<(LocalDetector, Origin)>,
    pub(crate) node_port_addresses: Option<NodePortAddresses>,
    pub(crate) masquerade_all: Option<bool>,
    pub(crate) masquerade_bit: Option<u8>,
    pub(crate) localhost_node_ports: Option<bool>,
    pub(crate) ipvs_scheduler: Option<Text>,
    pub(crate) strict_arp: Option<bool>,
    pub(crate) conntrack_tcp_be_liberal: Option<bool>,
    pub(crate) ip_mode_gate: Option<bool>,
    /// The name that every kube-proxy with this configuration uses for its node.
    pub(crate) hostname_override: Option<(Text, Origin)>,
    /// The ConfigMap that has the configuration.
    pub(crate) config_map: Option<NamespacedName>,
}

/// The feature gate that decides whether `ipMode` is read.
const IP_MODE_GATE: &str = "LoadBalancerIPMode";

/// Reads a KubeProxyConfiguration.
pub(crate) fn read(doc: &Doc<'_>) -> ProxyConfig {
    let root = doc.root;
    let mut config = ProxyConfig {
        // An empty mode means the platform's default, like a missing one.
        mode: root
            .get("mode")
            .filter(|mode| mode.as_str() != Some(""))
            .and_then(|mode| doc.value::<ProxyMode>(mode).map(|value| (value, doc.origin(mode)))),
        cluster_cidrs: root.get("clusterCIDR").and_then(|node| cidrs(doc, node)),
        node_port_addresses: node_port_addresses(doc, root),
        ..ProxyConfig::default()
    };
    config.detector = detector(doc, root);
    config.hostname_override = root.get("hostnameOverride").and_then(|node| {
        let name = doc.read::<Text>(root, "hostnameOverride")?;
        (!name.trim().is_empty()).then(|| (name, doc.origin(node)))
    });
    if let Some(iptables) = doc.map(root, "iptables") {
        config.masquerade_all = doc.read(iptables, "masqueradeAll");
        config.masquerade_bit = masquerade_bit(doc, iptables);
        config.localhost_node_ports = doc.read(iptables, "localhostNodePorts");
    }
    if config.mode.as_ref().is_some_and(|(mode, _)| *mode == ProxyMode::Nftables)
        && let Some(nftables) = doc.map(root, "nftables")
    {
        config.masquerade_all = doc.read(nftables, "masqueradeAll").or(config.masquerade_all);
        config.masquerade_bit = masquerade_bit(doc, nftables).or(config.masquerade_bit);
    }
    if let Some(ipvs) = doc.map(root, "ipvs") {
        config.ipvs_scheduler =
            doc.read::<Text>(ipvs, "scheduler").filter(|scheduler| !scheduler.is_empty());
        config.strict_arp = doc.read(ipvs, "strictARP");
    }
    if let Some(conntrack) = doc.map(root, "conntrack") {
        config.conntrack_tcp_be_liberal = doc.read(conntrack, "tcpBeLiberal");
    }
    if let Some(gates) = doc.map(root, "featureGates") {
        config.ip_mode_gate = doc.read(gates, IP_MODE_GATE);
    }
    config
}

fn masquerade_bit<'d>(doc: &Doc<'d>, parent: &'d Node<'d>) -> Option<u8> {
    let bit = doc.read::<u8>(parent, "masqueradeBit")?;
    if bit > 31 {
        doc.fault(
            parent.get("masqueradeBit")?,
            format!("expected a bit from 0 to 31, found {bit}"),
        );
        return None;
    }
    Some(bit)
}

/// Parses ranges that are separated by commas. Returns `None` if the text is empty.
fn cidrs(doc: &Doc<'_>, node: &Node<'_>) -> Option<(Vec<IpNet>, Origin)> {
    let ranges = node.as_str().map(comma_separated::<IpNet>);
    match ranges {
        Some(Some(ranges)) if ranges.is_empty() => None,
        Some(Some(ranges)) => Some((ranges, doc.origin(node))),
        _ => {
            let expected = "expected ranges such as 10.1.0.0/16";
            doc.fault(node, format!("{expected}, found {}", node.describe()));
            None
        }
    }
}

fn comma_separated<T: FromStr>(text: &str) -> Option<Vec<T>> {
    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
    parts.map(|part| part.parse().ok()).collect()
}

fn node_port_addresses<'d>(doc: &Doc<'d>, root: &'d Node<'d>) -> Option<NodePortAddresses> {
    let items = doc.items(root, "nodePortAddresses");
    match items {
        [] => None,
        [word] if word.as_str() == Some("primary") => Some(NodePortAddresses::Primary),
        _ => Some(NodePortAddresses::Ranges(doc.list(root, "nodePortAddresses"))),
    }
}

fn detector<'d>(doc: &Doc<'d>, root: &'d Node<'d>) -> Option<(LocalDetector, Origin)> {
    let mode = root.get("detectLocalMode").filter(|mode| mode.as_str() != Some(""))?;
    let local = doc.map(root, "detectLocal");
    let text = |key: &str, old: &str| {
        let node = local.and_then(|local| local.get(key)).or_else(|| root.get(old));
        match node {
            Some(node) => doc.value::<Text>(node),
            None => {
                doc.missing(
                    root,
                    &format!("detectLocal.{key}"),
                    "a text, since detectLocalMode asks for it",
                );
                None
            }
        }
    };
    let detector = match mode.as_str() {
        // The ranges are those of `clusterCIDR`.
        Some("ClusterCIDR") => return None,
        Some("NodeCIDR") => LocalDetector::NodeCidr,
        Some("BridgeInterface") => {
            LocalDetector::BridgeInterface(text("bridgeInterface", "bridgeInterface")?)
        }
        Some("InterfaceNamePrefix") => {
            LocalDetector::InterfaceNamePrefix(text("interfaceNamePrefix", "interfaceNamePrefix")?)
        }
        _ => {
            let expected = "expected ClusterCIDR, NodeCIDR, BridgeInterface or InterfaceNamePrefix";
            doc.fault(mode, format!("{expected}, found {}", mode.describe()));
            return None;
        }
    };
    Some((detector, doc.origin(mode)))
}

/// Reads kube-proxy's command line. Invalid values are ignored: kube-proxy itself rejects them.
pub(crate) fn from_arguments(arguments: &[Text], origin: &Origin) -> ProxyConfig {
    let mut config = ProxyConfig::default();
    let (mut detects_by, mut bridge, mut prefix) = (None, None, None);
    let words = arguments.iter().flat_map(|argument| argument.split_whitespace());
    let mut words = words.peekable();
    while let Some(word) = words.next() {
        let Some(flag) = word.strip_prefix("--") else { continue };
        let (flag, value) = match flag.split_once('=') {
            Some((flag, value)) => (flag, Some(value)),
            None => (flag, words.next_if(|next| !next.starts_with('-'))),
        };
        let value = value.map(|value| value.trim_matches(['"', '\'']));
        let yes = || value.is_none_or(|value| value == "true");
        match (flag, value) {
            ("proxy-mode", Some(mode)) => {
                config.mode = mode.parse().ok().map(|mode| (mode, origin.clone()));
            }
            ("cluster-cidr", Some(ranges)) => {
                let ranges = comma_separated(ranges).filter(|ranges| !ranges.is_empty());
                config.cluster_cidrs = ranges.map(|ranges| (ranges, origin.clone()));
            }
            ("detect-local-mode", mode) => detects_by = mode,
            ("pod-bridge-interface", name) => bridge = name,
            ("pod-interface-name-prefix", name) => prefix = name,
            ("nodeport-addresses", Some("primary")) => {
                config.node_port_addresses = Some(NodePortAddresses::Primary);
            }
            ("nodeport-addresses", Some(ranges)) => {
                let ranges = comma_separated(ranges).filter(|ranges| !ranges.is_empty());
                config.node_port_addresses = ranges.map(NodePortAddresses::Ranges);
            }
            ("masquerade-all", _) => config.masquerade_all = Some(yes()),
            ("iptables-masquerade-bit", Some(bit)) => {
                config.masquerade_bit = bit.parse().ok().filter(|bit| *bit < 32);
            }
            ("iptables-localhost-nodeports", _) => config.localhost_node_ports = Some(yes()),
            ("ipvs-scheduler", Some(name)) if !name.is_empty() => {
                config.ipvs_scheduler = Some(name.into());
            }
            ("ipvs-strict-arp", _) => config.strict_arp = Some(yes()),
            ("feature-gates", Some(gates)) => {
                let mut gates = gates.split(',').filter_map(|gate| gate.split_once('='));
                let gate = gates.rfind(|(name, _)| name.trim() == IP_MODE_GATE);
                config.ip_mode_gate = gate.and_then(|(_, value)| value.trim().parse().ok());
            }
            ("conntrack-tcp-be-liberal", _) => config.conntrack_tcp_be_liberal = Some(yes()),
            _ => {}
        }
    }
    // The names of interfaces only count if the mode requires them.
    let detector = match detects_by {
        Some("NodeCIDR") => Some(LocalDetector::NodeCidr),
        Some("BridgeInterface") => bridge.map(|name| LocalDetector::BridgeInterface(name.into())),
        Some("InterfaceNamePrefix") => {
            prefix.map(|name| LocalDetector::InterfaceNamePrefix(name.into()))
        }
        _ => None,
    };
    config.detector = detector.map(|detector| (detector, origin.clone()));
    config
}

/// Reads a list of ranges in a configuration of ip-masq-agent.
pub(crate) fn ranges<'d>(doc: &Doc<'d>, key: &str) -> Option<Vec<IpNet>> {
    // The keys are compared without case, as Go's decoder does.
    let uturn_document::Value::Map(entries) = &doc.root.value else { return None };
    let entry = entries.iter().find(|entry| entry.key.eq_ignore_ascii_case(key))?;
    let uturn_document::Value::Seq(items) = &entry.value.value else {
        doc.fault(&entry.value, format!("expected a list, found {}", entry.value.describe()));
        return None;
    };
    Some(items.iter().filter_map(|item| doc.value(item)).collect())
}
