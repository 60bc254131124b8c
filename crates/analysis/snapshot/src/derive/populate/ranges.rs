//! Allocates free ranges and addresses for objects that have none.

use std::collections::{BTreeMap, HashSet};
use std::net::{IpAddr, Ipv4Addr};

use ipnet::{IpNet, Ipv4Net};

use crate::decode::objects::Objects;
use crate::derive::ground::proxy;
use crate::derive::nets::around;

/// The addresses and ranges that are in use.
pub(in crate::derive) struct Ranges {
    used: HashSet<IpAddr>,
    /// The ranges of pods and of cluster IPs.
    taken: Vec<IpNet>,
    /// The assumed range of the VPC; `None` until it is needed.
    pub(in crate::derive) vpc: Option<IpNet>,
    /// The next number to allocate in each range.
    next: BTreeMap<IpNet, u128>,
}

impl Ranges {
    pub(in crate::derive) fn new(objects: &Objects) -> Self {
        let nodes = objects.nodes.0.values();
        let node_ips =
            nodes.clone().flat_map(|node| node.internal_ips.iter().chain(&node.external_ips));
        let pod_ips = objects.pods.0.values().flat_map(|pod| &pod.ips);
        let services = objects.services.0.values();
        let service_ips = services
            .clone()
            .flat_map(|service| service.cluster_ips.iter().chain(&service.external_ips));
        let ingresses = objects.ingresses.0.values();
        let vips = services.flat_map(|service| &service.load_balancer);
        let vips = vips.chain(ingresses.flat_map(|ingress| &ingress.load_balancer));
        let vips = vips.filter_map(|entry| entry.ip);
        let stated = objects.facts.load_balancers.iter().map(|fact| fact.vip);
        let endpoints: Vec<IpAddr> =
            objects.given_endpoints().map(|endpoint| endpoint.address).collect();
        let mut used: HashSet<IpAddr> =
            node_ips.chain(pod_ips).chain(service_ips).copied().collect();
        used.extend(vips.chain(stated).chain(endpoints.iter().copied()));
        used.extend(objects.host_addresses.values().flatten());

        let facts = &objects.facts;
        let mut taken: Vec<IpNet> = nodes.flat_map(|node| node.pod_cidrs.clone()).collect();
        for stated in [&facts.pod_cidrs, &facts.service_cidrs] {
            taken.extend(stated.iter().flat_map(|(nets, _)| nets));
        }
        taken.extend(proxy::cluster_cidrs(objects).into_iter().flat_map(|(nets, _)| nets));
        let cluster_ips = objects.services.0.values().flat_map(|service| &service.cluster_ips);
        let mut nets: Vec<IpNet> = cluster_ips.filter_map(|ip| around(*ip, 16)).collect();
        let pods = objects.pods.0.values().filter(|pod| !pod.spec.host_network);
        let pod_nets = pods.flat_map(|pod| &pod.ips).filter_map(|ip| around(*ip, 24));
        nets.extend(pod_nets);
        nets.extend(endpoints.into_iter().filter_map(|ip| around(ip, 24)));
        nets.sort_unstable();
        nets.dedup();
        taken.extend(nets);
        Self { used, taken, vpc: None, next: BTreeMap::new() }
    }

    /// Returns the range of the VPC: the stated one, one around addresses that are in it, or a free
    /// one.
    pub(in crate::derive) fn vpc(&mut self, objects: &Objects) -> IpNet {
        if let Some(vpc) = self.vpc {
            return vpc;
        }
        let stated = objects.facts.vpc_cidrs.as_ref().and_then(|(nets, _)| nets.first().copied());
        let node_ips = objects.nodes.0.values().flat_map(|node| &node.internal_ips);
        let near = node_ips.clone().find_map(|ip| around(*ip, 16));
        let vips = objects.facts.load_balancers.iter().map(|fact| fact.vip);
        let ingresses = objects.ingresses.0.values().flat_map(|ingress| &ingress.load_balancer);
        let services = objects.services.0.values().flat_map(|service| &service.load_balancer);
        let vips = vips.chain(ingresses.chain(services).filter_map(|entry| entry.ip));
        let private = |ip: &IpAddr| matches!(ip, IpAddr::V4(ip) if ip.is_private());
        let vip_nets = vips.filter(private).filter_map(|ip| around(ip, 16));
        let candidates: Vec<IpNet> = vip_nets.chain(sixteens(10, 0)).collect();
        let free = candidates.into_iter().find(|net| self.is_free(net));
        let vpc = stated.or(near).or(free).unwrap_or_else(|| v4(10, 0, 16));
        self.vpc = Some(vpc);
        vpc
    }

