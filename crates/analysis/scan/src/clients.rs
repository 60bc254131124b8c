//! The clients of a scan, in classes, and the results of each class.

use std::ops::Range;
use std::sync::Arc;

use uturn_model::{Client, Flow, Name, NamespacedName, Verdict};
use uturn_path::{is_condition, without_names};

use crate::inventory::Inventory;
use crate::inventory::interval_set::IntervalSet;
use crate::targets::ScanTarget;

/// A set of pods of a cluster.
#[derive(Clone, Debug)]
pub struct Pods {
    places: IntervalSet,
    names: Arc<ClientNames>,
}

/// The names of all pods that can be clients, in the order of the inventory.
#[derive(Debug)]
pub(crate) struct ClientNames {
    pods: Vec<NamespacedName>,
    /// Ranges of adjacent pods on one node, each with the node.
    runs: Vec<(Range<u32>, u32)>,
    nodes: Vec<Name>,
}

/// Clients that are equivalent for a target.
#[derive(Clone, Debug)]
pub struct ClientClass {
    /// The pod that was walked for all of them.
    pub first: NamespacedName,
    /// The place of that pod among all clients.
    pub(crate) at: usize,
    /// All of them.
    pub pods: Pods,
    /// The number of nodes they are on.
    pub nodes: usize,
    /// Whether they share their node's network.
    pub host_network: bool,
    /// Whether they are endpoints of the target themselves.
    pub itself: bool,
}

/// The result of the calls of a class of clients to a target.
#[derive(Clone, Debug)]
pub struct ScanResult {
    /// The clients.
    pub clients: ClientClass,
    /// The target.
    pub target: Arc<ScanTarget>,
    /// The verdicts. Their routes have no hops: [`Scanner::explain`](crate::Scanner::explain)
    /// returns them.
    pub verdicts: Arc<[Verdict]>,
}

impl ScanResult {
    /// Returns the flow that was walked for the class.
    pub fn flow(&self) -> Flow {
        Flow {
            from: Client::Pod(self.clients.first.clone()),
            to: self.target.to.clone(),
            protocol: self.target.protocol,
        }
    }

    /// Returns the number of flows that the result represents. The pods of one node count as one
    /// unless they are endpoints themselves.
    pub fn flows(&self) -> usize {
        if self.clients.itself { self.clients.pods.len() } else { self.clients.nodes }
    }
}

impl Pods {
    pub(crate) fn new(places: IntervalSet, names: &Arc<ClientNames>) -> Self {
        Self { places, names: Arc::clone(names) }
    }

    /// Returns the number of pods.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// Returns the names of the pods.
    pub fn iter(&self) -> impl Iterator<Item = &NamespacedName> {
        self.places.iter().map(|at| &self.names.pods[at])
    }

    /// Returns the places of the pods among all clients.
    pub(crate) fn places(&self) -> impl Iterator<Item = usize> {
        self.places.iter()
    }

    /// Returns the nodes of the pods.
    pub fn nodes(&self) -> Vec<&Name> {
        let mut on = vec![false; self.names.nodes.len()];
        for range in self.places.ranges() {
            let runs = &self.names.runs;
            let first = runs.partition_point(|(run, _)| run.end <= range.start);
            for (_, node) in runs[first..].iter().take_while(|(run, _)| run.start < range.end) {
                on[*node as usize] = true;
            }
        }
        let names = self.names.nodes.iter().zip(on);
        names.filter_map(|(name, is_on)| is_on.then_some(name)).collect()
    }

    /// Returns the pods of both sets, which belong to the same scan.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        Self { places: self.places.and(&other.places), names: Arc::clone(&self.names) }
    }

    /// Returns whether the pod that was walked for a class is in the set.
    pub fn has(&self, class: &ClientClass) -> bool {
        self.places.contains(class.at)
    }
}

impl ClientNames {
    pub(crate) fn of(inventory: &Inventory<'_>) -> Self {
        let nodes = inventory.nodes.iter().enumerate();
        let runs = nodes.flat_map(|(place, node)| {
            node.kinds.iter().map(move |(_, range)| (range.clone(), place as u32))
        });
        let mut runs: Vec<(Range<u32>, u32)> = runs.collect();
        runs.sort_unstable_by_key(|(run, _)| run.start);
        Self {
            pods: inventory.clients.iter().map(|pod| pod.name.clone()).collect(),
            runs,
            nodes: inventory.nodes.iter().map(|counted| counted.node.name.clone()).collect(),
        }
    }
}

/// Removes from a verdict what differs between clients whose calls end alike: the hops, names, and
/// assumptions on which no finding depends.
pub(crate) fn without_details(verdict: &mut Verdict) {
    verdict.supposed.retain(is_condition);
    verdict.supposed.iter_mut().for_each(without_names);
    verdict.routes.iter_mut().for_each(|route| route.hops = Vec::new());
}
