//! Services by their addresses, by their node ports, and by their endpoints at addresses of nodes.

use std::net::{IpAddr, SocketAddr};

use uturn_model::{Cluster, NamespacedName, Service};
use uturn_netfilter::hash::{FastMap, FastSet};

use super::Inventory;
use crate::addresses;

pub(super) type ByAddress<'a> = FastMap<IpAddr, Vec<&'a Service>>;
pub(super) type ByPort<'a> = FastMap<u16, Vec<&'a Service>>;

pub(super) fn by_address_and_port(cluster: &Cluster) -> (ByAddress<'_>, ByPort<'_>) {
    let mut at: ByAddress<'_> = FastMap::default();
    let mut on: ByPort<'_> = FastMap::default();
    let same = |known: Option<&&Service>, other: &Service| {
        known.is_some_and(|known| known.name == other.name)
    };
    for service in cluster.services.values() {
        for ip in addresses::of_service(service) {
            let there = at.entry(ip).or_default();
            if !same(there.last(), service) {
                there.push(service);
            }
        }
        for port in service.ports.iter().filter_map(|port| port.node_port) {
            let there = on.entry(port.number()).or_default();
            if !same(there.last(), service) {
                there.push(service);
            }
        }
    }
    (at, on)
}

impl<'a> Inventory<'a> {
    /// Returns the Services that have an endpoint at this address of a node, where a process
    /// listens.
    pub(crate) fn services_behind(&self, at: SocketAddr) -> &[&'a Service] {
        let all = self.node_endpoints.get_or_init(|| {
            let mut all: FastMap<SocketAddr, Vec<&'a Service>> = FastMap::default();
            for service in self.cluster.services.values() {
                let mut own = FastSet::default();
                for slice in self.cluster.slices(&service.name) {
                    let addresses = slice.endpoints.iter().map(|endpoint| endpoint.address);
                    for address in addresses.filter(|address| self.is_node(*address)) {
                        let ports = slice.ports.iter().map(|port| port.port.number());
                        own.extend(ports.map(|port| SocketAddr::new(address, port)));
                    }
                }
                for at in own {
                    all.entry(at).or_default().push(service);
                }
            }
            all
        });
        all.get(&at).map_or(&[], Vec::as_slice)
    }

    /// Returns whether an endpoint at this address belongs to a pod that does not have the address,
    /// so that nothing tells what is there: walks end there as not known.
    pub(crate) fn is_of_missing_pod(&self, address: IpAddr) -> bool {
        let all = self.of_missing_pods.get_or_init(|| {
            let slices = self.cluster.endpoints.values().flatten();
            let named = slices.flat_map(|slice| &slice.endpoints).filter(|endpoint| {
                endpoint.pod.as_ref().is_some_and(|name| !self.has_address(name, endpoint.address))
            });
            named.map(|endpoint| endpoint.address).collect()
        });
        all.contains(&address)
    }

    fn has_address(&self, name: &NamespacedName, address: IpAddr) -> bool {
        self.pods_at(address).iter().any(|resident| resident.pod.name == *name)
            || self.cluster.pods.get(name).is_some_and(|pod| pod.ips.contains(&address))
    }
}
