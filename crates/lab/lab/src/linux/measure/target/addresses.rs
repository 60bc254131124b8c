//! The addresses of a flow: those of its client and those of its destination.

use std::net::IpAddr;

use uturn_model::lb::{Rule, Scope};
use uturn_model::{
    Client, Cluster, Destination, Family, Flow, LoadBalancer, NamespacedName, ObjectKind, ObjectRef,
};

use crate::LabError;
use crate::linux::build::public;
use crate::linux::serve::names::Found;

/// Returns the addresses that the cluster's DNS returned for the flow's name. `None` if it was not
/// asked.
pub(super) fn resolved_addresses<'a>(flow: &Flow, found: &'a Found) -> Option<&'a [IpAddr]> {
    let host = flow.to.host()?;
    found.get(&(flow.from.clone(), host.clone())).map(Vec::as_slice)
}

/// Returns the addresses of the load balancer that a flow names, if nothing else states the name's
/// address.
pub(super) fn balancer_addresses(cluster: &Cluster, flow: &Flow) -> Vec<IpAddr> {
    match &flow.to {
        Destination::Url { host, .. } | Destination::Host(host, _) => {
            cluster.dns.of_balancer(host).iter().map(|named| named.address).collect()
        }
        _ => Vec::new(),
    }
}

/// Returns the address family of a destination, if the destination alone decides it.
pub(super) fn to_family(
    cluster: &Cluster,
    all: &[LoadBalancer],
    to: &Destination,
) -> Option<Family> {
    let family = |ip: IpAddr| Some(Family::of(ip));
    match to {
        Destination::Address(address) => family(address.ip()),
        Destination::Url { host, .. } | Destination::Host(host, _) => {
            let of = |family: &Family| resolve(cluster, all, host, *family).map(|_| *family);
            host.parse().ok().and_then(family).or_else(|| Family::BOTH.iter().find_map(of))
        }
        Destination::Pod(name, _) => cluster.pods.get(name)?.ips.first().copied().and_then(family),
        Destination::Ingress { name, host, .. } => {
            ingress_balancer(all, name, host.as_deref()).and_then(|lb| family(lb.vip))
        }
        Destination::Service(..) => None,
    }
}

/// Returns a client's own source address. `wanted` is the family of the destination, which decides
/// for clients outside.
pub(super) fn client_address(
    cluster: &Cluster,
    client: &Client,
    wanted: Option<Family>,
) -> Result<IpAddr, LabError> {
    let address = match client {
        Client::Pod(name) => {
            let pod = cluster.pods.get(name).ok_or_else(|| unknown(client))?;
            match (pod.spec.host_network, &pod.node) {
                (true, Some(node)) => cluster.nodes.get(node).and_then(|node| {
                    Family::BOTH.into_iter().find_map(|family| node.address(family))
                }),
                _ => pod.ips.first().copied(),
            }
        }
        Client::Node(name) => {
            let node = cluster.nodes.get(name).ok_or_else(|| unknown(client))?;
            Family::BOTH.into_iter().find_map(|family| node.address(family))
        }
        Client::Outside(stated) => {
            Some(public::outside_client_address(*stated, wanted.unwrap_or(Family::V4)))
        }
        Client::Workload(..) => {
            let what = format!("{client} as a client: expected a pod, a node or outside");
            return Err(LabError::Plan(what));
        }
    };
    address.ok_or_else(|| LabError::Plan(format!("{client} has no address")))
}

/// Returns the client's own address and its node's, which masqueraded connections have. A public
/// load balancer sees the node's public address in place of both.
pub(super) fn sources(
    cluster: &Cluster,
    client: &Client,
    own: IpAddr,
    scope: Option<Scope>,
) -> Vec<IpAddr> {
    let node = match client {
        Client::Pod(name) => cluster.pods.get(name).and_then(|pod| pod.node.as_ref()),
        Client::Node(name) => Some(name),
        _ => None,
    };
    let node = node.and_then(|name| cluster.nodes.get(name));
    let family = Family::of(own);
    if scope == Some(Scope::Public)
        && let Some(public) = node.and_then(|node| public::address_of(node, family))
    {
        return vec![public];
    }
    let node = node.and_then(|node| node.address(family));
    let mut all: Vec<IpAddr> = [own].into_iter().chain(node).collect();
    all.dedup();
    all
}

/// Returns the load balancer that serves an Ingress, or a host of it.
pub(super) fn ingress_balancer<'a>(
    load_balancers: &'a [LoadBalancer],
    name: &NamespacedName,
    host: Option<&str>,
) -> Option<&'a LoadBalancer> {
    let owner = ObjectRef::namespaced(ObjectKind::Ingress, name);
    let serves = |rule: &Rule| {
        rule.redirect.is_none()
            && rule.owner == owner
            && (host.is_none() || rule.host.as_deref() == host)
    };
    load_balancers
        .iter()
        .find(|lb| lb.listeners.iter().flat_map(|listener| &listener.rules).any(serves))
}

/// Resolves a name from the cluster's own data: a literal address, a stated one, a Service's or an
/// Ingress's.
pub(super) fn resolve(
    cluster: &Cluster,
    load_balancers: &[LoadBalancer],
    host: &str,
    family: Family,
) -> Option<IpAddr> {
    if let Ok(ip) = host.parse() {
        return Some(ip);
    }
    let of_family = |ip: &IpAddr| Family::of(*ip) == family;
    let stated = cluster.dns.outside.iter().filter(|(name, _)| name.eq_ignore_ascii_case(host));
    let service = || {
        let mut labels = host.trim_end_matches('.').split('.');
        let (name, namespace) = (labels.next()?, labels.next()?);
        let domain = cluster.dns.domain.as_deref().unwrap_or("cluster.local");
        let rest: Vec<&str> = labels.collect();
        let rest = rest.join(".");
        let fits = rest.is_empty() || rest == "svc" || rest.strip_prefix("svc.") == Some(domain);
        let name = NamespacedName::new(namespace, name).ok().filter(|_| fits)?;
        cluster.services.get(&name)?.cluster_ip(family)
    };
    let ingress = || {
        let has_rule = |lb: &&LoadBalancer| {
            let mut rules = lb.listeners.iter().flat_map(|listener| &listener.rules);
            rules.any(|rule| rule.host.as_deref().is_some_and(|own| own.eq_ignore_ascii_case(host)))
        };
        load_balancers.iter().find(has_rule).map(|lb| lb.vip)
    };
    stated.map(|(_, ip)| *ip).find(of_family).or_else(service).or_else(ingress)
}

pub(super) fn unknown(what: &impl std::fmt::Display) -> LabError {
    LabError::Plan(format!("the cluster has no {what}"))
}
