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

/// The state of one walk, or of several of one kind: the cluster, its population, the assumptions
/// and the findings so far.
pub struct Walk<'e, 'a> {
    pub(crate) engine: &'e Engine<'a>,
    pub(crate) cluster: &'a Cluster,
    pub(crate) options: Options,
    pub(crate) population: &'e dyn Population,
    /// The failure point by which one of several ways with the same end is chosen for display.
    pub(crate) shown: Option<&'e FailurePoint>,
    /// The assumptions about rules that are not modelled.
    pub(crate) assumed: Assumptions,
    /// The rules that are not modelled and that packets reached.
    pub(crate) open: RefCell<OpenQuestions>,
    pub(crate) probes: ProbeCache,
    /// The work of the call that is walked.
    pub(crate) work: CallWork,
    /// Assumptions made by following rules both ways, by node and rule, which many ways share.
    pub(crate) both_ways: RefCell<FastMap<(Name, Evidence), Assumption>>,
}

impl<'e, 'a> Walk<'e, 'a> {
    /// Begins a walk that shares a cache of probe results with all other walks of its kind.
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

    /// Sets the failure point by which one of several ways with the same end is chosen for display.
    #[must_use]
    pub fn showing(self, point: Option<&'e FailurePoint>) -> Self {
        Self { shown: point, ..self }
    }

    /// Returns whether the second of two ways that end alike is shown instead of the first.
    pub(crate) fn prefers(&self, second: &[Hop], first: &[Hop]) -> bool {
        self.is_shown(second) && !self.is_shown(first)
    }

    /// Returns whether these hops contain the failure point that is to be shown.
    pub(crate) fn is_shown(&self, hops: &[Hop]) -> bool {
        self.shown.is_some_and(|point| point.hop_in(hops).is_some())
    }

    /// Sets assumptions, and empties the probe cache: results of probes depend on assumptions.
    pub(crate) fn assuming(self, assumed: Assumptions) -> Self {
        Self { assumed, probes: ProbeCache::default(), ..self }
    }

    /// Returns whether each target that was probed answers always or never.
    pub fn are_probes_certain(&self) -> bool {
        self.probes.lock().values().all(|found| !found.answered.is_partial())
    }
}

/// A health check: its source, target, protocol, question and timeout.
pub(crate) type Probed = (IpAddr, SocketAddr, Protocol, HealthQuestion, Duration);

/// The result of a health check of a target.
#[derive(Clone, Debug)]
pub(crate) struct ProbeResult {
    /// The share of probes that the target answers.
    pub(crate) answered: Share,
    /// The reasons why the target does not answer, if it counts as dead.
    pub(crate) mechanisms: Vec<Mechanism>,
    /// Where the target's probes fail. `None` if that was not recorded.
    pub(crate) failures: Option<Vec<FailurePoint>>,
}

/// The results of probes so far. Clones share them.
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
