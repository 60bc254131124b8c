//! Load-balancer addresses that nodes have on their own interfaces. Packets that such a node, or a
//! pod on it, sends to such an address stay on the node, unless a rule translates them before.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use uturn_model::lb::LoadBalancerFact;
use uturn_model::{Cluster, Family, Node};

use crate::addresses::{NodeAddresses, addresses};
use crate::cloud::{Maker, Owner, made, maker_of};
use crate::controller::is_judged;
use crate::stated;

/// Returns the addresses that a node holds: those that Facts state, and those that the controllers
/// of load balancers assign to it.
pub fn on(cluster: &Cluster, node: &Node) -> Vec<IpAddr> {
    let mut held = node.local_addresses.clone();
    for service in cluster.services.values().filter(|service| is_judged(service)) {
        let Maker::Product(product, _) = maker_of(service, &cluster.provider) else { continue };
        let is_target = made::may_be_target(product, cluster, service, node);
        if product.is_held_by(service, node) || (product.is_held_by_targets() && is_target) {
            let all = addresses(cluster, Owner::Service(service));
            held.extend(all.into_iter().map(|at| at.address));
        }
    }
    let stated = cluster.load_balancers.iter().filter(|fact| stated::is_held_by(fact, node));
    held.extend(stated.map(|fact| fact.vip));
    held.sort_unstable();
    held.dedup();
    // A node without an address of a family holds none of that family, unless Facts state it; they may
    // also state that it holds its public address itself.
    held.retain(|ip| {
        let is_stated = node.local_addresses.contains(ip);
        let is_possible = !node.has_address(*ip) && node.address(Family::of(*ip)).is_some();
        is_possible || is_stated && !node.internal_ips.contains(ip)
    });
    if !held.is_empty() {
        let of_nodes = NodeAddresses::of(cluster);
        held.retain(|ip| node.local_addresses.contains(ip) || !of_nodes.has(*ip));
    }
    held
}

/// Returns the additional addresses of nodes that Facts state. Each has its node if only one node
/// holds it: packets to the address are delivered there.
pub fn stated(cluster: &Cluster) -> BTreeMap<IpAddr, Option<&Node>> {
    let mut held: BTreeMap<IpAddr, Option<&Node>> = BTreeMap::new();
    for node in cluster.nodes.values() {
        for ip in &node.local_addresses {
            held.entry(*ip)
                .and_modify(|holder| *holder = holder.filter(|first| first.name == node.name))
                .or_insert(Some(node));
        }
    }
    held
}

/// Returns the addresses that any node holds because a controller of load balancers assigns them.
pub fn by_any(cluster: &Cluster) -> BTreeSet<IpAddr> {
    let mut held = BTreeSet::new();
    for service in cluster.services.values().filter(|service| is_judged(service)) {
        let Maker::Product(product, _) = maker_of(service, &cluster.provider) else { continue };
        let is_holder = |node: &Node| product.is_held_by(service, node);
        if product.is_held_by_targets() || cluster.nodes.values().any(is_holder) {
            let all = addresses(cluster, Owner::Service(service));
            held.extend(all.into_iter().map(|at| at.address));
        }
    }
    let is_held = |fact: &&LoadBalancerFact| {
        cluster.nodes.values().any(|node| stated::is_held_by(fact, node))
    };
    held.extend(cluster.load_balancers.iter().filter(is_held).map(|fact| fact.vip));
    held
}
