//! The facts that kube-proxy knows about its own node.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use uturn_model::proxy::{LocalDetector, NodePortAddresses};
use uturn_model::{Family, Node, ProxyMode, ProxySettings};

use crate::features::Planning;

/// Facts of one node in one family.
pub(crate) struct NodeFacts<'a> {
    /// The node's primary address, or the loopback address if none is known.
    pub(crate) address: IpAddr,
    /// All known addresses of the node.
    pub(crate) addresses: Vec<IpAddr>,
    /// The means by which traffic of the node's pods is recognised.
    pub(crate) local: Local<'a>,
    /// The addresses of the node that accept NodePorts.
    pub(crate) node_ports: NodePortsOn,
    /// The ranges that contain these addresses; empty if no ranges are set.
    pub(crate) node_port_ranges: Vec<IpNet>,
    /// Whether any address accepts NodePorts, including localhost.
    pub(crate) any_node_port: bool,
    /// Whether 127.0.0.0/8 accepts NodePorts.
    pub(crate) localhost: bool,
    /// The major and minor version of the node's kernel.
    pub(crate) kernel: Option<(u16, u16)>,
}

/// The means by which traffic from pods is recognised, in one family.
pub(crate) enum Local<'a> {
    Range(IpNet),
    Interface(&'a str),
    InterfacePrefix(&'a str),
    /// Traffic from pods is not recognised.
    Unknown,
}

/// The addresses of a node that accept NodePorts.
pub(crate) enum NodePortsOn {
    All,
    These(Vec<IpAddr>),
}

impl<'a> NodeFacts<'a> {
    pub(super) fn new(
        node: &'a Node,
        settings: &'a ProxySettings,
        family: Family,
        planning: Planning,
    ) -> Self {
        let addresses: Vec<IpAddr> = if node.internal_ips.is_empty() {
            node.external_ips.iter()
        } else {
            node.internal_ips.iter()
        }
        .copied()
        .filter(|ip| Family::of(*ip) == family)
        .collect();
        let loopback = match family {
            Family::V4 => IpAddr::V4(Ipv4Addr::LOCALHOST),
            Family::V6 => IpAddr::V6(Ipv6Addr::LOCALHOST),
        };
        let ranges = match node_port_ranges(addresses.first(), settings, family, planning) {
            None if settings.mode.value == ProxyMode::Nftables && planning.primary_if_unstated => {
                let stated = stated_ranges(settings, family);
                let primary = addresses.first().copied().unwrap_or(loopback);
                stated.is_empty().then(|| vec![IpNet::from(primary)])
            }
            ranges => ranges,
        };
        let localhost = family == Family::V4
            && (settings.localhost_node_ports || !planning.localhost_is_a_choice)
            && ranges.as_ref().is_none_or(|ranges| ranges.iter().any(holds_localhost));
        let takes_loopback = localhost || !planning.localhost_is_a_choice;
        let any_node_port = ranges.as_ref().is_none_or(|ranges| {
            let mut own = addresses.iter().chain([&loopback]);
            own.any(|ip| ranges.iter().any(|net| net.contains(ip)))
        });
        let node_ports = match &ranges {
            None => NodePortsOn::All,
            Some(ranges) => NodePortsOn::These(
                addresses
                    .iter()
                    .copied()
                    .chain(takes_loopback.then_some(loopback))
                    .filter(|ip| ranges.iter().any(|net| net.contains(ip)))
                    .collect(),
            ),
        };
        Self {
            address: addresses.first().copied().unwrap_or(loopback),
            addresses,
            local: Local::new(node, &settings.detector.value, family),
            node_ports,
            node_port_ranges: ranges.unwrap_or_default(),
            any_node_port,
            localhost,
            kernel: node.kernel_version(),
        }
    }
}

impl<'a> Local<'a> {
    fn new(node: &Node, detector: &'a LocalDetector, family: Family) -> Self {
        // kube-proxy uses the first of several ranges of a family.
        let first = |nets: &[IpNet]| {
            let of_family = |net: &&IpNet| Family::of(net.addr()) == family;
            nets.iter().find(of_family).map_or(Self::Unknown, |net| Self::Range(net.trunc()))
        };
        match detector {
            LocalDetector::ClusterCidr(nets) => first(nets),
            LocalDetector::NodeCidr => first(&node.pod_cidrs),
            LocalDetector::BridgeInterface(name) => Self::Interface(name),
            LocalDetector::InterfaceNamePrefix(prefix) => Self::InterfacePrefix(prefix),
            LocalDetector::None => Self::Unknown,
        }
    }
}

/// Returns the ranges of a family within which the node's addresses accept NodePorts. Returns
/// `None` for all addresses, mostly also if only ranges of the other family are stated.
fn node_port_ranges(
    primary: Option<&IpAddr>,
    settings: &ProxySettings,
    family: Family,
    planning: Planning,
) -> Option<Vec<IpNet>> {
    let ranges: Vec<IpNet> = match &settings.node_port_addresses {
        NodePortAddresses::All => return None,
        NodePortAddresses::Primary => vec![IpNet::from(*primary?)],
        NodePortAddresses::Ranges(_) => stated_ranges(settings, family),
    };
    if let NodePortAddresses::Ranges(all) = &settings.node_port_addresses
        && !planning.node_port_ranges_apart
    {
        let is_all = all.is_empty() || all.iter().any(|net| net.prefix_len() == 0);
        return (!is_all).then_some(ranges);
    }
    let is_all = ranges.is_empty() || ranges.iter().any(|net| net.prefix_len() == 0);
    (!is_all).then_some(ranges)
}

/// Returns the ranges of a family that `nodePortAddresses` states.
fn stated_ranges(settings: &ProxySettings, family: Family) -> Vec<IpNet> {
    let NodePortAddresses::Ranges(all) = &settings.node_port_addresses else { return Vec::new() };
    all.iter().copied().filter(|net| Family::of(net.addr()) == family).collect()
}

/// Returns whether a range lies within 127.0.0.0/8 or contains its first address.
fn holds_localhost(net: &IpNet) -> bool {
    net.network().is_loopback() || net.contains(&IpAddr::V4(Ipv4Addr::new(127, 0, 0, 0)))
}
