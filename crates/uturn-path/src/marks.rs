//! Which ranges and ports the cluster's rules name: they can tell addresses apart by these.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;
use uturn_model::proxy::{LocalDetector, NodePortAddresses};
use uturn_model::{Cluster, Labels, Text};

use crate::census::Numbers;

/// What rules tell addresses, ports and nodes apart by.
pub(crate) struct Marks {
    nets: Vec<IpNet>,
    ports: Vec<(u16, u16)>,
    /// The labels that a Service's load balancer wants its nodes to have.
    pub(crate) node_labels: Vec<Labels>,
    /// Whether some rule may look at more than that.
    pub(crate) are_blind: bool,
    numbers: Numbers<Vec<u32>>,
    /// Those that an address is in, while it is looked at.
    within: Vec<u32>,
}

impl Marks {
    pub(crate) fn new(cluster: &Cluster) -> Self {
        let mut nets: BTreeSet<IpNet> = BTreeSet::new();
        let mut ports = BTreeSet::new();
        let mut are_blind = !cluster.captures.is_empty();
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
        let mut node_labels = BTreeMap::new();
        for service in cluster.services.values() {
            nets.extend(&service.source_ranges);
            let key = "service.kubernetes.io/qcloud-loadbalancer-backends-label";
            if let Some(text) = service.annotations.get(key) {
                node_labels.entry(text).or_insert_with(|| uturn_lb::controller::label_pairs(text));
            }
        }
        let own: BTreeSet<&Text> = cluster
            .nodes
            .values()
            .filter_map(|node| node.firewall.as_ref().map(|one| &one.text))
            .collect();
        for word in own.iter().flat_map(|text| text.split([' ', '\t', '\n', ',', '!', '"'])) {
            if let Ok(net) = word.parse::<IpNet>() {
                nets.insert(net);
            } else if let Ok(ip) = word.parse::<IpAddr>() {
                nets.insert(ip.into());
            } else if let Some((low, high)) = port_range(word) {
                ports.insert((low, high));
            } else {
                let looks_like_address = word.split(['-', '/']).any(|part| {
                    part.len() > 2
                        && (part.contains('.') || part.contains("::"))
                        && part.parse::<IpAddr>().is_ok()
                });
                are_blind |= looks_like_address || word.contains("-set");
            }
        }
        Self {
            nets: nets.into_iter().collect(),
            ports: ports.into_iter().collect(),
            node_labels: node_labels.into_values().collect(),
            are_blind,
            numbers: Numbers::default(),
            within: Vec::new(),
        }
    }

    /// The ranges that an address is in, as one number.
    pub(crate) fn of(&mut self, ip: IpAddr) -> u32 {
        let within = self.nets.iter().enumerate().filter(|(_, net)| net.contains(&ip));
        self.within.clear();
        self.within.extend(within.map(|(place, _)| place as u32));
        self.numbers.of_list(&self.within)
    }

    /// The ranges that a port is in, as one number; those that usually speak TLS are apart.
    pub(crate) fn of_port(&mut self, port: u16) -> u32 {
        let within = self.ports.iter().enumerate();
        let within = within.filter(|(_, (low, high))| (*low..=*high).contains(&port));
        let mut within: Vec<u32> = within.map(|(place, _)| place as u32).collect();
        within.push(u32::MAX - u32::from(matches!(port, 443 | 6443 | 8443)));
        self.numbers.of(within)
    }
}

/// `80` or `30000:32767`.
fn port_range(word: &str) -> Option<(u16, u16)> {
    match word.split_once(':') {
        Some((low, high)) => Some((low.parse().ok()?, high.parse().ok()?)),
        None => word.parse().ok().map(|port| (port, port)),
    }
}
