//! Allocates pod addresses from the ranges of nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::net::Ipv4Addr;

use ipnet::Ipv4Net;

/// The ranges of all nodes, and the addresses that pods have.
#[derive(Clone, Debug, Default)]
pub(super) struct Addresses {
    nodes: BTreeMap<String, Range>,
}

#[derive(Clone, Debug)]
struct Range {
    net: Ipv4Net,
    taken: BTreeSet<Ipv4Addr>,
    last: Option<Ipv4Addr>,
}

impl Addresses {
    pub(super) fn new(ranges: impl Iterator<Item = (String, Ipv4Net)>) -> Self {
        let range = |net| Range { net, taken: BTreeSet::new(), last: None };
        Self { nodes: ranges.map(|(name, net)| (name, range(net))).collect() }
    }

    /// Returns an address for a pod of this node, or `None` if there is none left. An address that
    /// was given back comes last, so that no sender still means the pod that had it before.
    pub(super) fn take(&mut self, node: &str) -> Option<Ipv4Addr> {
        let range = self.nodes.get_mut(node)?;
        // The first address is the bridge's.
        let all = || range.net.hosts().skip(1);
        let after = all().filter(|ip| Some(*ip) > range.last);
        let free = after.chain(all()).find(|ip| !range.taken.contains(ip))?;
        range.taken.insert(free);
        range.last = Some(free);
        Some(free)
    }

    pub(super) fn give_back(&mut self, node: &str, address: Ipv4Addr) {
        if let Some(range) = self.nodes.get_mut(node) {
            range.taken.remove(&address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_used_again_only_after_all_others() {
        let net = "10.1.1.0/29".parse().unwrap();
        let mut addresses = Addresses::new([("n1".to_owned(), net)].into_iter());
        let ip = |last| Some(Ipv4Addr::new(10, 1, 1, last));
        assert_eq!(addresses.take("n1"), ip(2));
        addresses.give_back("n1", Ipv4Addr::new(10, 1, 1, 2));
        let rest: Vec<_> = (0..6).map(|_| addresses.take("n1")).collect();
        assert_eq!(rest, [ip(3), ip(4), ip(5), ip(6), ip(2), None]);
        assert_eq!(addresses.take("n2"), None);
    }
}
