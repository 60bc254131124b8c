//! Derives the pod ranges of nodes that state none, from the addresses of their pods.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;

use ipnet::IpNet;
use uturn_model::wording::count;
use uturn_model::{Family, Name, Node};

use super::ranges::{self, Ranges};
use crate::decode::objects::Objects;
use crate::derive::Assumptions;
use crate::derive::ground::proxy;

/// The addresses of pods on each node, as pods and endpoints state them. Finished pods are left
/// out: another pod may have their address now.
struct Seen<'o>(BTreeMap<&'o Name, Vec<IpAddr>>);

impl<'o> Seen<'o> {
    fn of(objects: &'o Objects) -> Self {
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
    fn own(&self, family: Family) -> BTreeMap<Name, IpNet> {
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
    ranges::around(ip, 24)
}

/// Returns the evidence that pods are not on a bridge, which has a single range: they are beside a
/// node, beside pods of another node, or in several ranges.
pub(in crate::derive) fn without_bridge(objects: &Objects) -> Option<String> {
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

/// Gives a range to each node that states none.
pub(in crate::derive) fn complete(
    objects: &mut Objects,
    ranges: &mut Ranges,
    assumptions: &mut Assumptions,
) {
    let [v4, v6] = {
        let seen = Seen::of(objects);
        [Family::V4, Family::V6].map(|family| seen.own(family))
    };
    let mut given: HashSet<IpNet> =
        objects.nodes.0.values().flat_map(|node| node.pod_cidrs.clone()).collect();
    let mut found = Vec::new();
    let mut lacking = Vec::new();
    for node in objects.nodes.0.values().filter(|node| node.pod_cidrs.is_empty()) {
        let is_new = |net: &&IpNet| !given.contains(*net);
        let own: Vec<IpNet> = [&v4, &v6]
            .into_iter()
            .filter_map(|own| own.get(&node.name).filter(is_new).copied())
            .collect();
        if !own.iter().any(|net| net.addr().is_ipv4()) {
            lacking.push(node.name.clone());
        }
        given.extend(&own);
        if !own.is_empty() {
            found.push((node.name.clone(), own));
        }
    }
    if !found.is_empty() {
        let has_v6 = found.iter().flat_map(|(_, nets)| nets).any(|net| net.addr().is_ipv6());
        let taken = if has_v6 { "those around their pods" } else { "the /24 around their pods" };
        assumptions.assume(
            format!("pod ranges of {}", count(found.len(), "node")),
            taken,
            "no podCIDR is given",
            "give Node objects with spec.podCIDRs",
        );
    }
    for (name, nets) in found {
        if let Some(node) = objects.nodes.0.get_mut(&name) {
            node.pod_cidrs.extend(nets);
        }
    }
    give_blocks(objects, &lacking, &given, ranges, assumptions);
}

/// Gives a block of the cluster's range to each of these nodes.
fn give_blocks(
    objects: &mut Objects,
    lacking: &[Name],
    given: &HashSet<IpNet>,
    ranges: &mut Ranges,
    assumptions: &mut Assumptions,
) {
    // If all pods have IPv6 only, no node needs another range.
    let has_range = |node: &Node| !node.pod_cidrs.is_empty();
    let is_v6_only = !objects.nodes.0.is_empty()
        && objects.nodes.0.values().all(has_range)
        && !lacking.is_empty();
    if lacking.is_empty() || is_v6_only {
        return;
    }
    let stated = objects.facts.pod_cidrs.clone().or_else(|| proxy::cluster_cidrs(objects));
    let stated =
        stated.and_then(|(nets, _)| nets.into_iter().find(|net| matches!(net, IpNet::V4(_))));
    let whole = stated.unwrap_or_else(|| ranges.for_pods(objects.nodes.0.len()));
    let mut blocks = ranges::blocks(whole).filter(|block| !given.contains(block));
    for name in lacking {
        if let (Some(block), Some(node)) = (blocks.next(), objects.nodes.0.get_mut(name)) {
            node.pod_cidrs.push(block);
        }
    }
    assumptions.assume(
        format!("pod ranges of {}", count(lacking.len(), "node")),
        format!("a /24 of {whole} each"),
        "no podCIDR is given",
        "give Node objects with spec.podCIDRs",
    );
}
