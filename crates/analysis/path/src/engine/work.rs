//! Limits on the work of walking: of one call, and of all calls of an engine together.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use uturn_model::Cluster;
use uturn_netfilter::Budget;

/// The number of rules that every call may have evaluated, however many the others have.
const FREE: u64 = 200_000;

/// The least number of free rules for each call, even if there are very many calls.
const LEAST_FREE: u64 = 20_000;

/// The number of free rules of all calls of a scan together, unless `LEAST_FREE` for each is more.
const FREE_OF_ALL: u64 = 256_000_000;

/// The largest number of rules that a call may have evaluated.
const MAX_RULES: u64 = 16_000_000;

/// The number of rules that all calls of an engine may have evaluated together, beyond the free
/// ones.
const SHARED: u64 = 64_000_000;

/// The largest number of times that a call may pass nodes, in all of its ways together.
const MAX_VISITS: u64 = 200_000;

/// The number of times that every call may pass nodes, and the number added for each node and
/// endpoint.
const FREE_VISITS: u64 = 2_000;
const FREE_VISITS_EACH: u64 = 8;

/// The number of times that all calls of an engine may pass nodes together, beyond the free ones.
const SHARED_VISITS: u64 = 50_000;

/// The largest number of ways into which rules that are not modelled may split a call, counted on
/// each node anew. How a call with more ways ends is hardly known, and assumptions about such rules
/// settle it in fewer ways.
const MAX_OPEN_WAYS: u64 = 1_000;

/// The number of rules that are not modelled for which a way counts once more: each step of the way
/// carries them on.
const QUESTIONS_PER_WAY: usize = 16;

/// The largest number of steps that the ways of a call may have together.
const MAX_STEPS: u64 = 1_000_000;

/// The number of rules whose evaluation takes about as long as passing a node.
const RULES_PER_VISIT: u64 = 250;

/// An allowance of work: each call has a free part, and all calls share the rest.
struct Allowance {
    free: u64,
    shared: AtomicU64,
}

impl Allowance {
    fn new(free: u64, shared: u64) -> Self {
        Self { free, shared: AtomicU64::new(shared) }
    }

    /// Returns what is left of the shared part.
    fn left(&self) -> u64 {
        self.shared.load(Ordering::Relaxed)
    }

    /// Takes from the shared part the work of a call that is beyond its free part. The call had
    /// done `before` already, and `after` in total.
    fn take(&self, before: u64, after: u64) {
        let more = after.saturating_sub(before.max(self.free));
        // The closure always returns a value.
        let _ = self.shared.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            Some(left.saturating_sub(more))
        });
    }
}

/// The work that the calls of an engine may do: rules that are evaluated, and nodes that are
/// passed.
pub(crate) struct SharedWork {
    rules: Allowance,
    visits: Allowance,
    /// The work of all calls so far, in evaluated rules.
    done: AtomicU64,
}

impl SharedWork {
    /// Returns the allowance for the calls to all targets of a cluster.
    pub(crate) fn of_cluster(cluster: &Cluster) -> Self {
        Self::of_targets(cluster, 1, 1)
    }

    /// Returns the allowance for the calls to `some` of `all` targets. Calls to the other targets
    /// do not use it up, so that it makes no difference which targets are walked first.
    pub(crate) fn of_targets(cluster: &Cluster, some: usize, all: usize) -> Self {
        let slices = cluster.endpoints.values().flatten();
        let endpoints: usize = slices.map(|slice| slice.endpoints.len()).sum();
        Self::of_places(cluster.nodes.len() + endpoints, some, all)
    }

    fn of_places(places: usize, some: usize, all: usize) -> Self {
        let (some, all) = (some.max(1) as u64, all.max(1) as u64);
        let free_rules = (FREE_OF_ALL / all).clamp(LEAST_FREE, FREE);
        let free_visits = FREE_VISITS + FREE_VISITS_EACH * places as u64;
        Self {
            rules: Allowance::new(free_rules, SHARED / all * some),
            visits: Allowance::new(free_visits, (SHARED_VISITS * some).div_ceil(all)),
            done: AtomicU64::new(0),
        }
    }

    /// Returns the work of all calls so far, in evaluated rules.
    pub(crate) fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Counts work of a call, in evaluated rules.
    pub(crate) fn count_done(&self, rules: u64) {
        self.done.fetch_add(rules, Ordering::Relaxed);
    }
}

