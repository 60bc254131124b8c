//! The ranges and ports that the cluster's rules name, by which rules can distinguish addresses.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::{IpNet, IpSubnets, Ipv4Subnets, Ipv6Subnets};
use uturn_model::proxy::{LocalDetector, NodePortAddresses};
use uturn_model::{Cluster, Labels, Name, Node, Text};
use uturn_netfilter::hash::FastMap;
use uturn_path::NodeRuntime;

use crate::distinguish::captured::Captured;
use crate::distinguish::policies::{self, Policed};
use crate::distinguish::range_index::RangeIndex;
use crate::numbers::Numbers;

/// The means by which rules distinguish addresses, ports and nodes.
pub(crate) struct Discriminators {
    nets: RangeIndex,
    ports: Vec<(u16, u16)>,
    /// The labels that a Service's load balancer wants its nodes to have.
    pub(crate) node_labels: Vec<Labels>,
    /// Whether some rule may depend on more than these.
    pub(crate) are_blind: bool,
    /// Whether some node picks endpoints otherwise than in turns or at random.
    pub(crate) are_uneven: bool,
    captured: Captured,
    policed: Policed,
    numbers: Numbers<Vec<u32>>,
    /// A buffer for the ranges that contain an address.
    within: Vec<u32>,
}

impl Discriminators {
    /// Reads a cluster in which the nodes `captured` are captured, and the nodes `plain` count as
    /// not captured.
    pub(crate) fn new(
        cluster: &Cluster,
        captured: &[(&Name, Arc<NodeRuntime>)],
        plain: &FastMap<&Name, Node>,
    ) -> Self {
        let mut words = Words::default();
        let Words { nets, ports, .. } = &mut words;
        let network = &cluster.network;
        for known in [&network.pod_cidrs, &network.service_cidrs, &network.vpc_cidrs] {
            nets.extend(&known.value);
        }
        nets.extend(&network.non_masquerade_cidrs.value);
        if let LocalDetector::ClusterCidr(own) = &cluster.proxy.detector.value {
            nets.extend(own);
        }
        if let NodePortAddresses::Ranges(own) = &cluster.proxy.node_port_addresses {
            nets.extend(own);
        }
        for group in cluster.security_groups.values() {
            for rule in group.inbound.iter().chain(&group.outbound) {
                nets.extend(rule.peer);
                ports.extend(rule.ports);
            }
        }
        let (ranges, of_policies) = policies::words(&cluster.network_policies);
        nets.extend(ranges);
        ports.extend(of_policies);
        let mut node_labels: Vec<Labels> = Vec::new();
        for service in cluster.services.values() {
            nets.extend(&service.source_ranges);
            let labels = uturn_clouds::controller::target_labels(cluster, service);
            node_labels.extend(labels.filter(|labels| !node_labels.contains(labels)));
        }
        let own: BTreeSet<&Text> = cluster
            .nodes
            .values()
            .chain(plain.values())
            .filter_map(|node| node.firewall.as_ref().map(|firewall| &firewall.text))
            .collect();
        for line in own.iter().flat_map(|text| text.lines()) {
            let singles = words.read_line(line);
            words.nets.extend(singles.into_iter().map(IpNet::from));
            words.are_blind |= line.contains("-set");
        }
        let captured = Captured::new(cluster, captured, &mut words);
        Self {
            nets: RangeIndex::new(words.nets),
            ports: words.ports.into_iter().collect(),
            node_labels,
            are_blind: words.are_blind,
            are_uneven: words.is_uneven,
            captured,
            policed: Policed::new(cluster),
            numbers: Numbers::default(),
            within: Vec::new(),
        }
    }

    /// Returns a number for the set of ranges that contain an address.
    pub(crate) fn of(&mut self, ip: IpAddr) -> u32 {
        self.within.clear();
        self.nets.add_places(ip, &mut self.within);
        self.captured.add_marks(ip, &mut self.within);
        self.policed.add_mark(ip, &mut self.within);
        self.numbers.of_list(&self.within)
    }

