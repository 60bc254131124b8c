//! How much work walking may take: one call, and all calls of an engine together.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

use uturn_model::Cluster;
use uturn_netfilter::Budget;

/// Every call may have this many rules evaluated, however many others have.
const FREE: u64 = 200_000;

/// Of very many calls, each has at least this many free.
const LEAST_FREE: u64 = 20_000;

/// The rules that are free for all calls of a scan together, unless that is less than the least for each.
const FREE_OF_ALL: u64 = 256_000_000;

/// No call may have more rules evaluated than this.
const MAX_RULES: u64 = 16_000_000;

/// The rules that all calls of an engine may have evaluated together, beyond those that are free.
const SHARED: u64 = 64_000_000;

/// No call may pass nodes more often, in all of its ways together.
const MAX_VISITS: u64 = 200_000;

/// Every call may pass nodes this often, and so often more for each node and endpoint that there is.
const FREE_VISITS: u64 = 2_000;
const FREE_VISITS_EACH: u64 = 8;

/// All calls of an engine may pass nodes this often together, beyond what is free.
const SHARED_VISITS: u64 = 50_000;

/// Rules that are not modelled may split a call into this many ways, counted on each node anew. How it ends is
/// hardly known then, and what is assumed of such rules settles it in fewer ways.
const MAX_OPEN_WAYS: u64 = 1_000;

/// A way that rests on many rules which are not modelled counts once more for each so many of them: each of its
/// steps carries them on.
const QUESTIONS_PER_WAY: usize = 16;

/// The ways of a call may have this many steps together.
const MAX_STEPS: u64 = 1_000_000;

/// Passing a node takes about as long as evaluating so many rules.
const RULES_PER_VISIT: u64 = 250;

/// What calls may do: each has a part free, and they share the rest.
struct Allowance {
    free: u64,
    shared: AtomicU64,
}

impl Allowance {
    fn new(free: u64, shared: u64) -> Self {
        Self { free, shared: AtomicU64::new(shared) }
    }

    /// What is left of the part that calls share.
    fn left(&self) -> u64 {
        self.shared.load(Ordering::Relaxed)
    }

    /// Takes from the shared part what a call did beyond its free one, that had done so much before.
    fn take(&self, before: u64, after: u64) {
        let more = after.saturating_sub(before.max(self.free));
        // The closure always returns a value.
        let _ = self.shared.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            Some(left.saturating_sub(more))
        });
    }
}

/// What the calls of an engine may do: rules that are evaluated, and nodes that are passed.
pub(crate) struct SharedWork {
    rules: Allowance,
    visits: Allowance,
    /// What all calls have done so far, as so many rules.
    done: AtomicU64,
}

impl SharedWork {
    /// The work that the calls to all targets of a cluster may take.
    pub(crate) fn of_cluster(cluster: &Cluster) -> Self {
        Self::of_targets(cluster, 1, 1)
    }

    /// The work that the calls to some of all targets may take. What others use up is not taken from it, so
    /// that it makes no difference which targets are walked first.
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

    /// What all calls have done so far, as so many rules that were evaluated.
    pub(crate) fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Counts what was done for a call, as so many rules.
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
    /// Whether a way was not followed to its end, since the call has too many.
    is_cut: Cell<bool>,
}

impl CallWork {
    /// Begins with another call.
    pub(crate) fn begin(&self) {
        self.rules.set(0);
        self.visits.set(0);
        self.open_ways.set(0);
        self.steps.set(0);
        self.is_cut.set(false);
    }

    /// What a node may take of it next.
    pub(crate) fn budget(&self, shared: &SharedWork) -> Budget {
        let used = self.rules.get();
        let free = shared.rules.free.saturating_sub(used);
        let more = MAX_RULES.saturating_sub(used.max(shared.rules.free));
        Budget::of_rules(free + more.min(shared.rules.left()))
    }

    /// Counts what a node has taken of a budget that was so large.
    pub(crate) fn count_rules(&self, rules: u64, shared: &SharedWork) {
        let before = self.rules.get();
        self.rules.set(before + rules);
        shared.rules.take(before, before + rules);
        shared.count_done(rules);
    }

    /// Counts that a packet passes a node. Returns whether it may: where a call has too many ways, the rest are
    /// not followed.
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

    /// Counts a way that rests on so many rules which are not modelled.
    pub(crate) fn count_open_way(&self, questions: usize) {
        let ways = 1 + questions / QUESTIONS_PER_WAY;
        self.open_ways.set(self.open_ways.get() + ways as u64);
    }

    /// The ways of the call that rest on rules which are not modelled.
    pub(crate) fn open_ways(&self) -> u64 {
        self.open_ways.get()
    }

    /// Counts the steps of a way that is recorded.
    pub(crate) fn count_steps(&self, steps: usize) {
        self.steps.set(self.steps.get() + steps as u64);
    }

    /// Whether a part of the call was not followed for the work that it would take.
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

    /// Of large clusters, each node and endpoint may be passed by every call.
    #[test]
    fn more_nodes_may_be_passed_more_often() {
        let (shared, call) = (SharedWork::of_places(5_000, 1, 1_000_000), CallWork::default());
        assert!((0..40_000).all(|_| call.may_visit(&shared)));
    }
}
