//! Scans of a cluster: every class of clients against every target.

use std::cell::{OnceCell, RefCell};
use std::sync::Arc;

use uturn_model::{Pod, Verdict};
use uturn_path::{Detail, Engine, WalkError};

use crate::alike_nodes::{self, AlikeNodes};
use crate::clients::{ClientClass, Pods, ScanResult};
use crate::exhaustive;
use crate::explain::{self, TargetExplanation};
use crate::hop_by_hop::{self, HopJob, HopWalker, ToExplain};
use crate::inventory::pod_addresses::lacks_address;
use crate::known::KnownWalks;
use crate::prepared::PreparedScan;
use crate::schedule;
use crate::targets::{self, ScanTarget};
use crate::unmodelled_rules;

/// A scanner of a cluster. It caches what several targets share.
pub struct Scanner<'e, 'a> {
    engine: &'e Engine<'a>,
    prepared: OnceCell<RefCell<PreparedScan<'a>>>,
    known: Option<Arc<KnownWalks>>,
}

/// The product of nodes and Services with their endpoints up to which every node's rules are
/// written in full to explain a flow, so that evidence can name lines.
const SMALL: usize = 20_000;

impl<'e, 'a> Scanner<'e, 'a> {
    /// Makes a scanner of an engine's cluster. Clients and rules are examined when they are first
    /// needed.
    pub fn new(engine: &'e Engine<'a>) -> Self {
        Self { engine, prepared: OnceCell::new(), known: None }
    }

    /// Uses the results of walks of former scans. The results are those of a scan without them.
    #[must_use]
    pub fn knowing(self, known: Option<&Arc<KnownWalks>>) -> Self {
        Self { known: known.cloned(), ..self }
    }

    /// Returns the engine whose cluster is scanned.
    pub fn engine(&self) -> &'e Engine<'a> {
        self.engine
    }

    /// Returns everything that clients of the cluster can call.
    pub fn targets(&self) -> Vec<ScanTarget> {
        targets::of(self.engine.cluster())
    }

    /// Walks every class of clients against every target. Clients without an address of the
    /// target's family cannot call it: they are in no result.
    ///
    /// # Errors
    /// Returns an error if a target does not exist, or a flow towards it cannot be walked.
    pub fn scan(&self, targets: &[ScanTarget]) -> Result<Vec<ScanResult>, WalkError> {
        let mut prepared = self.prepared()?.borrow_mut();
        let targets: Vec<Arc<ScanTarget>> = targets.iter().cloned().map(Arc::new).collect();
        let answers =
            schedule::walk_all(self.engine, &mut prepared, &targets, self.known.as_ref())?;
        let homes = &prepared.classifier.inventory.homes;
        let mut results = Vec::with_capacity(answers.iter().map(Vec::len).sum());
        for (target, mut answered) in targets.into_iter().zip(answers) {
            answered.retain(|(_, verdicts)| !verdicts.is_empty());
            answered.sort_by_key(|(client_set, _)| {
                let home = homes[client_set.at as usize];
                (home, client_set.pod.spec.host_network, client_set.itself)
            });
            results.extend(answered.into_iter().map(|(client_set, verdicts)| ScanResult {
                clients: ClientClass {
                    first: client_set.pod.name.clone(),
                    at: client_set.at as usize,
                    pods: Pods::new(client_set.places, &prepared.client_names),
                    nodes: client_set.nodes,
                    host_network: client_set.pod.spec.host_network,
                    itself: client_set.itself,
                },
                target: Arc::clone(&target),
                verdicts,
            }));
        }
        unmodelled_rules::settle(self.engine, &mut results, self.is_large())?;
        Ok(results)
    }

    /// Walks every client against every target, without classes: for small clusters, and to
    /// compare. Clients share a result if their calls end alike.
    ///
    /// # Errors
    /// Returns an error if a target does not exist, or a flow towards it cannot be walked.
    pub fn scan_exhaustively(&self, targets: &[ScanTarget]) -> Result<Vec<ScanResult>, WalkError> {
        let prepared = self.prepared()?.borrow();
        let mut results = exhaustive::walk_all(self.engine, &prepared, targets)?;
        unmodelled_rules::settle(self.engine, &mut results, self.is_large())?;
        Ok(results)
    }

    /// Explains why clients share a class: what the clients of each class of a scan have in common,
    /// and what distinguishes them from the next class of the same target.
    ///
    /// # Errors
    /// Returns an error if a target does not exist.
    pub fn explain_classes(
        &self,
        results: &[ScanResult],
    ) -> Result<Vec<TargetExplanation>, WalkError> {
        let prepared = self.prepared()?.borrow();
        let of_one_target = |a: &ScanResult, b: &ScanResult| Arc::ptr_eq(&a.target, &b.target);
        let targets = results.chunk_by(of_one_target);
        targets.map(|classes| explain::target(self.engine, &prepared, classes)).collect()
    }

