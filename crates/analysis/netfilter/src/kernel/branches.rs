//! The branches of a walk that are still to be followed, and the limits of their work.

use std::cell::Cell;
use std::mem::size_of;
use std::rc::Rc;

use uturn_model::Step;

use super::walk::Walk;

/// The most branches that wait at a time for the answers to open questions. A walk that needs more
/// ends [`EndKind::Unsettled`](crate::EndKind::Unsettled).
const MAX_QUESTIONED: usize = 4096;

/// A walk that splits more often than this is followed anew, with its branches merged where they
/// meet. kube-proxy's rules split once for each endpoint of a Service.
const MAX_SPLITS: usize = 4096;

/// A walk that splits and evaluates more rules than this is followed anew, too.
const MAX_RULES_IN_TURN: u64 = 1_000_000;

/// The most rules that one walk evaluates, all branches together: chains that jump to each other twice on
/// many levels would take exponential time. kube-proxy's rules for 10,000 Services with 100,000
/// endpoints need about 100,000 of them.
const MAX_RULES: u64 = 2_000_000;

/// The most bytes that the branches, steps and ends of one walk have, as far as they are counted.
const MAX_BYTES: usize = 96 << 20;

/// The bytes of a branch: its own fields, and about as much on the heap.
const BRANCH: usize = size_of::<Walk>() + 512;

/// The bytes of a step: its fields, and the text of a reason that no other step shares.
const STEP: usize = size_of::<Step>() + 64;

/// The largest number of rules after which the growth of steps and lists is counted.
const CHECKED_EVERY: u64 = 256;

/// The number of entries of a branch's lists that are looked through in the time of evaluating one
/// rule.
const ENTRIES_PER_RULE: usize = 16;

/// The number of entries of its lists that are copied for a branch in the time of evaluating one
/// rule.
const COPIED_PER_RULE: usize = 2;

/// To split off a branch takes as long as evaluating so many rules, and so does looking for one that a paused
/// branch meets.
const RULES_PER_BRANCH: u64 = 16;

/// The number of rules that walks may still evaluate, all of them together. A walk that would need
/// more ends [`EndKind::Unsettled`](crate::EndKind::Unsettled) at the rule where it stopped.
#[derive(Debug)]
pub struct Budget {
    left: Cell<u64>,
}

impl Budget {
    /// A budget of this many rules. No walk takes more than the limit of one walk out of it.
    pub fn of_rules(rules: u64) -> Self {
        Self { left: Cell::new(rules) }
    }

    /// Returns the number of rules that are left.
    pub fn left(&self) -> u64 {
        self.left.get()
    }

    /// Takes rules out of it, as if a walk had evaluated them.
    pub fn take(&self, rules: u64) {
        self.left.set(self.left.get().saturating_sub(rules));
    }
}

impl Default for Budget {
    /// The limit of one walk.
    fn default() -> Self {
        Self::of_rules(MAX_RULES)
    }
}

/// Branches of a walk. Boxed, because a walk is large and is moved often.
pub(super) type Branches = Vec<Box<Walk>>;

/// Branches that are still to be walked.
#[derive(Debug)]
pub(super) struct OpenBranches {
    waiting: Branches,
    /// Whether branches pause where others may meet them.
    pub(super) merges: bool,
    /// The number of branches that wait elsewhere, for others to meet them.
    pub(super) paused: usize,
    /// The number of times that a branch was split off.
    splits: usize,
    /// The number of rules that all branches have evaluated, and how many they may.
    rules: u64,
    max_rules: u64,
    /// The cost of splitting branches off and looking for others, as a number of rules. It counts
    /// for all walks together, and not for the limit of this one.
    of_branches: u64,
    /// The number of rules without those for which a branch has yet to pay for looking through its lists.
    paid: u64,
    /// The number of rules at which is seen what they have added to steps and lists.
    next_check: u64,
    /// The number of steps of all branches, when it was last counted.
    steps: usize,
    /// The bytes of the lists of all branches when each was last counted.
    pub(super) lists: Rc<Cell<usize>>,
    /// The bytes of the ends, which share nothing.
    ended: usize,
}

impl OpenBranches {
    pub(super) fn new(budget: &Budget, merges: bool) -> Self {
        let max_rules = budget.left().min(MAX_RULES);
        Self {
            waiting: Branches::new(),
            merges,
            paused: 0,
            splits: 0,
            rules: 0,
            max_rules,
            of_branches: 0,
            paid: 0,
            next_check: CHECKED_EVERY.min(max_rules + 1),
            steps: 0,
            lists: Rc::default(),
            ended: 0,
        }
    }

