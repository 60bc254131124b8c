//! The state of one walk through a prepared cluster.

use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use uturn_model::lb::HealthQuestion;
use uturn_model::route::Step;
use uturn_model::{
    Assumption, AssumptionSubject, Cluster, Evidence, FailurePoint, Hop, Mechanism, Name, Node,
    Protocol, Share,
};
use uturn_netfilter::hash::FastMap;
use uturn_netfilter::{Assumptions, Connection, End, Entry, Kernel, Packet, Question};

use super::Engine;
use super::open_questions::OpenQuestions;
use super::work::CallWork;
use crate::error::WalkError;
use crate::options::Options;
use crate::population::{KnownDestination, Population};

/// The number of list entries that take as long to look through as a rule to evaluate.
pub(crate) const ENTRIES_PER_RULE: usize = 16;

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
    open: RefCell<OpenQuestions>,
    pub(crate) probes: ProbeCache,
    /// The work of the call that is walked.
    pub(crate) work: CallWork,
    /// Assumptions made by following rules both ways, by node and rule, which many ways share.
    both_ways: RefCell<FastMap<(Name, Evidence), Assumption>>,
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

    /// Returns the ends of a packet under a node's rules, as far as the work of the call allows.
    pub(crate) fn walk_rules(
        &self,
        kernel: &Kernel,
        packet: &Packet,
        entry: &Entry,
        known: &[Connection],
    ) -> Vec<End> {
        let shared = &self.engine.work;
        let budget = self.work.budget(shared);
        let before = budget.left();
        let ends = kernel.walk_within(packet, entry, known, &self.assumed, &budget);
        // Each open question and unknown rule is looked through after the walk.
        let unknown: usize =
            ends.iter().map(|end| end.open_questions.len() + end.unknown.len()).sum();
        let work = before - budget.left() + (unknown / ENTRIES_PER_RULE) as u64;
        self.work.count_rules(work, shared);
        ends
    }

    /// Keeps the questions that these ends of a packet leave open.
    pub(crate) fn leave_open(&self, ends: &[End]) {
        for (question, _) in ends.iter().flat_map(|end| &end.open_questions) {
            self.open.borrow_mut().add(question);
        }
        for end in ends.iter().filter(|end| !end.open_questions.is_empty()) {
            self.work.count_open_way(end.open_questions.len());
        }
    }

    /// Ends the walk, and returns the questions that it left open.
    pub(crate) fn into_open(self) -> Vec<Question> {
        self.open.into_inner().into_all()
    }

    /// Fails if a packet reached an object that the population lacks.
    pub(crate) fn check_destination(&self, to: SocketAddr) -> Result<(), WalkError> {
        if self.population.is_whole() {
            return Ok(());
        }
        let (ip, engine) = (to.ip(), self.engine);
        let known = KnownDestination {
            is_host: engine.node_at(ip).is_some() || engine.pod_at(ip).is_some(),
            is_balancer: engine.balancer_at(ip).is_some(),
        };
        whole_unless(!self.population.lacks_destination(to, known))
    }

    /// Fails if rules sent a packet to an endpoint that the population lacks: it is not known
    /// whether the endpoint is the client itself.
    pub(crate) fn check_endpoint(&self, ip: IpAddr) -> Result<(), WalkError> {
        whole_unless(self.population.is_whole() || !self.population.lacks_endpoint(ip))
    }

    /// Fails if a packet reached a process that the population lacks.
    pub(crate) fn check_process(&self, node: &Node, port: u16) -> Result<(), WalkError> {
        let is_known = self.population.is_whole() || self.engine.host_pod_on(node, port).is_some();
        whole_unless(is_known || !self.population.lacks_process(&node.name, port))
    }

    /// Returns the assumption for a rule that is not modelled: both ways were followed, half and
    /// half.
    pub(crate) fn both_ways(&self, node: &Node, by: &Evidence) -> Assumption {
        let mut known = self.both_ways.borrow_mut();
        let new = || Assumption {
            subject: AssumptionSubject::RuleWalkedBothWays,
            assumed: "both ways, half and half".into(),
            because: format!("{by} on node {}", node.name).into(),
            settle: "look at the rule".into(),
        };
        known.entry((node.name.clone(), by.clone())).or_insert_with(new).clone()
    }

    /// Returns whether each target that was probed answers always or never.
    pub fn are_probes_certain(&self) -> bool {
        self.probes.lock().values().all(|found| !found.answered.is_partial())
    }
}

fn whole_unless(is_settled: bool) -> Result<(), WalkError> {
    if is_settled { Ok(()) } else { Err(WalkError::NeedsWhole) }
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
    /// The step at which a probe ends, if it was recorded.
    pub(crate) stop: Option<Step>,
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
