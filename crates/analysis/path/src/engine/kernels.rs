//! The nodes' kernels of an engine: each is compiled when a packet first reaches the node.

use std::sync::Arc;

use uturn_model::node::Firewall;
use uturn_model::{Family, Name, Node};
use uturn_netfilter::Packet;

use super::Engine;
use super::ready_nodes::{KernelCounts, ReadyNode, ReadyNodes};
use crate::error::WalkError;
use crate::node::NodeRuntime;
use crate::outline::outline_with;

impl<'a> Engine<'a> {
    /// Compiles the given rules, and tries kube-proxy's settings. A firewall's rules are read once,
    /// however many nodes have them.
    pub(super) fn check(&self) -> Result<(), Vec<WalkError>> {
        let cluster = self.cluster;
        let mut faults = Vec::new();
        let mut read: Vec<Option<&Firewall>> = Vec::new();
        for (name, node) in &cluster.nodes {
            let firewall = node.firewall.as_ref();
            let made = if cluster.captures.contains_key(name) {
                NodeRuntime::new(cluster, node).map(|runtime| self.keep(name, Ok(runtime.into())))
            } else if read.contains(&firewall) {
                continue;
            } else {
                read.push(firewall);
                match firewall {
                    // The firewall may refer to chains of any Service.
                    Some(_) => NodeRuntime::new(cluster, node).map(drop),
                    None => NodeRuntime::new(&outline_with(cluster, node), node).map(drop),
                }
            };
            faults.extend(made.err());
        }
        faults.dedup_by(|a, b| a.has_same_cause(b));
        if faults.is_empty() { Ok(()) } else { Err(faults) }
    }

    /// Returns whether the node's rules are given. Such rules may refer to chains of any Service.
    pub(super) fn has_given_rules(&self, node: &Name) -> bool {
        self.cluster.captures.contains_key(node) || self.cluster.nodes[node].firewall.is_some()
    }

    /// Limits the number of entries of all kernels that the engine keeps together.
    #[must_use]
    pub fn limited_to(self, entries: usize) -> Self {
        Self { nodes: ReadyNodes::limited_to(entries, entries / 4), ..self }
    }

    /// Returns the compiled kernel of a node. If [`Self::with_met_services`] made the engine, it
    /// may lack kube-proxy's rules for Services that no packet has met.
    ///
    /// # Errors
    /// Returns an error if the node's rules cannot be compiled or read.
    pub fn runtime(&self, node: &Name) -> Result<Arc<NodeRuntime>, WalkError> {
        self.ready(node, 0)
    }

    /// Returns the compiled kernel of a node, with all rules that the packet can match there.
    ///
    /// # Errors
    /// Returns an error if the node's rules cannot be compiled or read.
    pub(crate) fn runtime_for(
        &self,
        node: &Name,
        packet: &Packet,
    ) -> Result<Arc<NodeRuntime>, WalkError> {
        let services = self.met.as_ref().map_or(0, |met| met.meet(self.cluster, packet));
        self.ready(node, services)
    }

    /// Returns a node's kernel with the rules of at least the first `services` Services that were
    /// met.
    fn ready(&self, name: &Name, services: usize) -> Result<Arc<NodeRuntime>, WalkError> {
        if let Some(ready) = self.nodes.get(name).filter(|ready| ready.services >= services) {
            return ready.found;
        }
        let (name, node) =
            self.cluster.nodes.get_key_value(name).expect("walks pass nodes of the cluster");
        let Some(met) = self.met.as_ref().filter(|_| !self.has_given_rules(name)) else {
            let found = NodeRuntime::new(self.cluster, node).map(Arc::new);
            self.keep(name, found.clone());
            return found;
        };
        let ready = met.make(node);
        self.nodes.keep(name, ready.clone());
        ready.found
    }

    /// Keeps a node's kernel that has the rules of all Services.
    fn keep(&self, name: &'a Name, found: Result<Arc<NodeRuntime>, WalkError>) {
        self.nodes.keep(name, ReadyNode { found, services: usize::MAX });
    }

    /// Gives a node the kernel that another engine made ready for it. Changes nothing if the
    /// node has one already or is not in the cluster.
    pub fn adopt(&self, node: &Name, runtime: &Arc<NodeRuntime>) {
        if let Some((name, _)) = self.cluster.nodes.get_key_value(node) {
            self.nodes.adopt(name, runtime);
        }
    }

    /// Returns the nodes whose kernels are kept, with these kernels.
    pub fn runtimes(&self) -> Vec<(&'a Name, Arc<NodeRuntime>)> {
        self.nodes.all()
    }

    /// Forgets the kernels of nodes whose rules are not given. A node that a later packet reaches
    /// is compiled again.
    pub fn forget_kernels(&self) {
        self.nodes.forget_except(|name| self.has_given_rules(name));
    }

    /// Returns how many kernels are kept, and how many were compiled.
    pub fn kernels(&self) -> KernelCounts {
        self.nodes.counts()
    }

    /// Returns whether some node is known to have a bridge whose frames bypass all rules.
    ///
    /// # Errors
    /// Returns an error if the rules of a captured node cannot be read.
    pub fn has_blind_bridges(&self) -> Result<bool, WalkError> {
        let is_blind = |node: &Node| -> Result<bool, WalkError> {
            if node.bridge_rules == Some(false) {
                return Ok(true);
            }
            if !self.cluster.captures.contains_key(&node.name) {
                return Ok(false);
            }
            let runtime = self.runtime(&node.name)?;
            Ok(Family::BOTH.iter().any(|family| !runtime.bridge_shows_rules(*family)))
        };
        if let Some(known) = self.blind_bridges.get() {
            return Ok(*known);
        }
        let mut found = false;
        for node in self.cluster.nodes.values() {
            found = found || is_blind(node)?;
        }
        Ok(*self.blind_bridges.get_or_init(|| found))
    }
}