    /// Returns the ranges that contain an address.
    pub(crate) fn ranges_with(&self, ip: IpAddr) -> Vec<IpNet> {
        self.nets.with(ip)
    }

    /// Returns a number for the set of ranges that contain a port. The usual ports of TLS are
    /// apart.
    pub(crate) fn of_port(&mut self, port: u16) -> u32 {
        let within = self.ports.iter().enumerate();
        let within = within.filter(|(_, (low, high))| (*low..=*high).contains(&port));
        let mut within: Vec<u32> = within.map(|(place, _)| place as u32).collect();
        within.push(u32::MAX - u32::from(matches!(port, 443 | 6443 | 8443)));
        self.numbers.of(within)
    }
}

/// The ranges and ports that words of rules name.
#[derive(Default)]
pub(crate) struct Words {
    pub(crate) nets: BTreeSet<IpNet>,
    pub(crate) ports: BTreeSet<(u16, u16)>,
    /// Whether some word may distinguish addresses in another way.
    pub(crate) are_blind: bool,
    /// Whether some node picks endpoints otherwise than in turns or at random.
    pub(crate) is_uneven: bool,
}

impl Words {
    /// Reads the words of a rule. Returns the single addresses among them.
    pub(crate) fn read_line(&mut self, line: &str) -> Vec<IpAddr> {
        let mut singles = Vec::new();
        let mut is_masked = false;
        for word in line.split([' ', '\t', ',', '!', '"', '{', '}']) {
            match word.parse::<IpNet>() {
                Ok(net) if net.prefix_len() == net.max_prefix_len() => singles.push(net.addr()),
                Ok(net) => drop(self.nets.insert(net)),
                Err(_) => {
                    if let Ok(ip) = word.parse::<IpAddr>() {
                        self.are_blind |= is_masked;
                        singles.push(ip);
                    } else if let Some(nets) = subnets(word) {
                        self.nets.extend(nets);
                    } else if let Some(range) = port_range(word) {
                        self.ports.insert(range);
                    } else {
                        self.are_blind |= distinguishes_beyond_ranges(word);
                    }
                }
            }
            is_masked = word == "&";
        }
        singles
    }
}

/// Returns whether an IPVS scheduler picks in turns or by load, and not by the client's address.
pub(crate) fn is_even(scheduler: &str) -> bool {
    matches!(scheduler, "rr" | "wrr" | "lc" | "wlc")
}

/// Returns the networks that make up a range such as `10.0.0.5-10.0.0.9`.
fn subnets(word: &str) -> Option<Vec<IpNet>> {
    let (first, last) = word.split_once('-')?;
    let all = match (first.parse().ok()?, last.parse().ok()?) {
        (IpAddr::V4(first), IpAddr::V4(last)) => IpSubnets::V4(Ipv4Subnets::new(first, last, 0)),
        (IpAddr::V6(first), IpAddr::V6(last)) => IpSubnets::V6(Ipv6Subnets::new(first, last, 0)),
        _ => return None,
    };
    Some(all.collect())
}

/// Returns whether a word of a rule may distinguish addresses otherwise than by ranges.
fn distinguishes_beyond_ranges(word: &str) -> bool {
    let is_range = word.split(['-', '/']).any(|part| {
        part.len() > 2
            && (part.contains('.') || part.contains("::"))
            && part.parse::<IpAddr>().is_ok()
    });
    is_range || matches!(word, "jhash" | "symhash" | "NETMAP" | "prefix")
}

/// Parses a port or range of ports: `80` or `30000:32767`.
fn port_range(word: &str) -> Option<(u16, u16)> {
    match word.split_once(':') {
        Some((low, high)) => Some((low.parse().ok()?, high.parse().ok()?)),
        None => word.parse().ok().map(|port| (port, port)),
    }
}