/// The work that one call has taken so far.
#[derive(Debug, Default)]
pub(crate) struct CallWork {
    rules: Cell<u64>,
    visits: Cell<u64>,
    open_ways: Cell<u64>,
    steps: Cell<u64>,
    /// Whether a way was not followed to its end because the call has too many.
    is_cut: Cell<bool>,
}

impl CallWork {
    /// Starts counting for another call.
    pub(crate) fn begin(&self) {
        self.rules.set(0);
        self.visits.set(0);
        self.open_ways.set(0);
        self.steps.set(0);
        self.is_cut.set(false);
    }

    /// Returns the budget for evaluating the rules of one node.
    pub(crate) fn budget(&self, shared: &SharedWork) -> Budget {
        let used = self.rules.get();
        let free = shared.rules.free.saturating_sub(used);
        let more = MAX_RULES.saturating_sub(used.max(shared.rules.free));
        Budget::of_rules(free + more.min(shared.rules.left()))
    }

    /// Counts the rules that were evaluated on a node.
    pub(crate) fn count_rules(&self, rules: u64, shared: &SharedWork) {
        let before = self.rules.get();
        self.rules.set(before + rules);
        shared.rules.take(before, before + rules);
        shared.count_done(rules);
    }

    /// Counts that a packet passes a node. Returns whether it may: the ways beyond the limits of a
    /// call are not followed.
    pub(crate) fn may_visit(&self, shared: &SharedWork) -> bool {
        let before = self.visits.get();
        self.visits.set(before + 1);
        let is_free = before < shared.visits.free;
        let may = before < MAX_VISITS
            && (is_free || shared.visits.left() > 0)
            && self.open_ways.get() <= MAX_OPEN_WAYS
            && self.steps.get() <= MAX_STEPS;
        shared.visits.take(before, before + 1);
        shared.count_done(RULES_PER_VISIT);
        self.is_cut.set(self.is_cut.get() || !may);
        may
    }

    /// Counts a way that rests on this many rules which are not modelled.
    pub(crate) fn count_open_way(&self, questions: usize) {
        let ways = 1 + questions / QUESTIONS_PER_WAY;
        self.open_ways.set(self.open_ways.get() + ways as u64);
    }

    /// Returns the number of the call's ways that rest on rules which are not modelled.
    pub(crate) fn open_ways(&self) -> u64 {
        self.open_ways.get()
    }

    /// Counts the steps of a recorded way.
    pub(crate) fn count_steps(&self, steps: usize) {
        self.steps.set(self.steps.get() + steps as u64);
    }

    /// Returns whether a part of the call was not followed because of the limits.
    pub(crate) fn is_used_up(&self, shared: &SharedWork) -> bool {
        self.is_cut.get() || self.budget(shared).left() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alone() -> SharedWork {
        SharedWork::of_places(0, 1, 1)
    }

    #[test]
    fn every_call_has_some_work_free() {
        let (shared, call) = (alone(), CallWork::default());
        assert_eq!(call.budget(&shared).left(), MAX_RULES);
        call.count_rules(FREE, &shared);
        assert_eq!(shared.rules.left(), SHARED);
        call.count_rules(1_000, &shared);
        assert_eq!(shared.rules.left(), SHARED - 1_000);
        call.count_rules(MAX_RULES, &shared);
        assert!(call.is_used_up(&shared));
        shared.rules.take(FREE, FREE + SHARED);
        call.begin();
        assert_eq!(call.budget(&shared).left(), FREE);
        call.count_rules(FREE - 1, &shared);
        assert!(!call.is_used_up(&shared));
        assert_eq!(call.budget(&shared).left(), 1);
    }

    #[test]
    fn every_call_may_pass_some_nodes() {
        let (shared, call) = (alone(), CallWork::default());
        let passed = (0..=MAX_VISITS).take_while(|_| call.may_visit(&shared)).count() as u64;
        assert_eq!(passed, FREE_VISITS + SHARED_VISITS);
        assert!(call.is_used_up(&shared));
        call.begin();
        let passed = (0..=MAX_VISITS).take_while(|_| call.may_visit(&shared)).count() as u64;
        assert_eq!(passed, FREE_VISITS);
        assert!(call.is_used_up(&shared));
    }

    /// In large clusters, each node and endpoint may be passed by every call.
    #[test]
    fn more_nodes_may_be_passed_more_often() {
        let (shared, call) = (SharedWork::of_places(5_000, 1, 1_000_000), CallWork::default());
        assert!((0..40_000).all(|_| call.may_visit(&shared)));
    }
}
