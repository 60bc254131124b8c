//! How much work walking may take: one call, and all calls of an engine together.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};

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
const SHARED: u64 = 256_000_000;

/// A call may pass nodes this often, in all of its ways together.
const MAX_VISITS: u64 = 200_000;

/// The ways of a call may have this many steps together.
const MAX_STEPS: u64 = 1_000_000;

/// What is left of the rules that all calls may have evaluated together, and how many each has free.
pub(crate) struct SharedWork {
    left: AtomicU64,
    free: u64,
}

impl Default for SharedWork {
    fn default() -> Self {
        Self::of_targets(1, 1)
    }
}

impl SharedWork {
    /// The work that the calls to some of all targets may take. What others use up is not taken from it, so
    /// that it makes no difference which targets are walked first.
    pub(crate) fn of_targets(some: usize, all: usize) -> Self {
        let (some, all) = (some.max(1) as u64, all.max(1) as u64);
        let free = (FREE_OF_ALL / all).clamp(LEAST_FREE, FREE);
        Self { left: AtomicU64::new(SHARED / all * some), free }
    }

    fn left(&self) -> u64 {
        self.left.load(Ordering::Relaxed)
    }

    fn take(&self, rules: u64) {
        // The closure always returns a value.
        let _ = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
            Some(left.saturating_sub(rules))
        });
    }
}

/// The work that one call has taken so far.
#[derive(Debug, Default)]
pub(crate) struct CallWork {
    rules: Cell<u64>,
    visits: Cell<u64>,
    steps: Cell<u64>,
}

impl CallWork {
    /// Begins with another call.
    pub(crate) fn begin(&self) {
        self.rules.set(0);
        self.visits.set(0);
        self.steps.set(0);
    }

    /// What a node may take of it next.
    pub(crate) fn budget(&self, shared: &SharedWork) -> Budget {
        let used = self.rules.get();
        let free = shared.free.saturating_sub(used);
        let more = MAX_RULES.saturating_sub(used.max(shared.free));
        Budget::of_rules(free + more.min(shared.left()))
    }

    /// Counts what a node has taken of a budget that was so large.
    pub(crate) fn count_rules(&self, rules: u64, shared: &SharedWork) {
        let before = self.rules.get();
        let after = before + rules;
        self.rules.set(after);
        shared.take(after.saturating_sub(before.max(shared.free)));
    }

    pub(crate) fn count_visit(&self) {
        self.visits.set(self.visits.get() + 1);
    }

    /// Counts the steps of a way that is recorded.
    pub(crate) fn count_steps(&self, steps: usize) {
        self.steps.set(self.steps.get() + steps as u64);
    }

    /// Whether the call splits into more ways than are followed.
    pub(crate) fn has_too_many_ways(&self) -> bool {
        self.visits.get() > MAX_VISITS || self.steps.get() > MAX_STEPS
    }

    /// Whether a part of the call was not followed for the work that it would take.
    pub(crate) fn is_used_up(&self, shared: &SharedWork) -> bool {
        self.has_too_many_ways() || self.budget(shared).left() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_has_some_work_free() {
        let (shared, call) = (SharedWork::default(), CallWork::default());
        assert_eq!(call.budget(&shared).left(), MAX_RULES);
        call.count_rules(FREE, &shared);
        assert_eq!(shared.left(), SHARED);
        call.count_rules(1_000, &shared);
        assert_eq!(shared.left(), SHARED - 1_000);
        call.count_rules(MAX_RULES, &shared);
        assert!(call.is_used_up(&shared));
        shared.take(SHARED);
        call.begin();
        assert_eq!(call.budget(&shared).left(), FREE);
        call.count_rules(FREE - 1, &shared);
        assert!(!call.is_used_up(&shared));
        assert_eq!(call.budget(&shared).left(), 1);
    }
}
