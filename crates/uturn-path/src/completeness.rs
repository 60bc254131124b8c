//! Captured kernels in a small cluster: their rules lead to whom they please, and who is not
//! there may be in the whole cluster. Where a packet gets to such a one, the whole is walked.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use uturn_model::{Name, Node, Service};
use uturn_netfilter::hash::FastMap;

use crate::engine::{Engine, Fault};
use crate::inventory::Inventory;
use crate::node::NodeRuntime;
use crate::reduced_cluster::Weights;
use crate::redundant_capture::{Addresses, without_capture};

/// Captured nodes with their kernels.
type Captured<'a> = Vec<(&'a Name, Arc<NodeRuntime>)>;

impl<'a> Engine<'a> {
    /// The kernels of the nodes that were captured, and apart from them the nodes of whom a
    /// capture says what would be worked out without it: as they are without.
    pub(crate) fn captured(&self) -> (Captured<'a>, FastMap<&'a Name, Node>) {
        let (mut captured, mut plain) = (Vec::new(), FastMap::default());
        if self.cluster.captures.is_empty() {
            return (captured, plain);
        }
        let known = Addresses::of(self.cluster);
        let is_captured = |name: &&'a Name| self.cluster.captures.contains_key(*name);
        for name in self.worlds.keys().copied().filter(is_captured) {
            let (node, world) = (&self.cluster.nodes[name], self.world(name));
            if let Some(node) = without_capture(self.cluster, node, world, &known) {
                plain.insert(name, node);
            } else if let Some(world) = self.worlds[name].get() {
                captured.push((name, Arc::clone(world)));
            }
        }
        (captured, plain)
    }

    /// In a small cluster: gives captured nodes the kernels that they have in the whole one.
    pub(crate) fn adopt(&mut self, whole: &'a Inventory<'a>) {
        for (name, world) in &whole.captured {
            if let Some(own) = self.worlds.get(*name) {
                // It is new: nobody has made one yet.
                let _ = own.set(Arc::clone(world));
            }
        }
        self.whole = Some(whole).filter(|one| one.has_captures());
    }

    /// Notes that a packet came to somebody who is not in this small cluster, if so.
    pub(crate) fn mind_strangers(&self, to: SocketAddr) {
        let Some(census) = self.whole else { return };
        let is_stranger = |one: &Service| !self.cluster.services.contains_key(&one.name);
        let ip = to.ip();
        let at = census.services_at.get(&ip).into_iter().chain(census.services_on.get(&to.port()));
        let is_balanced = || {
            census.ingresses_at.contains_key(&ip)
                && self.balancers().iter().all(|one| one.vip != ip)
        };
        let is_held = self.node_at(ip).is_some() || self.pod_at(ip).is_some();
        if at.flatten().any(|one| is_stranger(one))
            || (!is_held && census.node_towards(ip).is_some())
            || is_balanced()
        {
            self.fault.borrow_mut().get_or_insert(Fault::NeedsAll);
        }
    }

    /// Notes that rules sent a packet to somebody who is no endpoint of this small cluster's
    /// Services, if so: who calls itself there is not known.
    pub(crate) fn mind_endpoints(&self, ip: IpAddr) {
        let is_known = |weights: &Weights| weights.endpoints.contains_key(&ip);
        if self.whole.is_some() && !self.weights.as_ref().is_some_and(is_known) {
            self.fault.borrow_mut().get_or_insert(Fault::NeedsAll);
        }
    }

    /// Notes that a packet came to a process that is not in this small cluster, if so.
    pub(crate) fn mind_processes(&self, node: &'a Node, port: u16) {
        let Some(census) = self.whole else { return };
        let on_port = census.host_ports.get(&port).into_iter().flatten();
        let is_here = |place: &u32| census.nodes[*place as usize].node.name == node.name;
        if self.host_pod_on(node, port).is_none() && on_port.into_iter().any(|(at, _)| is_here(at))
        {
            self.fault.borrow_mut().get_or_insert(Fault::NeedsAll);
        }
    }
}