    /// Adds a branch that was split off.
    pub(super) fn push(&mut self, mut branch: Box<Walk>) {
        self.splits += 1;
        self.of_branches += RULES_PER_BRANCH;
        self.count_other(branch.lookups.take());
        if !branch.notes.is_empty() {
            let copied = branch.notes.entries_looked_through() / COPIED_PER_RULE;
            self.of_branches += copied as u64;
            // The notes of the other branch are counted at the next rule.
            self.next_check = 0;
            branch.notes.count(&self.lists);
        }
        self.waiting.push(branch);
        if !self.has_room_for(0) {
            self.next_check = 0;
        }
    }

    /// Takes the branch that was added last.
    pub(super) fn pop(&mut self) -> Option<Box<Walk>> {
        self.waiting.pop()
    }

    /// The branches that were added since there were this many, to be changed.
    pub(super) fn since(&mut self, count: usize) -> &mut [Box<Walk>] {
        &mut self.waiting[count..]
    }

    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether no branch may be added for an open question, with so many ends.
    pub(super) fn is_full(&self, ends: usize) -> bool {
        let ends = if self.merges { 0 } else { ends };
        ends + self.waiting.len() + self.paused >= MAX_QUESTIONED
    }

    /// Returns the number of times that a branch was split off.
    pub(super) fn splits(&self) -> usize {
        self.splits
    }

    /// Whether the walk should be followed anew, with its branches merged.
    pub(super) fn splits_too_often(&self) -> bool {
        !self.merges
            && (self.splits > MAX_SPLITS || self.splits > 0 && self.rules > MAX_RULES_IN_TURN)
    }

    /// Returns the work of the walk, as a number of rules.
    pub(super) fn work(&self) -> u64 {
        self.rules + self.of_branches
    }

    /// Counts a rule that a branch evaluates. Returns whether the walk may go on.
    #[inline]
    pub(super) fn count_rule(&mut self, walk: &mut Walk) -> bool {
        self.rules += 1;
        self.rules < self.next_check || self.check(walk) && !self.splits_too_often()
    }

    /// Counts what a lookup has taken, as so many rules. Returns whether the walk may go on.
    pub(super) fn count_lookup(&mut self, walk: &mut Walk, rules: u64) -> bool {
        self.count_other(rules);
        self.rules < self.next_check || self.check(walk)
    }

    /// Counts comparisons of entries in the lists of branches that become one.
    pub(super) fn count_comparisons(&mut self, entries: usize) {
        self.count_other((entries / ENTRIES_PER_RULE) as u64);
    }

    /// Counts a branch that pauses where others may meet it.
    pub(super) fn count_pause(&mut self) {
        self.of_branches += RULES_PER_BRANCH;
    }

    /// Counts work that is not of rules, as so many of them.
    fn count_other(&mut self, rules: u64) {
        self.rules += rules;
        self.paid += rules;
    }

    /// Counts what looking through the lists of this branch took, and the bytes of steps and lists. Returns
    /// whether there is work and room left.
    fn check(&mut self, walk: &mut Walk) -> bool {
        let entries = walk.notes.entries_looked_through();
        self.rules += (self.rules - self.paid) * (entries / ENTRIES_PER_RULE) as u64;
        self.rules += walk.lookups.take();
        self.paid = self.rules;
        walk.notes.count(&self.lists);
        self.steps = walk.log.steps_of_all();
        let may_go_on = !self.is_used_up() && self.has_room_for(0);
        let next = (self.rules + CHECKED_EVERY).min(self.max_rules + 1);
        self.next_check = if may_go_on { next } else { 0 };
        may_go_on
    }

    /// Whether all rules are evaluated that may be.
    pub(super) fn is_used_up(&self) -> bool {
        self.rules > self.max_rules
    }

    /// Counts the steps and the bytes of lists that the end of a branch keeps. Returns whether there is room
    /// for them.
    pub(super) fn count_end(&mut self, steps: usize, lists: usize) -> bool {
        let bytes = steps * STEP + lists;
        let fits = self.has_room_for(bytes);
        self.ended += if fits { bytes } else { 0 };
        fits
    }

    fn has_room_for(&self, more: usize) -> bool {
        let branches = self.waiting.len() + self.paused;
        let kept = branches * BRANCH + self.lists.get() + self.steps * STEP + self.ended;
        kept + more <= MAX_BYTES
    }
}
