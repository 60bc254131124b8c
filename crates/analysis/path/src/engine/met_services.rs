//! The Services whose rules matter for the packets of a few calls, found as the packets meet them.
//!
//! kube-proxy writes rules for every Service on every node, and a packet can match only those of a
//! few: a rule matches an address of its Service, a port that the Service has on nodes, or, in IPVS
//! mode, a source that is one of its endpoints. A translated packet is sent to an endpoint, which
//! may be an address or a port of another Service.

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

/// The Services that were met so far, and the data from which nodes are compiled.
pub(super) struct MetServices<'a> {
    owners: RuleOwners<'a>,
    pods: FastMap<&'a Name, Vec<&'a Pod>>,
    met: Mutex<Met>,
}

/// The Services that were met.
struct Met {
    /// The number of Services that were met before each one, by its place in the cluster.
    turns: FastMap<usize, usize>,
    /// The cluster as kube-proxies see it: all nodes, but only the Services that were met.
    programmed: Cluster,
    /// The cluster with only the pods of the node that is being compiled.
    rest: Cluster,
}

impl<'a> MetServices<'a> {
    /// Makes the index of a cluster. Returns `None` if any Service may matter because packets may
    /// get the address of one that they do not ask for.
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

    /// Adds the Services whose rules a packet can match. Returns how many of the met Services a
    /// node needs for the packet.
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

    /// Compiles a node for the packets that were met.
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

/// The Services, by the addresses and ports that their rules match.
struct RuleOwners<'a> {
    services: Vec<&'a Service>,
    at: FastMap<IpAddr, Vec<usize>>,
    on: FastMap<u16, Vec<usize>>,
    /// The Services by endpoint, if rules match sources that are endpoints.
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

    /// Adds the Services whose rules a packet can match.
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

    /// Returns the Services whose rules can match a packet that the rules of `service` sent to an
    /// endpoint.
    fn behind(&self, cluster: &Cluster, service: &Service) -> Vec<usize> {
        let mut found = Vec::new();
        for to in endpoints(cluster, service) {
            self.add_at(to, &mut found);
        }
        found
    }
}

/// Returns the endpoints of a Service, with their ports.
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
