//! Derives the pod ranges of nodes that state none, from the addresses of their pods.

use std::collections::HashSet;

use ipnet::IpNet;
use uturn_model::wording::count;
use uturn_model::{Family, Name, Node};

use super::ranges::Ranges;
use crate::decode::objects::Objects;
use crate::derive::ground::proxy;
use crate::derive::ground::seen_addresses::Seen;
use crate::derive::{Assumptions, nets};

/// Gives a range to each node that states none.
pub(super) fn complete(objects: &mut Objects, ranges: &mut Ranges, assumptions: &mut Assumptions) {
    if objects.nodes.0.values().all(|node| !node.pod_cidrs.is_empty()) {
        return;
    }
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
    let mut blocks = nets::blocks(whole).filter(|block| !given.contains(block));
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
