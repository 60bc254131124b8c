//! The Services whose rules matter for the packets of a few calls, found as the packets meet them.
//!
//! kube-proxy writes rules for every Service on every node, and a packet can match only those of a few:
//! a rule asks for an address of its Service, for a port that the Service has on nodes, or, in IPVS
//! mode, for a source that is one of its endpoints. What a rule makes of a packet is sent to an endpoint,
//! which may be an address or a port of another Service.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use uturn_model::network::NetworkMode;
use uturn_model::{Cluster, Name, Node, Pod, ProxyMode, Service};
use uturn_netfilter::Packet;
use uturn_netfilter::hash::FastMap;

use super::ready_nodes::ReadyNode;
use crate::node::NodeRuntime;
use crate::outline::outline;

/// Which Services were met so far, and what nodes are made of.
pub(super) struct MetServices<'a> {
    owners: RuleOwners<'a>,
    pods: FastMap<&'a Name, Vec<&'a Pod>>,
    met: Mutex<Met>,
}

/// The Services that were met.
struct Met {
    /// Each with how many were met before it, by its place in the cluster.
    turns: FastMap<usize, usize>,
    /// What kube-proxies see: all nodes, and of Services those that were met.
    programmed: Cluster,
    /// The cluster without pods but those of a node that is made.
    rest: Cluster,
}

impl<'a> MetServices<'a> {
    /// For a cluster. `None` where any Service may matter: if packets may get the address of one that
    /// they do not ask for.
    pub(super) fn of(cluster: &'a Cluster) -> Option<Self> {
        let is_ipvs = cluster.proxy.mode.value == ProxyMode::Ipvs;
        if is_ipvs && cluster.network.mode.value == NetworkMode::VpcCni {
            return None;
        }
        let mut pods: FastMap<&Name, Vec<&Pod>> = FastMap::default();
        for pod in cluster.pods.values() {
            if let Some(node) = &pod.node {
                pods.entry(node).or_default().push(pod);
            }
        }
        let mut programmed = outline(cluster);
        programmed.nodes = cluster.nodes.clone();
        let mut rest = programmed.clone();
        rest.services = cluster.services.clone();
        rest.endpoints = cluster.endpoints.clone();
        rest.load_balancers.clone_from(&cluster.load_balancers);
        let met = Mutex::new(Met { turns: FastMap::default(), programmed, rest });
        Some(Self { owners: RuleOwners::of(cluster), pods, met })
    }

    /// Meets a packet. Returns how many Services have to be known to a node for it.
    pub(super) fn meet(&self, cluster: &Cluster, packet: &Packet) -> usize {
        let mut found = Vec::new();
        self.owners.add_owners(packet, &mut found);
        if found.is_empty() {
            return 0;
        }
        let mut met = self.lock();
        let mut needed = 0;
        while let Some(place) = found.pop() {
            let next = met.turns.len();
            let turn = *met.turns.entry(place).or_insert(next);
            needed = needed.max(turn + 1);
            if turn == next {
                let service = self.owners.services[place];
                let name = &service.name;
                met.programmed.services.insert(name.clone(), service.clone());
                if let Some(slices) = cluster.endpoints.get(name) {
                    met.programmed.endpoints.insert(name.clone(), slices.clone());
                }
                found.extend(self.owners.behind(cluster, service));
            }
        }
        needed
    }

    /// Makes a node ready for the packets that were met.
    pub(super) fn make(&self, node: &Node) -> ReadyNode {
        let met = &mut *self.lock();
        let own = self.pods.get(&node.name).into_iter().flatten();
        met.rest.pods = own.map(|pod| (pod.name.clone(), (*pod).clone())).collect();
        let found = NodeRuntime::with_rules_of(&met.programmed, &met.rest, node);
        met.rest.pods = BTreeMap::new();
        ReadyNode { found: found.map(Arc::new), services: met.turns.len() }
    }

    fn lock(&self) -> MutexGuard<'_, Met> {
        self.met.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The Services, by what their rules ask for.
struct RuleOwners<'a> {
    services: Vec<&'a Service>,
    at: FastMap<IpAddr, Vec<usize>>,
    on: FastMap<u16, Vec<usize>>,
    /// By their endpoints, where rules ask for sources that are endpoints.
    of_endpoint: FastMap<IpAddr, Vec<usize>>,
}

impl<'a> RuleOwners<'a> {
    fn of(cluster: &'a Cluster) -> Self {
        let mut own = Self {
            services: cluster.services.values().collect(),
            at: FastMap::default(),
            on: FastMap::default(),
            of_endpoint: FastMap::default(),
        };
        for (place, service) in cluster.services.values().enumerate() {
            let addresses = service.cluster_ips.iter().chain(&service.external_ips).copied();
            for ip in addresses.chain(service.load_balancer.iter().filter_map(|entry| entry.ip)) {
                own.at.entry(ip).or_default().push(place);
            }
            let ports = service.ports.iter().filter_map(|port| port.node_port);
            for port in ports.chain(service.health_check_node_port) {
                own.on.entry(port.number()).or_default().push(place);
            }
            if cluster.proxy.mode.value == ProxyMode::Ipvs {
                for ip in endpoints(cluster, service).map(|to| to.ip()) {
                    own.of_endpoint.entry(ip).or_default().push(place);
                }
            }
        }
        own
    }

    /// Those whose rules a packet can match.
    fn add_owners(&self, packet: &Packet, found: &mut Vec<usize>) {
        let (_, port) = packet.transport.ports();
        self.add_at(SocketAddr::new(packet.dst, port), found);
        found.extend(self.at.get(&packet.src).into_iter().flatten());
        found.extend(self.of_endpoint.get(&packet.src).into_iter().flatten());
    }

    fn add_at(&self, to: SocketAddr, found: &mut Vec<usize>) {
        found.extend(self.at.get(&to.ip()).into_iter().flatten());
        found.extend(self.on.get(&to.port()).into_iter().flatten());
    }

    /// Those whose rules a packet can match that the rules of a Service sent to an endpoint.
    fn behind(&self, cluster: &Cluster, service: &Service) -> Vec<usize> {
        let mut found = Vec::new();
        for to in endpoints(cluster, service) {
            self.add_at(to, &mut found);
        }
        found
    }
}

/// The endpoints of a Service, with their ports.
fn endpoints<'c>(
    cluster: &'c Cluster,
    service: &Service,
) -> impl Iterator<Item = SocketAddr> + use<'c> {
    cluster.slices(&service.name).iter().flat_map(|slice| {
        let ports = slice.ports.iter().map(|port| port.port.number());
        ports.flat_map(move |port| {
            let addresses = slice.endpoints.iter().map(|endpoint| endpoint.address);
            addresses.map(move |address| SocketAddr::new(address, port))
        })
    })
}
