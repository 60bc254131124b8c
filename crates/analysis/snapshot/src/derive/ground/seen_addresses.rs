//! The addresses of pods on each node, and what they tell about the pod network.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;

use ipnet::IpNet;
use uturn_model::{Family, Name};

use crate::decode::objects::Objects;
use crate::derive::nets::around;

/// The addresses of pods on each node, as pods and endpoints state them. Finished pods are left
/// out: another pod may have their address now.
pub(in crate::derive) struct Seen<'o>(BTreeMap<&'o Name, Vec<IpAddr>>);

impl<'o> Seen<'o> {
    pub(in crate::derive) fn of(objects: &'o Objects) -> Self {
        let mut all: BTreeMap<&Name, Vec<IpAddr>> = BTreeMap::new();
        let is_host = |name: &Name, ip: IpAddr| {
            objects.nodes.0.get(name).is_some_and(|node| node.has_address(ip))
                || objects.host_addresses.get(name).is_some_and(|own| own.contains(&ip))
        };
        for pod in objects.pods.0.values() {
            if let Some(node) = pod.node.as_ref()
                && pod.is_alive()
                && !pod.supposed
                && !pod.spec.host_network
            {
                all.entry(node).or_default().extend(&pod.ips);
            }
        }
        for endpoint in objects.slices.0.values().flat_map(|slice| &slice.endpoints) {
            if let Some(node) = &endpoint.node
                && !is_host(node, endpoint.address)
            {
                all.entry(node).or_default().push(endpoint.address);
            }
        }
        Self(all)
    }

    /// Iterates over the ranges of this width around a node's pod addresses.
    fn ranges(
        addresses: &[IpAddr],
        family: Family,
        range: fn(IpAddr) -> Option<IpNet>,
    ) -> impl Iterator<Item = IpNet> {
        let of_family = addresses.iter().filter(move |ip| Family::of(**ip) == family);
        of_family.filter_map(move |ip| range(*ip))
    }

    /// Returns the range of each node's pods: the widest that is not the range of another node.
    pub(in crate::derive) fn own(&self, family: Family) -> BTreeMap<Name, IpNet> {
        let wide: fn(IpAddr) -> Option<IpNet> = match family {
            Family::V4 => near,
            Family::V6 => |ip| IpNet::new(ip, 64).ok().map(|net| net.trunc()),
        };
        for range in [wide, near] {
            let mut all: BTreeMap<Name, IpNet> = BTreeMap::new();
            for (node, addresses) in &self.0 {
                let first = Self::ranges(addresses, family, range).next();
                all.extend(first.map(|net| ((*node).clone(), net)));
            }
            if all.values().collect::<HashSet<_>>().len() == all.len() {
                return all;
            }
        }
        BTreeMap::new()
    }
}

/// Returns the /24, or as wide an IPv6 range, around an address.
fn near(ip: IpAddr) -> Option<IpNet> {
    around(ip, 24)
}

/// Returns the evidence that pods are not on a bridge, which has a single range: they are beside a
/// node, beside pods of another node, or in several ranges.
pub(super) fn without_bridge(objects: &Objects) -> Option<String> {
    let seen = Seen::of(objects);
    let hosts: HashSet<IpNet> =
        objects.host_addresses.values().flatten().filter_map(|ip| near(*ip)).collect();
    let mut owners: HashMap<IpNet, &Name> = HashMap::new();
    for (node, addresses) in &seen.0 {
        for ip in addresses {
            let Some(net) = near(*ip) else { continue };
            if hosts.contains(&net) {
                return Some(format!("{ip} of a pod, beside the address of a node"));
            }
            if *owners.entry(net).or_insert(node) != *node {
                return Some(format!("{ip} of a pod, beside one of another node"));
            }
        }
        let mut of_node = Seen::ranges(addresses, Family::V4, near);
        let first = of_node.next();
        if of_node.any(|net| Some(net) != first) {
            return Some(format!("pods of node {node} in several ranges"));
        }
    }
    None
}
