//! Clients outside the cluster that call a load balancer: any client on the internet, or for a
//! private load balancer a machine of the network around the nodes that is not a node.

use std::collections::HashSet;
use std::net::IpAddr;

use uturn_model::lb::{LoadBalancer, Rule, Scope};
use uturn_model::{Client, Cluster, Family, IpNet};
use uturn_path::{Engine, any_client};

/// The maximum number of addresses of a range that are tried to find an unused one.
const MAX_LOOKED_AT: usize = 4096;

/// The maximum number of clients of one network that are walked: firewalls may let only some in.
const MAX_CLIENTS: usize = 8;

/// The clients outside of a cluster.
pub(crate) struct OutsideClients<'a> {
    cluster: &'a Cluster,
    /// The addresses that are in use.
    used: HashSet<IpAddr>,
    /// The ranges of pods and of Services.
    taken: Vec<IpNet>,
}

impl<'a> OutsideClients<'a> {
    pub(crate) fn of(engine: &Engine<'a>) -> Self {
        let cluster = engine.cluster();
        let nodes = || cluster.nodes.values();
        let of_nodes = nodes().flat_map(|node| {
            let own = node.internal_ips.iter().chain(&node.external_ips);
            own.chain(&node.tunnel_ips).chain(&node.local_addresses)
        });
        let of_pods = cluster.pods.values().flat_map(|pod| &pod.ips);
        let services = || cluster.services.values();
        let of_services =
            services().flat_map(|own| own.cluster_ips.iter().chain(&own.external_ips));
        let of_status = services().flat_map(|own| &own.load_balancer);
        let of_status =
            of_status.chain(cluster.ingresses.values().flat_map(|own| &own.load_balancer));
        let of_slices = cluster.endpoints.values().flatten().flat_map(|slice| &slice.endpoints);
        let mut used: HashSet<IpAddr> =
            of_nodes.chain(of_pods).chain(of_services).copied().collect();
        used.extend(of_status.filter_map(|entry| entry.ip));
        used.extend(of_slices.map(|endpoint| endpoint.address));
        used.extend(engine.listeners().iter().map(|balancer| balancer.vip));
        // Pods may have addresses of the nodes' own range; then only the given addresses are known.
        let has_node =
            |net: &IpNet| nodes().flat_map(|node| &node.internal_ips).any(|ip| net.contains(ip));
        let network = &cluster.network;
        let ranges = nodes().flat_map(|node| &node.pod_cidrs).chain(&network.pod_cidrs.value);
        let ranges = ranges.chain(&network.service_cidrs.value).copied();
        let taken = ranges.filter(|net| !has_node(net)).collect();
        Self { cluster, used, taken }
    }

    /// Returns the clients that a rule of a load balancer serves. Empty if no machine of the
    /// network around the nodes may call it.
    pub(super) fn of_rule(&self, balancer: &LoadBalancer, rule: &Rule) -> Vec<Client> {
        let family = Family::of(balancer.vip);
        let service = self.cluster.services.get(&rule.service);
        let ranges = service.map(|service| &*service.source_ranges).unwrap_or_default();
        if balancer.scope == Scope::Public {
            return self.public(family, ranges);
        }
        let Some((near, network)) = self.network(family) else { return Vec::new() };
        let within = |net: IpNet| -> Vec<IpNet> {
            let of_family = ranges.iter().filter(|range| Family::of(range.addr()) == family);
            if ranges.is_empty() {
                vec![net]
            } else {
                of_family.filter_map(|range| common(*range, net)).collect()
            }
        };
        let let_in = self.let_in(balancer).into_iter().filter_map(|peer| common(peer, network));
        let nets = std::iter::once(network).chain(let_in).flat_map(within);
        let mut addresses: Vec<IpAddr> = Vec::new();
        for address in nets.filter_map(|net| self.free(net, near)) {
            if !addresses.contains(&address) && addresses.len() < MAX_CLIENTS {
                addresses.push(address);
            }
        }
        addresses.into_iter().map(|address| Client::Outside(Some(address))).collect()
    }

    /// Returns a machine of the network around the nodes that is not a node.
    pub(crate) fn near(&self, family: Family) -> Option<Client> {
        let (near, network) = self.network(family)?;
        self.free(network, near).map(|address| Client::Outside(Some(address)))
    }

    /// Returns a client of a public address: any client, unless the Service lets in only some.
    fn public(&self, family: Family, ranges: &[IpNet]) -> Vec<Client> {
        if ranges.is_empty() || ranges.iter().any(|range| range.contains(&any_client(family))) {
            return vec![Client::Outside(None)];
        }
        let of_family = ranges.iter().filter(|range| Family::of(range.addr()) == family);
        let mut let_in = of_family.filter_map(|range| self.free(*range, range.addr()));
        let_in.next().map(|ip| Client::Outside(Some(ip))).into_iter().collect()
    }

    /// Returns the address of a node, and the range of the network in which it is.
    fn network(&self, family: Family) -> Option<(IpAddr, IpNet)> {
        let near = self.cluster.nodes.values().find_map(|node| node.address(family))?;
        let mut known = self.cluster.network.vpc_cidrs.value.iter().copied();
        let around = known.find(|net| net.contains(&near));
        Some((near, around.or_else(|| block(near))?))
    }

    /// Returns the ranges that security groups let in.
    fn let_in(&self, balancer: &LoadBalancer) -> Vec<IpNet> {
        let of_nodes = self.cluster.nodes.values().flat_map(|node| &node.security_groups).flatten();
        let names: HashSet<_> = of_nodes.chain(&balancer.security_groups).collect();
        let groups = &self.cluster.security_groups;
        let rules =
            names.into_iter().filter_map(|name| groups.get(name)).flat_map(|own| &own.inbound);
        let mut nets: Vec<IpNet> =
            rules.filter(|rule| rule.accept).filter_map(|rule| rule.peer).collect();
        nets.sort_unstable();
        nets.dedup();
        nets
    }

    /// Returns an address of a range that is not known to be in use, near another address if
    /// possible.
    fn free(&self, net: IpNet, near: IpAddr) -> Option<IpAddr> {
        let block = block(near).and_then(|block| common(block, net));
        let high = block.into_iter().flat_map(|block| block.hosts().skip(199));
        let low = block.into_iter().flat_map(|block| block.hosts().skip(1));
        let mut all = high.chain(low).chain(net.hosts().take(MAX_LOOKED_AT));
        all.find(|ip| !self.used.contains(ip) && !self.taken.iter().any(|net| net.contains(ip)))
    }
}

/// Returns the block of 256 addresses around an address.
fn block(ip: IpAddr) -> Option<IpNet> {
    let length = if ip.is_ipv4() { 24 } else { 120 };
    IpNet::new(ip, length).ok().map(|net| net.trunc())
}

/// Returns the smaller of two ranges, if the other contains it.
fn common(one: IpNet, other: IpNet) -> Option<IpNet> {
    match (one.contains(&other), other.contains(&one)) {
        (true, _) => Some(other),
        (_, true) => Some(one),
        _ => None,
    }
}
