//! Cures of Services with the address of another machine: without that address.

use std::net::IpAddr;

use uturn_clouds::cloud;
use uturn_document::edit::{At, Change, Tree};
use uturn_model::announcement::AddressPool;
use uturn_model::shell::Advice;
use uturn_model::{Family, IpNet, ObjectKind, ObjectRef, Service};

use super::super::comparison::GivenUp;
use super::super::{Case, Proposal, way};
use super::{MAX_ADDRESSES, is_of_service, service_of};
use crate::Finding;

pub(super) fn propose(case: &Case<'_>, fault: &Finding) -> Vec<Proposal> {
    let Some(service) = service_of(case, fault) else { return Vec::new() };
    let addresses: Vec<IpAddr> =
        fault.targets.iter().filter_map(|target| target.parse().ok()).collect();
    if let Some(made) = own_addresses(case, service, &addresses) {
        return vec![made];
    }
    if let Some(made) = another_address(case, service, &addresses) {
        return vec![made];
    }
    let mut all = Vec::new();
    all.extend(no_external_ip(case, service, &addresses));
    all.extend(smaller_pool(case, service, &addresses));
    all
}

/// Proposes nodes' own addresses in place of the public ones that the network translates to them.
fn own_addresses(case: &Case<'_>, service: &Service, addresses: &[IpAddr]) -> Option<Proposal> {
    let object = service.object();
    let place = |at: usize| -> Vec<At> { way!["spec", "externalIPs", at] };
    let own = |ip: IpAddr| {
        let mut nodes = case.cluster().nodes.values();
        let node = nodes.find(|node| node.external_ips.contains(&ip))?;
        node.address(Family::of(ip)).filter(|own| *own != ip && !node.internal_ips.contains(&ip))
    };
    if !addresses.iter().any(|ip| own(*ip).is_some()) {
        return None;
    }
    let written = (0..).map_while(|at| case.manifests.text_at(&object, &place(at)));
    let public = written.enumerate().filter_map(|(at, text)| {
        let ip: IpAddr = text.parse().ok()?;
        Some((at, ip, own(ip)?))
    });
    let public: Vec<(usize, IpAddr, IpAddr)> = public.collect();
    let named: Vec<String> =
        public.iter().map(|(_, ip, own)| format!("{own} in place of {ip}")).collect();
    let title = format!("{} in externalIPs of svc/{}", named.join(", "), service.name);
    let mut made = Proposal::new("own-addresses", 8, title)
        .costs("a node that is replaced has another address: externalIPs has to follow");
    for (at, _, own) in public {
        made = made.edit(object.clone(), place(at), Change::Set(Tree::text(own.to_string())));
    }
    Some(made)
}

/// Proposes another address for a Service at whose address a load balancer listens for an Ingress.
fn another_address(case: &Case<'_>, service: &Service, addresses: &[IpAddr]) -> Option<Proposal> {
    let cluster = case.cluster();
    let of_ingress = |ip: &&IpAddr| {
        let mut all = cluster.ingresses.values().flat_map(|ingress| &ingress.load_balancer);
        all.any(|entry| entry.ip == Some(**ip))
    };
    let has = |ip: IpAddr| service.load_balancer.iter().any(|entry| entry.ip == Some(ip));
    let address = *addresses.iter().find(|ip| has(**ip) && of_ingress(ip))?;
    let around = IpNet::new(address, if address.is_ipv4() { 24 } else { 120 }).ok()?.trunc();
    let is_free = |ip: &IpAddr| {
        *ip > address
            && !is_of_service(cluster, *ip)
            && !of_ingress(&ip)
            && !cluster.nodes.values().any(|node| node.has_address(*ip))
            && !cluster.pods.values().any(|pod| pod.ips.contains(ip))
    };
    let free = around.hosts().take(MAX_ADDRESSES).find(is_free)?;
    let title = format!("an address of its own for svc/{}", service.name);
    let mut made = Proposal::new("own-address", 12, title)
        .ask(format!("{free} is free"), "it is made up: reserve one in the same network")
        .costs("the Service gets another address: names in front of it have to lead there");
    let path = way!["spec", "loadBalancerIP"];
    if case.manifests.text_at(&service.object(), &path).is_some() {
        made = made.edit(service.object(), path, Change::Set(Tree::text(free.to_string())));
    } else {
        let typed = "ask the controller for an address that no other load balancer has, by loadBalancerIP or \
                     by its annotation for one";
        made = made.types(Advice::sentence(typed));
    }
    let entries = Tree::List(vec![Tree::map([("ip", Tree::text(free.to_string()))])]);
    made = made.follow(
        service.object(),
        way!["status", "loadBalancer", "ingress"],
        Change::Set(entries),
    );
    made.gives_up_addresses = vec![address];
    Some(made)
}

