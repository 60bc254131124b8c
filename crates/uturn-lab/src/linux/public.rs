//! Addresses that the VPC's inside does not know: those that nodes have on the internet, and
//! those of clients out there.

use std::net::IpAddr;

use uturn_lb::profile::prober;
use uturn_model::lb::Scope;
use uturn_model::{Client, Cluster, Family, LoadBalancer, Node};

use crate::Plan;

/// The address that a node's packets have beyond the VPC: its own public one, or, where none
/// is stated, one that they share. Which one it is does not matter as long as no node knows
/// it. IPv6 addresses are everybody's: none.
pub(crate) fn address_of(node: &Node, family: Family) -> Option<IpAddr> {
    let stated = node.external_ips.iter().copied().find(|ip| Family::of(*ip) == family);
    match family {
        Family::V4 => Some(stated.unwrap_or(IpAddr::from([203, 0, 113, 254]))),
        Family::V6 => stated,
    }
}

/// Where a client outside calls from: its own address, or one out of the ranges that are for
/// documentation.
pub(crate) fn outside_client_address(stated: Option<IpAddr>, family: Family) -> IpAddr {
    stated.unwrap_or(match family {
        Family::V4 => IpAddr::from([198, 51, 100, 10]),
        Family::V6 => IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0x10]),
    })
}

/// Whether anything of a plan is beyond the VPC.
pub(crate) fn is_needed(plan: &Plan<'_>) -> bool {
    plan.load_balancers.iter().any(|lb| lb.scope == Scope::Public)
        || plan.flows.iter().any(|flow| matches!(flow.from, Client::Outside(_)))
}

/// Which address stands on packets that load balancers send from one of the cloud's own:
/// those beyond the VPC have others than those inside, as two could not be told apart by
/// where answers go.
pub(crate) fn source_address(scope: Scope, own: IpAddr) -> IpAddr {
    match (scope, own) {
        (Scope::Private, own) => own,
        (Scope::Public, IpAddr::V4(ip)) => IpAddr::V4((ip.to_bits() + 1).into()),
        (Scope::Public, IpAddr::V6(ip)) => IpAddr::V6((ip.to_bits() + 1).into()),
    }
}

/// Where health checks that do not come from a VIP come from.
pub(crate) fn probers(family: Family) -> [IpAddr; 2] {
    [Scope::Private, Scope::Public].map(|scope| source_address(scope, prober(family)))
}

/// All addresses that health checks come from: the load balancers' own among them.
pub(crate) fn probers_of(plan: &Plan<'_>) -> Vec<IpAddr> {
    let vips = plan.load_balancers.iter().map(|lb| lb.vip);
    vips.chain(Family::BOTH.into_iter().flat_map(probers)).collect()
}

/// Whether a load balancer has this address.
pub(crate) fn is_vip(all: &[LoadBalancer], address: IpAddr) -> bool {
    all.iter().any(|lb| lb.vip == address)
}

/// Whether an address is one of the cluster's own, so that nobody else can have it.
pub(crate) fn is_taken(cluster: &Cluster, all: &[LoadBalancer], address: IpAddr) -> bool {
    cluster.nodes.values().any(|node| node.has_address(address))
        || cluster.pods.values().any(|pod| pod.ips.contains(&address))
        || is_vip(all, address)
}
