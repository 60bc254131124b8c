//! Adds nodes that no manifest gives, and completes the given ones.

use std::collections::BTreeSet;
use std::net::IpAddr;

use uturn_model::network::NetworkMode;
use uturn_model::node::Firewall;
use uturn_model::wording::{count, some_of};
use uturn_model::{Name, Node, Origin, WorkloadKind};

use super::ranges::{self, Ranges};
use super::{pod_ranges, pods};
use crate::decode::facts::{Fact, NodeFacts};
use crate::decode::objects::Objects;
use crate::derive::Assumptions;

/// The number of nodes if nothing states it: with three, the caller's own node, the backend's node
/// and another one can be three different nodes.
const USUAL: usize = 3;

/// The maximum number of pods of a node, which is the default of kubelets.
const PODS_A_NODE: usize = 110;

/// The maximum number of nodes that are made up: more nodes would not lead to new results.
const MAX: usize = 200;

/// Adds missing nodes, and gives addresses and ranges to those without.
pub(super) fn complete(
    objects: &mut Objects,
    mode: NetworkMode,
    ranges: &mut Ranges,
    assumptions: &mut Assumptions,
) {
    let written = objects.nodes.0.len();
    add_mentioned(objects, assumptions);
    if written == 0 && objects.need_nodes() {
        suppose(objects, assumptions);
    }
    add_facts(objects);
    add_addresses(objects, ranges, assumptions);
    if mode == NetworkMode::GlobalRouter {
        pod_ranges::complete(objects, ranges, assumptions);
    }
}

/// Adds the nodes that pods, endpoints or Facts name.
fn add_mentioned(objects: &mut Objects, assumptions: &mut Assumptions) {
    let pods = objects.pods.0.values().filter_map(|pod| pod.node.as_ref());
    let slices = objects.slices.0.values().flat_map(|slice| &slice.endpoints);
    let old = objects.endpoints.0.values().flat_map(|old| &old.slices);
    let endpoints = slices.chain(old.flat_map(|slice| &slice.endpoints));
    let endpoints = endpoints.filter_map(|endpoint| endpoint.node.as_ref());
    let facts = objects.facts.nodes.keys();
    let mentioned: BTreeSet<Name> = pods.chain(endpoints).chain(facts).cloned().collect();
    let new: Vec<Name> =
        mentioned.into_iter().filter(|name| !objects.nodes.0.contains_key(name)).collect();
    if !objects.nodes.0.is_empty() && !new.is_empty() {
        let because = "pods, endpoints or Facts name them";
        assumptions.assume(
            format!("nodes {}", some_of(&new)),
            "they exist",
            because,
            "give their Node objects",
        );
    }
    for name in new {
        add(objects, name);
    }
}

fn add(objects: &mut Objects, name: Name) {
    let node = Node { supposed: true, ..Node::new(name.clone(), Origin::SUPPOSED) };
    objects.nodes.0.insert(name, node);
}

/// Returns the number of nodes that have room for all existing and future pods.
fn enough(objects: &Objects) -> usize {
    let workloads = objects.workloads.0.values();
    let (everywhere, counted): (Vec<_>, Vec<_>) =
        workloads.partition(|workload| workload.kind == WorkloadKind::DaemonSet);
    let replicas: usize =
        counted.iter().map(|workload| workload.replicas.min(pods::MAX_OF_ONE) as usize).sum();
    let pods = replicas.saturating_add(objects.pods.0.len());
    let room = PODS_A_NODE.saturating_sub(everywhere.len()).max(1);
    pods.div_ceil(room).clamp(USUAL, MAX)
}

fn suppose(objects: &mut Objects, assumptions: &mut Assumptions) {
    let mentioned = objects.nodes.0.len();
    // If other objects name nodes, the given pods are on these.
    let wanted = if mentioned == 0 { enough(objects) } else { USUAL };
    for number in 1.. {
        if objects.nodes.0.len() >= wanted {
            break;
        }
        if let Ok(name) = Name::new(format!("n{number}"))
            && !objects.nodes.0.contains_key(&name)
        {
            add(objects, name);
        }
    }
    let names: Vec<&Name> = objects.nodes.0.keys().collect();
    let because = match mentioned {
        0 => "there is no Node object".to_owned(),
        _ => format!("there is no Node object; {} named by others", count(mentioned, "node")),
    };
    let taken = format!("{} ({})", names.len(), some_of(&names));
    assumptions.assume("nodes", taken, because, "give the cluster's Node objects");
}

