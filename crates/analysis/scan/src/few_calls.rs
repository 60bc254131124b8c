//! Single calls of a cluster: each is walked in the reduced cluster of its client and target, where
//! that is known to give the verdict of the whole cluster.

use std::cell::OnceCell;
use std::net::SocketAddr;
use std::sync::Arc;

use uturn_model::{Client, Flow, Protocol, Verdict};
use uturn_path::{Detail, Engine, Health, KernelCounts, WalkError, what_if};

use crate::hop_by_hop::{HopJob, HopWalker};
use crate::known::KnownWalks;
use crate::scan::Scanner;

/// Walks single calls of a cluster. Kernels and classes are prepared for the first call and kept.
pub struct FewCalls<'e, 'a> {
    scanner: Scanner<'e, 'a>,
    /// Whether calls of small clusters are walked in reduced clusters, too.
    always_reduces: bool,
    /// An engine whose nodes have the rules of only those Services that packets meet.
    met: OnceCell<Engine<'a>>,
}

impl<'e, 'a> FewCalls<'e, 'a> {
    /// Prepares nothing yet.
    pub fn new(engine: &'e Engine<'a>) -> Self {
        Self { scanner: Scanner::new(engine), always_reduces: false, met: OnceCell::new() }
    }

    /// Uses the results of walks of former scans.
    #[must_use]
    pub fn knowing(self, known: Option<&Arc<KnownWalks>>) -> Self {
        Self { scanner: self.scanner.knowing(known), ..self }
    }

    /// Walks calls in reduced clusters even if the cluster is small, to compare.
    #[must_use]
    pub fn reducing_always(self) -> Self {
        Self { always_reduces: true, ..self }
    }

    /// Returns the scanner of the same cluster, with which these calls share what is prepared.
    pub fn scanner(&self) -> &Scanner<'e, 'a> {
        &self.scanner
    }

    /// Returns the engine over the whole cluster.
    pub fn engine(&self) -> &'e Engine<'a> {
        self.scanner.engine()
    }

    /// Returns the engine that walks calls in the whole cluster.
    pub fn met(&self) -> &Engine<'a> {
        self.met.get_or_init(|| self.engine().with_met_services())
    }

    /// Returns the work of walks in the whole cluster so far, as [`Engine::work_done`] counts it.
    pub fn work_done(&self) -> u64 {
        self.met.get().map_or(0, Engine::work_done)
    }

    /// Returns the kernels of walks in the whole cluster.
    pub fn kernels(&self) -> KernelCounts {
        self.met.get().map(Engine::kernels).unwrap_or_default()
    }

    /// Returns one verdict for each case of what is not known and matters, as
    /// [`Engine::cases`] does.
    ///
    /// # Errors
    /// Returns an error if the flow cannot be walked in one of the cases.
    pub fn cases(&self, flow: &Flow) -> Result<Vec<Verdict>, WalkError> {
        match self.reduced(flow)? {
            Some(verdict) => Ok(vec![verdict]),
            None => self.met().cases(flow),
        }
    }

    /// Returns the verdict under the assumptions about what is not known, as [`Engine::verdict`]
    /// does.
    ///
    /// # Errors
    /// Returns an error if the flow cannot be walked.
    pub fn verdict(&self, flow: &Flow) -> Result<Verdict, WalkError> {
        match self.reduced(flow)? {
            Some(verdict) => Ok(verdict),
            None => self.met().verdict(flow),
        }
    }

    /// Returns the results of a listener's health checks, as [`Engine::health`] does.
    ///
    /// # Errors
    /// Returns an error if a probe reaches a node whose rules cannot be walked.
    pub fn health(
        &self,
        listener: SocketAddr,
        protocol: Protocol,
    ) -> Result<Option<Vec<Health>>, WalkError> {
        self.met().health(listener, protocol)
    }

    /// Returns the verdict of a call if a reduced cluster is enough.
    fn reduced(&self, flow: &Flow) -> Result<Option<Verdict>, WalkError> {
        let is_large = self.always_reduces || self.scanner.is_large();
        let is_enough = is_large && what_if::has_one_case(self.engine().cluster(), flow);
        if is_enough { self.in_reduced(flow) } else { Ok(None) }
    }

    /// Returns the verdict of a pod's call in the reduced cluster. Returns `None` if the whole
    /// cluster has to be walked.
    fn in_reduced(&self, flow: &Flow) -> Result<Option<Verdict>, WalkError> {
        let Client::Pod(name) = &flow.from else { return Ok(None) };
        let engine = self.engine();
        let mut prepared = self.scanner.prepared()?.borrow_mut();
        let inventory = Arc::clone(&prepared.classifier.inventory);
        let Some(client) = inventory.clients.iter().position(|pod| pod.name == *name) else {
            return Ok(None);
        };
        let scope = prepared.scope(engine, (&flow.to, flow.protocol))?;
        let Some(job) = HopJob::of_flow(&mut prepared, scope, flow.clone(), client as u32) else {
            return Ok(None);
        };
        match HopWalker::new(engine, &inventory, Detail::Full, 1).walk(&job) {
            Err(WalkError::NeedsWhole) => Ok(None),
            verdict => verdict.map(Some),
        }
    }
}
