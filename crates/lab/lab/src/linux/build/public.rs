//! Addresses outside the VPC: the public addresses of nodes, and the addresses of clients outside.

use std::net::{IpAddr, Ipv4Addr};

use ipnet::IpNet;
use uturn_clouds::cloud;
use uturn_lb::source::replaced_source;
use uturn_model::addr::is_private;
use uturn_model::lb::{ProbeRanges, ProbeSource, Scope, Source};
use uturn_model::{Client, Cluster, Family, LoadBalancer, Node};

use crate::Plan;

/// The public address of nodes without a stated one.
pub(crate) const ANY_PUBLIC: IpAddr = IpAddr::V4(Ipv4Addr::new(203, 0, 113, 254));

/// Returns the source address of a node's packets outside the VPC: its own public address or, if
/// none is stated, a shared one. Its value does not matter as long as no node has it. IPv6
/// addresses are not translated, so the result is `None` unless one is stated.
pub(crate) fn address_of(node: &Node, family: Family) -> Option<IpAddr> {
    let stated = node.external_ips.iter().copied().find(|ip| Family::of(*ip) == family);
    match family {
        Family::V4 => Some(stated.unwrap_or(ANY_PUBLIC)),
        Family::V6 => stated,
    }
}

/// Returns the address of a client outside: the stated one, or one from the documentation ranges.
pub(crate) fn outside_client_address(stated: Option<IpAddr>, family: Family) -> IpAddr {
    stated.unwrap_or(match family {
        Family::V4 => IpAddr::from([198, 51, 100, 10]),
        Family::V6 => IpAddr::from([0x2001, 0xdb8, 0, 0, 0, 0, 0, 0x10]),
    })
}

/// Returns the addresses of private load balancers that a client outside has no route to: it has a
/// public address, and no network on the internet routes private ones.
pub(crate) fn unrouted(plan: &Plan<'_>, client: Option<IpAddr>) -> Vec<IpAddr> {
    let Some(client) = client else { return Vec::new() };
    let network = &plan.cluster.network;
    let mut inside = network.vpc_cidrs.value.iter().chain(&network.pod_cidrs.value);
    if is_private(client) || inside.any(|range| range.contains(&client)) {
        return Vec::new();
    }
    let private = plan.load_balancers.iter().filter(|lb| lb.scope == Scope::Private);
    let vips = private.map(|lb| lb.vip);
    vips.filter(|vip| is_private(*vip) && Family::of(*vip) == Family::of(client)).collect()
}

/// Returns whether a plan has load balancers or clients outside the VPC.
pub(crate) fn is_needed(plan: &Plan<'_>) -> bool {
    plan.load_balancers.iter().any(|lb| lb.scope == Scope::Public)
        || plan.flows.iter().any(|flow| matches!(flow.from, Client::Outside(_)))
}

/// Returns the source address that load balancers of a scope use for one of the cloud's own
/// addresses. Public ones use another address than private ones, because answers to a shared
/// address could not be routed.
pub(crate) fn source_address(scope: Scope, own: IpAddr) -> IpAddr {
    match (scope, own) {
        (Scope::Private, own) => own,
        (Scope::Public, IpAddr::V4(ip)) => IpAddr::V4((ip.to_bits() + 1).into()),
        (Scope::Public, IpAddr::V6(ip)) => IpAddr::V6((ip.to_bits() + 1).into()),
    }
}

/// Returns a load balancer that sends from the addresses of its scope ([`source_address`]).
pub(crate) fn with_own_sources(lb: &LoadBalancer) -> LoadBalancer {
    let mut lb = lb.clone();
    let own = |ip| IpNet::from(source_address(lb.scope, ip));
    for listener in &mut lb.listeners {
        if let Source::Replaced(range) = &mut listener.profile.source {
            *range = own(replaced_source(*range));
        }
        if let Some(check) = &mut listener.profile.health_check
            && let ProbeSource::Reserved(ranges) = check.source
        {
            let [v4, v6] = Family::BOTH.map(|family| own(ranges.prober(family)));
            if let (IpNet::V4(v4), IpNet::V6(v6)) = (v4, v6) {
                check.source = ProbeSource::Reserved(ProbeRanges { v4, v6 });
            }
        }
    }
    lb
}

/// Returns the source addresses of health checks that do not come from a VIP.
pub(crate) fn probers(cluster: &Cluster, family: Family) -> Vec<IpAddr> {
    let Some(model) = cloud::model(cluster) else { return Vec::new() };
    let prober = model.probe_ranges().prober(family);
    [Scope::Private, Scope::Public].map(|scope| source_address(scope, prober)).into()
}

/// Returns the addresses that every node's security groups admit: those of health checks and,
/// without a model of the cloud, those that stand for its load balancers' own, as nobody knows
/// which rule admits those.
pub(crate) fn let_in(cluster: &Cluster, family: Family) -> Vec<IpAddr> {
    match cloud::model(cluster) {
        Some(_) => probers(cluster, family),
        None => [Scope::Private, Scope::Public]
            .map(|scope| source_address(scope, cloud::stand_in(family)))
            .into(),
    }
}

/// Returns the addresses of clouds' own health checks that security groups admit unless a rule drops
/// them.
pub(crate) fn let_in_unless_denied(family: Family) -> Vec<IpAddr> {
    let all = cloud::ALL.iter().filter_map(|entry| entry.probers);
    let probers = all.map(|probers| probers.ranges.prober(family));
    probers
        .flat_map(|prober| {
            [Scope::Private, Scope::Public].map(|scope| source_address(scope, prober))
        })
        .collect()
}

/// Returns all source addresses of health checks, including the VIPs.
pub(crate) fn probers_of(plan: &Plan<'_>) -> Vec<IpAddr> {
    let vips = plan.load_balancers.iter().map(|lb| lb.vip);
    vips.chain(Family::BOTH.into_iter().flat_map(|family| probers(plan.cluster, family))).collect()
}

/// Returns whether a load balancer has this address.
pub(crate) fn is_vip(all: &[LoadBalancer], address: IpAddr) -> bool {
    all.iter().any(|lb| lb.vip == address)
}

/// Returns whether a node, a pod or a load balancer has this address.
pub(crate) fn is_taken(cluster: &Cluster, all: &[LoadBalancer], address: IpAddr) -> bool {
    cluster.nodes.values().any(|node| node.has_address(address))
        || cluster.pods.values().any(|pod| pod.ips.contains(&address))
        || is_vip(all, address)
}