fn add_facts(objects: &mut Objects) {
    let every = &objects.facts.every_node;
    let nothing = NodeFacts::default();
    for node in objects.nodes.0.values_mut() {
        let own = objects.facts.nodes.get(&node.name).unwrap_or(&nothing);
        node.rp_filter = value(&own.rp_filter, &every.rp_filter);
        node.public_bandwidth = value(&own.public_bandwidth, &every.public_bandwidth);
        node.security_groups = value(&own.security_groups, &every.security_groups);
        node.forwards = value(&own.forwards, &every.forwards);
        node.bridge_rules = value(&own.bridge_rules, &every.bridge_rules);
        node.routed = value(&own.routed, &every.routed);
        node.routes = value(&own.routes, &every.routes);
        node.local_addresses =
            value(&own.local_addresses, &every.local_addresses).unwrap_or_default();
        (node.hairpin, node.hairpin_origin) =
            own.hairpin.clone().or_else(|| every.hairpin.clone()).unzip();
        let firewall = own.firewall.as_ref().or(every.firewall.as_ref());
        node.firewall =
            firewall.map(|(text, origin)| Firewall { text: text.clone(), origin: origin.clone() });
        node.unprogrammed = value(&own.unprogrammed, &every.unprogrammed).unwrap_or_default();
    }
}

/// Returns the value that Facts state for this node, or else for every node.
pub(super) fn value<T: Clone>(own: &Fact<T>, every: &Fact<T>) -> Option<T> {
    own.as_ref().or(every.as_ref()).map(|(value, _)| value.clone())
}

fn add_addresses(objects: &mut Objects, ranges: &mut Ranges, assumptions: &mut Assumptions) {
    from_host_pods(objects);
    from_pods(objects);
    add_v6(objects, ranges, assumptions);
    let lacking: Vec<Name> = objects
        .nodes
        .0
        .values()
        .filter(|node| node.internal_ips.is_empty())
        .map(|node| node.name.clone())
        .collect();
    if lacking.is_empty() {
        return;
    }
    let vpc = ranges.vpc(objects);
    for name in &lacking {
        let address = ranges.address(vpc, 11);
        if let (Some(address), Some(node)) = (address, objects.nodes.0.get_mut(name)) {
            node.internal_ips.push(address);
        }
    }
    assumptions.assume(
        format!("addresses of {}", count(lacking.len(), "node")),
        format!("unused addresses of {vpc}"),
        "no InternalIP is given",
        "give Node objects with status.addresses",
    );
}

/// Gives made-up nodes an IPv6 address if all given nodes have one.
fn add_v6(objects: &mut Objects, ranges: &mut Ranges, assumptions: &mut Assumptions) {
    let has_v6 = |node: &Node| node.internal_ips.iter().any(IpAddr::is_ipv6);
    let (supposed, given): (Vec<&Node>, Vec<&Node>) =
        objects.nodes.0.values().partition(|node| node.supposed);
    if given.is_empty() || !given.into_iter().all(has_v6) {
        return;
    }
    let lacking: Vec<Name> =
        supposed.into_iter().filter(|node| !has_v6(node)).map(|node| node.name.clone()).collect();
    let Some(net) = ranges::vpc_v6(objects).filter(|_| !lacking.is_empty()) else { return };
    for name in &lacking {
        if let (Some(address), Some(node)) =
            (ranges.address(net, 11), objects.nodes.0.get_mut(name))
            && !node.internal_ips.is_empty()
        {
            node.internal_ips.push(address);
        }
    }
    assumptions.assume(
        format!("IPv6 addresses of {}", some_of(&lacking)),
        format!("unused addresses of {net}"),
        "all other nodes have one",
        "give Node objects with status.addresses",
    );
}

/// Gives nodes the addresses of pods in their host network.
fn from_host_pods(objects: &mut Objects) {
    for pod in objects.pods.0.values().filter(|pod| pod.spec.host_network) {
        let Some(node) = pod.node.as_ref().and_then(|name| objects.nodes.0.get_mut(name)) else {
            continue;
        };
        if node.internal_ips.is_empty() {
            node.internal_ips.extend(&pod.ips);
        }
    }
}

/// Gives nodes the addresses that the status of their pods states.
fn from_pods(objects: &mut Objects) {
    for (name, addresses) in &objects.host_addresses {
        let Some(node) = objects.nodes.0.get_mut(name) else { continue };
        if node.internal_ips.is_empty() {
            node.internal_ips.extend(addresses);
        }
    }
}
