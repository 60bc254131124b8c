//! The nodes at which a Service's node ports are called: one or two of each kind.
//!
//! Nodes of a kind differ further by whether they have an endpoint of the Service: policy Local, and
//! hairpin connections, depend on that. They also differ by whether pods of the cluster run there:
//! for a pod, its own node is the exception, and if all clients are on the called node, nothing is
//! learnt about the others.

use std::collections::BTreeSet;
use std::net::IpAddr;

use uturn_model::proxy::NodePortAddresses;
use uturn_model::service::ServiceKind;
use uturn_model::{Cluster, Family, Name, Node, Service};
use uturn_netfilter::hash::{FastMap, FastSet};

use super::node_kinds::node_kinds;

/// The maximum number of nodes at which the node ports of one Service are called.
const MAX_CALLED: usize = 4;

/// A node at which a node port is called, for all nodes of its kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CalledNode {
    /// The name of the node.
    pub name: Name,
    /// The number of other nodes of the same kind.
    pub others: usize,
    /// Whether an endpoint of the Service that serves or is ready is on the node.
    pub has_endpoint: bool,
}

/// The nodes of a cluster, by kind.
pub(super) struct CalledNodes<'a> {
    cluster: &'a Cluster,
    kinds: Vec<Kind<'a>>,
    /// The kind of each node, and its place there.
    places: FastMap<&'a Name, (usize, usize)>,
}

/// The nodes of a kind.
struct Kind<'a> {
    nodes: Vec<&'a Node>,
    /// The places of nodes on which pods with an address of their own run.
    busy: Vec<usize>,
    /// The places of the others.
    idle: Vec<usize>,
}

impl<'a> CalledNodes<'a> {
    pub(super) fn of(cluster: &'a Cluster) -> Self {
        let clients = cluster
            .pods
            .values()
            .filter(|pod| pod.is_alive() && !pod.spec.host_network && !pod.ips.is_empty());
        let with_clients: FastSet<&Name> = clients.filter_map(|pod| pod.node.as_ref()).collect();
        let mut places = FastMap::default();
        let mut kinds = Vec::new();
        for (kind, nodes) in node_kinds(cluster).into_iter().enumerate() {
            let all = nodes.iter().enumerate();
            places.extend(all.map(|(place, node)| (&node.name, (kind, place))));
            let (busy, idle) =
                (0..nodes.len()).partition(|place| with_clients.contains(&nodes[*place].name));
            kinds.push(Kind { nodes, busy, idle });
        }
        Self { cluster, kinds, places }
    }

    /// Returns the nodes at which the node ports of a Service are called, each with its address.
    /// Empty if clients have another address to call: a load balancer's.
    pub(super) fn of_service(&self, service: &Service) -> Vec<(CalledNode, IpAddr)> {
        let is_called = match service.kind {
            ServiceKind::NodePort => true,
            ServiceKind::LoadBalancer => service.load_balancer.is_empty(),
            _ => false,
        };
        if !is_called || service.ports.iter().all(|port| port.node_port.is_none()) {
            return Vec::new();
        }
        let slices = self.cluster.slices(&service.name).iter();
        let endpoints = slices.flat_map(|slice| &slice.endpoints);
        let serving = endpoints.filter(|endpoint| endpoint.ready || endpoint.serving);
        let homes = serving.filter_map(|endpoint| endpoint.node.as_ref());
        // By kind, in the order of the nodes.
        let homes: BTreeSet<(usize, usize)> =
            homes.filter_map(|name| self.places.get(name).copied()).collect();
        let families: BTreeSet<Family> =
            service.cluster_ips.iter().map(|ip| Family::of(*ip)).collect();
        let mut called = Vec::new();
        for (number, kind) in self.kinds.iter().enumerate() {
            let with: Vec<usize> =
                homes.range((number, 0)..(number + 1, 0)).map(|(_, place)| *place).collect();
            let is_home = |place: &usize| homes.contains(&(number, *place));
            // Endpoints are clients, too.
            let without = |all: &[usize]| {
                let first = all.iter().find(|place| !is_home(place))?;
                let homes = with.iter().filter(|place| all.binary_search(place).is_ok()).count();
                Some((*first, all.len() - homes))
            };
            let first_home = with.first().map(|first| (*first, with.len()));
            let found =
                [(first_home, true), (without(&kind.busy), false), (without(&kind.idle), false)];
            for (found, has_endpoint) in found {
                let Some((first, count)) = found else { continue };
                let node = kind.nodes[first];
                let name = node.name.clone();
                let called_node = CalledNode { name, others: count - 1, has_endpoint };
                for family in &families {
                    if called.len() < MAX_CALLED
                        && let Some(ip) = self.address(node, *family)
                    {
                        called.push((called_node.clone(), ip));
                    }
                }
            }
        }
        called
    }

    /// Returns the first address of a node at which its kube-proxy accepts node ports.
    fn address(&self, node: &Node, family: Family) -> Option<IpAddr> {
        let mut own = node.internal_ips.iter().copied().filter(|ip| Family::of(*ip) == family);
        let NodePortAddresses::Ranges(ranges) = &self.cluster.proxy.node_port_addresses else {
            return own.next();
        };
        let mut of_family = ranges.iter().filter(|net| Family::of(net.addr()) == family).peekable();
        if of_family.peek().is_none() {
            return own.next();
        }
        let of_family: Vec<_> = of_family.collect();
        own.find(|ip| of_family.iter().any(|net| net.contains(ip)))
    }
}