/// Proposes that `spec.externalIPs` lacks the addresses.
fn no_external_ip(case: &Case<'_>, service: &Service, addresses: &[IpAddr]) -> Option<Proposal> {
    let object = service.object();
    let place = |at: usize| -> Vec<At> { way!["spec", "externalIPs", at] };
    let written = |at: usize| case.manifests.text_at(&object, &place(at));
    let is_taken = |text: &str| text.parse().is_ok_and(|ip| addresses.contains(&ip));
    let all: Vec<String> = (0..).map_while(written).collect();
    // The last one is removed first: the others keep their places.
    let taken = all.iter().enumerate().rev().filter(|(_, text)| is_taken(text));
    let taken: Vec<(usize, &String)> = taken.collect();
    if taken.is_empty() {
        return None;
    }
    let named: Vec<&str> = taken.iter().rev().map(|(_, text)| text.as_str()).collect();
    let title = format!("no {} in externalIPs of svc/{}", named.join(" and "), service.name);
    let mut made = Proposal::new("no-external-ip", 10, title);
    for (at, _) in taken {
        made = made.edit(object.clone(), place(at), Change::Remove);
    }
    made.gives_up_addresses = addresses.to_vec();
    let given_up = GivenUp::at(case.cluster(), addresses);
    if let [first, others @ ..] = given_up.ingresses() {
        let more = match others.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        made = made.costs(format!(
            "{}{more} has this address in its status: its hosts have to be called elsewhere",
            first.short()
        ));
    }
    let ports = service.ports.iter();
    let ports: Vec<String> = ports
        .filter_map(|port| Some(format!("{} for port {}", port.node_port?, port.port)))
        .collect();
    Some(
        made.costs(match ports.as_slice() {
            [] => {
                "it is no longer called at this address: type NodePort opens a port of each node \
               instead, and an address that no machine has may stand in externalIPs"
                    .to_owned()
            }
            some => format!(
                "it is no longer called at this address: node ports lead to it ({})",
                some.join(", ")
            ),
        }),
    )
}

/// Proposes that the pool from which the address comes has no addresses of nodes.
fn smaller_pool(case: &Case<'_>, service: &Service, addresses: &[IpAddr]) -> Option<Proposal> {
    let cluster = case.cluster();
    let has =
        |address: &&IpAddr| service.load_balancer.iter().any(|entry| entry.ip == Some(**address));
    let address = *addresses.iter().find(has)?;
    let nodes: Vec<IpAddr> =
        cluster.nodes.values().flat_map(|node| node.internal_ips.iter().copied()).collect();
    let is_free = |ip: &IpAddr| !nodes.contains(ip) && !is_of_service(cluster, *ip);
    let first =
        |nets: &[IpNet]| nets.iter().find_map(|net| net.hosts().take(MAX_ADDRESSES).find(is_free));
    let pool = cluster.announcements.pool_of(address);
    let (free, mut made) = match pool.and_then(|pool| Some((pool, object_of(pool)?))) {
        Some((pool, object)) => {
            let left: Vec<IpNet> =
                pool.ranges.iter().flat_map(|range| without(*range, &nodes)).collect();
            let texts = left.iter().map(|net| Tree::text(net.to_string())).collect();
            let title = format!("no addresses of nodes in {}", pool.object);
            let change = Change::Set(Tree::List(texts));
            let made = Proposal::new("smaller-pool", 15, title);
            (first(&left)?, made.edit(object, way!["spec", "addresses"], change))
        }
        // The pool is not given, or in a form that is not read.
        None => {
            let around = IpNet::new(address, if address.is_ipv4() { 24 } else { 120 }).ok()?;
            let title = format!("no addresses of nodes in the pool that has {address}");
            let typed = "take the addresses of all nodes out of the pool, and make the Service anew: it \
                         gets another address";
            let made = Proposal::new("smaller-pool", 15, title)
                .ask("the pool has addresses that no machine has", "look at its ranges")
                .types(Advice::sentence(typed));
            (first(&[around.trunc()])?, made)
        }
    };
    let entries = Tree::List(vec![Tree::map([("ip", Tree::text(free.to_string()))])]);
    made = made
        .follow(service.object(), way!["status", "loadBalancer", "ingress"], Change::Set(entries))
        .costs("the Service gets another address: names in front of it have to lead there");
    made.gives_up_addresses = vec![address];
    Some(made)
}

/// Returns the object of a pool.
fn object_of(pool: &AddressPool) -> Option<ObjectRef> {
    let kind = pool.object.split(' ').next()?;
    let kind = cloud::announcement_objects(kind)?.pool;
    Some(ObjectRef::namespaced(ObjectKind::CloudObject(kind), &pool.name))
}

/// Returns a range without some addresses, as the fewest ranges.
fn without(range: IpNet, addresses: &[IpAddr]) -> Vec<IpNet> {
    if !addresses.iter().any(|ip| range.contains(ip)) {
        return vec![range];
    }
    match range.subnets(range.prefix_len() + 1) {
        Ok(halves) => halves.flat_map(|half| without(half, addresses)).collect(),
        Err(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_without_an_address_has_all_others() {
        let range: IpNet = "10.0.0.0/29".parse().unwrap();
        let taken = ["10.0.0.1", "10.0.0.6", "10.0.1.1"].map(|ip| ip.parse().unwrap());
        let left = without(range, &taken);
        let left: Vec<String> = left.iter().map(ToString::to_string).collect();
        assert_eq!(left, ["10.0.0.0/32", "10.0.0.2/31", "10.0.0.4/31", "10.0.0.7/32"]);
    }
}