    /// Returns the nodes that calls of each target cannot tell apart, in classes: calls end alike
    /// whichever node of a class is lost, but that the nodes' names are exchanged.
    ///
    /// # Errors
    /// Returns an error if a target does not exist.
    pub fn alike_nodes(&self, targets: &[ScanTarget]) -> Result<Vec<Arc<AlikeNodes>>, WalkError> {
        alike_nodes::of(self.engine, &mut self.prepared()?.borrow_mut(), targets)
    }

    /// Returns the largest possible number of flows from all clients to this many targets.
    pub fn flows(&self, targets: usize) -> usize {
        let pods = self.running().filter(|pod| !lacks_address(pod));
        pods.count() * targets
    }

    /// Returns the pods on nodes of the cluster that are not clients because they have no address
    /// yet.
    pub fn without_address(&self) -> impl Iterator<Item = &'a Pod> {
        self.running().filter(|pod| lacks_address(pod))
    }

    /// Returns the pods that are on a node of the cluster that is not down, and have not ended.
    fn running(&self) -> impl Iterator<Item = &'a Pod> {
        let cluster = self.engine.cluster();
        let is_placed = |pod: &&Pod| {
            let node = pod.node.as_ref().and_then(|name| cluster.nodes.get(name));
            node.is_some_and(|node| node.loss.is_none())
        };
        cluster.pods.values().filter(|pod| pod.is_alive()).filter(is_placed)
    }

    /// Returns the verdicts of a class of clients, hop by hop.
    ///
    /// # Errors
    /// Returns an error if the flow cannot be walked.
    pub fn explain<'r>(&self, result: impl Into<ToExplain<'r>>) -> Result<Vec<Verdict>, WalkError> {
        Ok(vec![self.explained(result.into(), Detail::Full)?])
    }

    /// Returns the same verdicts, with steps of only the likeliest ways that fail: of many ways,
    /// the others are not recorded step by step.
    ///
    /// # Errors
    /// Returns an error if the flow cannot be walked.
    pub fn explain_worst<'r>(
        &self,
        result: impl Into<ToExplain<'r>>,
    ) -> Result<Vec<Verdict>, WalkError> {
        Ok(vec![self.explained(result.into(), Detail::Worst)?])
    }

    /// Explains many results of a large cluster in this way, on all processors. Returns the value
    /// of `of` for the place and the verdicts of each result, in the order of the results.
    ///
    /// # Errors
    /// Returns an error in place of each result whose flow cannot be walked.
    pub fn explain_each_worst<T: Send>(
        &self,
        results: &[ToExplain<'_>],
        of: impl Fn(usize, &[Verdict]) -> T + Sync,
    ) -> Vec<Result<T, WalkError>> {
        let prepared = match self.prepared() {
            Ok(prepared) => prepared,
            Err(why) => return results.iter().map(|_| Err(why.clone())).collect(),
        };
        hop_by_hop::walk_all(self.engine, &mut prepared.borrow_mut(), results, Detail::Worst, of)
    }

    fn explained(&self, asked: ToExplain<'_>, detail: Detail) -> Result<Verdict, WalkError> {
        let ToExplain { result, shown } = asked;
        let whole = || self.engine.verdict_showing(&result.flow(), shown);
        if !self.is_large() {
            return whole();
        }
        let mut prepared = self.prepared()?.borrow_mut();
        let scope = prepared.scope(self.engine, result.target.called())?;
        let Some(job) = HopJob::new(&mut prepared, scope, asked) else { return whole() };
        let inventory = &prepared.classifier.inventory;
        match HopWalker::new(self.engine, inventory, detail, 1).walk(&job) {
            Err(WalkError::NeedsWhole) => whole(),
            verdict => verdict,
        }
    }

    /// Returns whether the rules of the nodes are too many to be written in full for a single flow.
    pub fn is_large(&self) -> bool {
        let cluster = self.engine.cluster();
        let services = cluster.nodes.len() * cluster.services.len();
        // Endpoints are counted only if Services do not decide, because each finding asks this.
        services > SMALL || services.saturating_add(cluster.rules_to_endpoints()) > SMALL
    }

    pub(crate) fn prepared(&self) -> Result<&RefCell<PreparedScan<'a>>, WalkError> {
        if let Some(known) = self.prepared.get() {
            return Ok(known);
        }
        let new = RefCell::new(PreparedScan::new(self.engine)?);
        Ok(self.prepared.get_or_init(|| new))
    }
}