    /// Allocates a free /16 (or a wider range, for very many nodes) for pods.
    pub(in crate::derive) fn for_pods(&mut self, nodes: usize) -> IpNet {
        let wide = nodes > 250;
        let candidates: Vec<IpNet> = if wide {
            (1..4).map(|at| v4(10, at * 64, 10)).chain([v4(172, 16, 12)]).collect()
        } else {
            sixteens(10, 1).chain(sixteens(172, 16).take(16)).collect()
        };
        self.take(&candidates)
    }

    /// Allocates a free /16 for cluster IPs.
    pub(in crate::derive) fn for_services(&mut self) -> IpNet {
        let candidates: Vec<IpNet> = sixteens(172, 16).take(16).chain(sixteens(10, 96)).collect();
        self.take(&candidates)
    }

    fn take(&mut self, candidates: &[IpNet]) -> IpNet {
        let apart = |net: &IpNet| self.vpc.is_none_or(|vpc| !overlap(net, &vpc));
        let free = candidates.iter().copied().find(|net| apart(net) && self.is_free(net));
        let net = free.unwrap_or_else(|| candidates[candidates.len() - 1]);
        self.taken.push(net);
        net
    }

    fn is_free(&self, net: &IpNet) -> bool {
        !self.taken.iter().any(|taken| overlap(taken, net))
    }

    /// Allocates a free address of a range: number `first`, or one after it.
    pub(in crate::derive) fn address(&mut self, net: IpNet, first: u128) -> Option<IpAddr> {
        let size = 1u128.checked_shl(u32::from(net.max_prefix_len() - net.prefix_len()));
        let last = size.unwrap_or(u128::MAX).saturating_sub(1);
        let mut at = self.next.get(&net).copied().unwrap_or(first).max(first);
        while at < last {
            let address = nth(net, at)?;
            at += 1;
            if self.used.insert(address) {
                self.next.insert(net, at);
                return Some(address);
            }
        }
        None
    }
}

/// Returns the IPv6 range of the VPC: the stated one, or one around a node. Returns `None` if there
/// is neither.
pub(in crate::derive) fn vpc_v6(objects: &Objects) -> Option<IpNet> {
    let stated = objects.facts.vpc_cidrs.iter().flat_map(|(nets, _)| nets);
    let stated = stated.copied().find(|net| net.addr().is_ipv6());
    let mut node_ips = objects.nodes.0.values().flat_map(|node| &node.internal_ips);
    let near = || IpNet::new(*node_ips.find(|ip| ip.is_ipv6())?, 64).ok();
    stated.or_else(near).map(|net| net.trunc())
}

fn overlap(a: &IpNet, b: &IpNet) -> bool {
    a.contains(b) || b.contains(a)
}

fn nth(net: IpNet, at: u128) -> Option<IpAddr> {
    match net.network() {
        IpAddr::V4(ip) => {
            Some(Ipv4Addr::from_bits(ip.to_bits().checked_add(u32::try_from(at).ok()?)?).into())
        }
        IpAddr::V6(ip) => Some(std::net::Ipv6Addr::from_bits(ip.to_bits().checked_add(at)?).into()),
    }
}

fn v4(first: u8, second: u8, length: u8) -> IpNet {
    Ipv4Net::new_assert(Ipv4Addr::new(first, second, 0, 0), length).into()
}

fn sixteens(first: u8, from: u8) -> impl Iterator<Item = IpNet> {
    (from..=255).map(move |second| v4(first, second, 16))
}
