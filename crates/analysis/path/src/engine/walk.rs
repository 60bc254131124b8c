//! The state of one walk through a prepared cluster.

use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use uturn_model::lb::HealthQuestion;
use uturn_model::{
    Assumption, Cluster, Evidence, FailurePoint, Hop, Mechanism, Name, Protocol, Share,
};
use uturn_netfilter::Assumptions;
use uturn_netfilter::hash::FastMap;

use super::Engine;
use super::open_questions::OpenQuestions;
use super::work::CallWork;
use crate::options::Options;
use crate::population::Population;

/// The state of one walk, or of several of one kind: the cluster, its population, what is assumed
/// and what is found on the way.
pub struct Walk<'e, 'a> {
    pub(crate) engine: &'e Engine<'a>,
    pub(crate) cluster: &'a Cluster,
    pub(crate) options: Options,
    pub(crate) population: &'e dyn Population,
    /// Of ways that end alike, one that fails at this point is shown.
    pub(crate) shown: Option<&'e FailurePoint>,
    /// The assumptions about rules that are not modelled.
    pub(crate) assumed: Assumptions,
    /// The rules among them that packets reached.
    pub(crate) open: RefCell<OpenQuestions>,
    pub(crate) probes: ProbeCache,
    /// The work of the call that is walked.
    pub(crate) work: CallWork,
    /// What following rules both ways supposes, by node and rule: many ways suppose the same.
    pub(crate) both_ways: RefCell<FastMap<(Name, Evidence), Assumption>>,
}

impl<'e, 'a> Walk<'e, 'a> {
    /// A walk that shares a cache of probe results with all other walks of its kind.
    pub(super) fn new(
        engine: &'e Engine<'a>,
        options: Options,
        population: &'e dyn Population,
    ) -> Self {
        Self {
            engine,
            cluster: engine.cluster,
            options,
            population,
            shown: None,
            assumed: Assumptions::of_ordinary_call(),
            open: RefCell::default(),
            probes: engine.probes.clone(),
            work: CallWork::default(),
            both_ways: RefCell::default(),
        }
    }

    /// The same walk, which shows of ways that end alike one that fails at this point.
    #[must_use]
    pub fn showing(self, point: Option<&'e FailurePoint>) -> Self {
        Self { shown: point, ..self }
    }

    /// Whether the second of two ways that end alike is shown, and not the first.
    pub(crate) fn prefers(&self, second: &[Hop], first: &[Hop]) -> bool {
        self.is_shown(second) && !self.is_shown(first)
    }

    /// Whether these hops have the point of failure that is to be shown.
    pub(crate) fn is_shown(&self, hops: &[Hop]) -> bool {
        self.shown.is_some_and(|point| point.hop_in(hops).is_some())
    }

    /// The same walk where something is taken for true: what probes find depends on it.
    pub(crate) fn assuming(self, assumed: Assumptions) -> Self {
        Self { assumed, probes: ProbeCache::default(), ..self }
    }

    /// Whether each target that was probed answers always or never.
    pub fn are_probes_certain(&self) -> bool {
        self.probes.lock().values().all(|found| !found.answered.is_partial())
    }
}

/// A health check: its source, its target, its protocol, what it asks, and how long it waits.
pub(crate) type Probed = (IpAddr, SocketAddr, Protocol, HealthQuestion, Duration);

/// What a health check finds of a target.
#[derive(Clone, Debug)]
pub(crate) struct ProbeResult {
    /// How often the target answers.
    pub(crate) answered: Share,
    /// Why it does not, where it counts as dead.
    pub(crate) mechanisms: Vec<Mechanism>,
    /// Where its probes fail. `None` if that was not recorded.
    pub(crate) failures: Option<Vec<FailurePoint>>,
}

/// What probes found so far. Clones share it.
#[derive(Clone, Default)]
pub struct ProbeCache(Arc<Mutex<FastMap<Probed, ProbeResult>>>);

impl ProbeCache {
    pub(crate) fn get(&self, probed: &Probed) -> Option<ProbeResult> {
        self.lock().get(probed).cloned()
    }

    pub(crate) fn insert(&self, probed: Probed, found: ProbeResult) {
        self.lock().insert(probed, found);
    }

    fn lock(&self) -> MutexGuard<'_, FastMap<Probed, ProbeResult>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
