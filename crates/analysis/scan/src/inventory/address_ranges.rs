//! An index of nodes by the ranges of their pods.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use ipnet::IpNet;
use uturn_model::Node;
use uturn_netfilter::hash::FastMap;

/// Nodes by the ranges of their pods.
pub(crate) struct Ranges {
    /// The node of each range, by prefix length, the longest first.
    by_length: Vec<(u8, FastMap<IpAddr, u32>)>,
}

impl Ranges {
    /// Makes the index. Also returns the nodes whose ranges overlap.
    pub(crate) fn new(nodes: &[&Node]) -> (Self, BTreeSet<u32>) {
        let mut by_length: BTreeMap<u8, FastMap<IpAddr, u32>> = BTreeMap::new();
        let mut odd = BTreeSet::new();
        for (place, node) in nodes.iter().enumerate() {
            for net in &node.pod_cidrs {
                let there = by_length.entry(net.prefix_len()).or_default();
                let holder = *there.entry(net.network()).or_insert(place as u32);
                if holder != place as u32 {
                    odd.extend([holder, place as u32]);
                }
            }
        }
        let ranges = Self { by_length: by_length.into_iter().rev().collect() };
        for (place, node) in nodes.iter().enumerate() {
            for net in &node.pod_cidrs {
                for holder in ranges.holders(net.network()).filter(|holder| *holder != place as u32)
                {
                    odd.extend([holder, place as u32]);
                }
            }
        }
        (ranges, odd)
    }

    fn holders(&self, ip: IpAddr) -> impl Iterator<Item = u32> + '_ {
        self.by_length.iter().filter_map(move |(length, nets)| {
            let net = IpNet::new(ip, *length).ok()?;
            nets.get(&net.network()).copied()
        })
    }

    /// Returns the node whose range contains the address: the first by name, if ranges overlap.
    pub(crate) fn holder(&self, ip: IpAddr) -> Option<u32> {
        self.holders(ip).min()
    }
}
