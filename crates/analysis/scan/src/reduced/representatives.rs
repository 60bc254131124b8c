//! The number of objects that each object of a reduced cluster represents, and what that cluster
//! lacks.
//!
//! Rules of captured nodes may lead to objects that the reduced cluster lacks. If a packet reaches
//! such an object, the whole cluster has to be walked.

use std::net::{IpAddr, SocketAddr};

use uturn_model::lb::Target;
use uturn_model::{Cluster, Name, Service};
use uturn_path::{Engine, Failover, KnownDestination, Population};

use crate::failover::target_list::TargetList;
use crate::inventory::Inventory;

use super::reduced_cluster::Weights;

/// The nodes and pods of a reduced cluster.
pub(crate) struct Representatives<'r, 'a> {
    inventory: &'r Inventory<'a>,
    cluster: &'r Cluster,
    /// The number that each represents; `None` if each represents only itself.
    weights: Option<Weights>,
}

impl<'r, 'a> Representatives<'r, 'a> {
    pub(crate) fn new(
        inventory: &'r Inventory<'a>,
        cluster: &'r Cluster,
        weights: Option<Weights>,
    ) -> Self {
        Self { inventory, cluster, weights }
    }

    /// Makes the reduced cluster ready for the calls to `some` of `all` targets. Captured nodes
    /// have the same kernels as in the whole cluster.
    pub(crate) fn engine(&self, some: usize, all: usize) -> Engine<'r> {
        let engine = Engine::reduced(self.cluster, self).for_targets(some, all);
        for (name, runtime) in &self.inventory.captured {
            engine.adopt(name, runtime);
        }
        engine
    }

    /// Returns the number that each represents. Returns `None` if each represents only itself.
    pub(crate) fn weights(&self) -> Option<&Weights> {
        self.weights.as_ref()
    }

    /// Returns all targets of a load balancer that tries one after the other.
    pub(crate) fn list(&self) -> Option<&TargetList> {
        self.weights.as_ref()?.retries.list.as_ref()
    }
}

impl Population for Representatives<'_, '_> {
    fn targets(&self, target: &Target) -> u32 {
        self.weights.as_ref().map_or(1, |weights| weights.retries.counts.of(target))
    }

    fn endpoints(&self, address: IpAddr) -> Option<f64> {
        self.weights.as_ref()?.endpoints.get(&address).copied()
    }

    fn is_whole(&self) -> bool {
        !self.inventory.has_captures()
    }

    fn lacks_destination(&self, to: SocketAddr, known: KnownDestination) -> bool {
        let (inventory, ip) = (self.inventory, to.ip());
        let at_address = inventory.services_at.get(&ip).into_iter().flatten();
        let on_port = inventory.services_on.get(&to.port()).into_iter().flatten();
        let is_missing = |service: &&Service| !self.cluster.services.contains_key(&service.name);
        at_address.chain(on_port).any(is_missing)
            || (!known.is_host && inventory.node_towards(ip).is_some())
            || (!known.is_balancer && inventory.ingresses_at.contains_key(&ip))
    }

    fn lacks_endpoint(&self, address: IpAddr) -> bool {
        self.endpoints(address).is_none()
    }

    fn lacks_process(&self, node: &Name, port: u16) -> bool {
        let on_port = self.inventory.host_ports.get(&port).into_iter().flatten();
        let is_here = |place: u32| self.inventory.nodes[place as usize].node.name == *node;
        on_port.into_iter().any(|(place, _)| is_here(*place))
            || self.inventory.host_endpoints.contains(&port)
    }

    fn failover(&self) -> Option<&dyn Failover> {
        let weights = self.weights.as_ref()?;
        Some(&weights.retries)
    }
}
