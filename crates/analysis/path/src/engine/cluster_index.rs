//! An index of a cluster's objects by address.

use std::net::IpAddr;
use std::sync::OnceLock;

use uturn_clouds::local_addresses;
use uturn_model::{Cluster, Name, NamespacedName, Node, Pod};
use uturn_netfilter::hash::{FastMap, FastSet};

/// An index of a cluster's objects by address.
pub(crate) struct ClusterIndex<'a> {
    cluster: &'a Cluster,
    pods: FastMap<IpAddr, &'a NamespacedName>,
    nodes: FastMap<IpAddr, &'a Node>,
    /// Further addresses that only one node holds, as Facts state or captures show.
    held: FastMap<IpAddr, &'a Node>,
    /// The first pod in each node's network that listens on a port.
    host_pods: FastMap<(&'a Name, u16), &'a Pod>,
    /// Addresses of nodes with ports that are endpoints of Services.
    node_endpoints: OnceLock<FastSet<(IpAddr, u16)>>,
    /// Addresses with ports that are endpoints of Services.
    endpoints: OnceLock<FastSet<(IpAddr, u16)>>,
}

impl<'a> ClusterIndex<'a> {
    pub(super) fn new(cluster: &'a Cluster) -> Self {
        let alive = || cluster.pods.values().filter(|pod| pod.is_alive());
        let own = alive().filter(|pod| !pod.spec.host_network);
        let pods = own.flat_map(|pod| pod.ips.iter().map(|ip| (*ip, &pod.name))).collect();
        let mut nodes = FastMap::default();
        for node in cluster.nodes.values() {
            for ip in node.internal_ips.iter().chain(&node.external_ips).chain(&node.tunnel_ips) {
                nodes.entry(*ip).or_insert(node);
            }
        }
        let held = local_addresses::stated(cluster)
            .into_iter()
            .filter_map(|(ip, node)| Some((ip, node?)))
            .collect();
        let mut host_pods = FastMap::default();
        for pod in alive().filter(|pod| pod.spec.host_network) {
            let Some(node) = &pod.node else { continue };
            for port in pod.spec.ports() {
                host_pods.entry((node, port.port.number())).or_insert(pod);
            }
        }
        let (node_endpoints, endpoints) = (OnceLock::new(), OnceLock::new());
        Self { cluster, pods, nodes, held, host_pods, node_endpoints, endpoints }
    }

    /// Returns the pod outside its node's network that has this address.
    pub(crate) fn pod_at(&self, address: IpAddr) -> Option<&'a Pod> {
        self.pods.get(&address).and_then(|name| self.cluster.pods.get(*name))
    }

    /// Returns the hostNetwork pod on a node that listens on a port.
    pub(crate) fn host_pod_on(&self, node: &'a Node, port: u16) -> Option<&'a Pod> {
        self.host_pods.get(&(&node.name, port)).copied()
    }

    /// Returns the node that has this address.
    pub(crate) fn node_at(&self, address: IpAddr) -> Option<&'a Node> {
        self.nodes.get(&address).copied()
    }

    /// Returns the only node that is stated to hold this address beside its own.
    pub(crate) fn holder_of(&self, address: IpAddr) -> Option<&'a Node> {
        self.held.get(&address).copied()
    }

    /// Returns the endpoints of Services at addresses of nodes.
    pub(crate) fn node_endpoints(&self) -> &FastSet<(IpAddr, u16)> {
        self.node_endpoints.get_or_init(|| {
            let slices = self.cluster.endpoints.values().flatten();
            let found = slices.flat_map(|slice| {
                let on_nodes = slice.endpoints.iter().map(|endpoint| endpoint.address);
                let on_nodes = on_nodes.filter(|address| self.node_at(*address).is_some());
                on_nodes.flat_map(|address| {
                    slice.ports.iter().map(move |port| (address, port.port.number()))
                })
            });
            found.collect()
        })
    }

    /// Returns whether the address and port are an endpoint of a Service.
    pub(crate) fn is_endpoint(&self, address: IpAddr, port: u16) -> bool {
        let all = self.endpoints.get_or_init(|| {
            let slices = self.cluster.endpoints.values().flatten();
            let found = slices.flat_map(|slice| {
                let addresses = slice.endpoints.iter().map(|endpoint| endpoint.address);
                addresses.flat_map(|address| {
                    slice.ports.iter().map(move |port| (address, port.port.number()))
                })
            });
            found.collect()
        });
        all.contains(&(address, port))
    }
}
