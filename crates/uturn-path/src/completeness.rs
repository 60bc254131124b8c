//! Captured kernels in a small cluster: their rules lead to whom they please, and who is not
//! there may be in the whole cluster. Where a packet gets to such a one, the whole is walked.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use uturn_model::{Name, Node, Service};
use uturn_netfilter::hash::FastMap;

use crate::engine::{Engine, WalkError};
use crate::inventory::Inventory;
use crate::node::NodeRuntime;
use crate::reduced_cluster::Weights;
use crate::redundant_capture::{Addresses, without_capture};

/// Captured nodes with their kernels.
type Captured<'a> = Vec<(&'a Name, Arc<NodeRuntime>)>;
/// The same, and the nodes whose capture says nothing new.
type CapturedAndPlain<'a> = (Captured<'a>, FastMap<&'a Name, Node>);

impl<'a> Engine<'a> {
    /// The kernels of the nodes that were captured, and apart from them the nodes of whom a
    /// capture says what would be worked out without it: as they are without.
    pub(crate) fn captured(&self) -> Result<CapturedAndPlain<'a>, WalkError> {
        let (mut captured, mut plain) = (Vec::new(), FastMap::default());
        if self.cluster.captures.is_empty() {
            return Ok((captured, plain));
        }
        let known = Addresses::of(self.cluster);
        let is_captured = |name: &&'a Name| self.cluster.captures.contains_key(*name);
        for name in self.runtimes.keys().copied().filter(is_captured) {
            let (node, runtime) = (&self.cluster.nodes[name], self.runtime(name)?);
            match without_capture(self.cluster, node, runtime, &known) {
                Some(node) => drop(plain.insert(name, node)),
                None => captured.push((name, Arc::clone(runtime))),
            }
        }
        Ok((captured, plain))
    }

    /// In a small cluster: gives captured nodes the kernels that they have in the whole one.
    pub(crate) fn adopt(&mut self, whole: &'a Inventory<'a>) {
        for (name, runtime) in &whole.captured {
            if let Some(own) = self.runtimes.get(*name) {
                // It is new: nobody has made one yet.
                let _ = own.set(Ok(Arc::clone(runtime)));
            }
        }
        self.whole = Some(whole).filter(|one| one.has_captures());
    }

    /// Notes that a packet came to somebody who is not in this small cluster, if so.
    pub(crate) fn mind_strangers(&self, to: SocketAddr) -> Result<(), WalkError> {
        let Some(census) = self.whole else { return Ok(()) };
        let is_stranger = |one: &Service| !self.cluster.services.contains_key(&one.name);
        let ip = to.ip();
        let at = census.services_at.get(&ip).into_iter().chain(census.services_on.get(&to.port()));
        let is_balanced = || {
            census.ingresses_at.contains_key(&ip)
                && self.balancers().iter().all(|one| one.vip != ip)
        };
        let is_held = self.node_at(ip).is_some() || self.pod_at(ip).is_some();
        let is_missing = at.flatten().any(|one| is_stranger(one))
            || (!is_held && census.node_towards(ip).is_some())
            || is_balanced();
        if is_missing { Err(WalkError::NeedsWhole) } else { Ok(()) }
    }

    /// Notes that rules sent a packet to somebody who is no endpoint of this small cluster's
    /// Services, if so: who calls itself there is not known.
    pub(crate) fn mind_endpoints(&self, ip: IpAddr) -> Result<(), WalkError> {
        let is_known = |weights: &Weights| weights.endpoints.contains_key(&ip);
        let is_missing = self.whole.is_some() && !self.weights.as_ref().is_some_and(is_known);
        if is_missing { Err(WalkError::NeedsWhole) } else { Ok(()) }
    }

    /// Notes that a packet came to a process that is not in this small cluster, if so.
    pub(crate) fn mind_processes(&self, node: &'a Node, port: u16) -> Result<(), WalkError> {
        let Some(census) = self.whole else { return Ok(()) };
        let on_port = census.host_ports.get(&port).into_iter().flatten();
        let is_here = |place: &u32| census.nodes[*place as usize].node.name == node.name;
        let is_missing = self.host_pod_on(node, port).is_none()
            && on_port.into_iter().any(|(place, _)| is_here(place));
        if is_missing { Err(WalkError::NeedsWhole) } else { Ok(()) }
    }
}
