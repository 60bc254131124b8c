//! The branches of a walk that are still to be followed, and the limits of their work.

use std::cell::Cell;
use std::mem::size_of;

use uturn_model::{Evidence, Step};

use super::walk::Walk;
use crate::packet_facts::PacketFact;
use crate::question::Question;

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

/// What a branch takes: its own fields, and about as much on the heap.
const BRANCH: usize = size_of::<Walk>() + 512;

/// What an answer takes that a branch or an end gives: the question, the fact that follows from it, and the
/// rule as one that is not modelled.
const ANSWER: usize =
    size_of::<(Question, bool)>() + size_of::<(PacketFact, bool)>() + size_of::<Evidence>() + 64;

/// What a step takes: its fields, and the text of a reason that no other step shares.
const STEP: usize = size_of::<Step>() + 64;

/// The steps are counted once in so many rules.
const COUNTED_EVERY: u64 = 256;

/// How many rules walks may still evaluate, all of them together. A walk that would need more ends
/// [`EndKind::Unsettled`](crate::EndKind::Unsettled) at the rule where it stopped.
#[derive(Debug)]
pub struct Budget {
    left: Cell<u64>,
}

impl Budget {
    /// A budget of this many rules. No walk takes more than the limit of one walk out of it.
    pub fn of_rules(rules: u64) -> Self {
        Self { left: Cell::new(rules) }
    }

    /// How many rules are left.
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
    /// The answers of those.
    pub(super) paused_answers: usize,
    /// How often a branch was split off.
    splits: usize,
    /// The number of rules that all branches have evaluated, and how many they may.
    rules: u64,
    max_rules: u64,
    /// The number of steps of all branches, when it was last counted.
    steps: usize,
    /// The answers of the branches that wait here, each with its own list of them.
    answers: usize,
    /// The bytes of the ends, which share nothing.
    ended: usize,
}

impl OpenBranches {
    pub(super) fn new(budget: &Budget, merges: bool) -> Self {
        Self {
            waiting: Branches::new(),
            merges,
            paused: 0,
            paused_answers: 0,
            splits: 0,
            rules: 0,
            max_rules: budget.left().min(MAX_RULES),
            steps: 0,
            answers: 0,
            ended: 0,
        }
    }

    /// Adds a branch that was split off.
    pub(super) fn push(&mut self, branch: Box<Walk>) {
        self.splits += 1;
        self.answers += branch.open_questions.len();
        self.waiting.push(branch);
    }

    /// Takes the branch that was added last.
    pub(super) fn pop(&mut self) -> Option<Box<Walk>> {
        let branch = self.waiting.pop()?;
        self.answers = self.answers.saturating_sub(branch.open_questions.len());
        Some(branch)
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

    /// How often a branch was split off.
    pub(super) fn splits(&self) -> usize {
        self.splits
    }

    /// Whether the walk should be followed anew, with its branches merged.
    pub(super) fn splits_too_often(&self) -> bool {
        !self.merges
            && (self.splits > MAX_SPLITS || self.splits > 0 && self.rules > MAX_RULES_IN_TURN)
    }

    /// The number of rules that all branches have evaluated.
    pub(super) fn rules(&self) -> u64 {
        self.rules
    }

    /// Counts a rule that a branch evaluates. Returns whether the walk may go on.
    pub(super) fn count_rule(&mut self, walk: &Walk) -> bool {
        self.rules += 1;
        if self.rules.is_multiple_of(COUNTED_EVERY) {
            self.steps = walk.log.steps_of_all();
        }
        self.rules <= self.max_rules && !self.splits_too_often() && self.has_room_for(0)
    }

    /// Counts what a lookup has taken, as so many rules. Returns whether the walk may go on.
    pub(super) fn count_lookup(&mut self, walk: &Walk, rules: u64) -> bool {
        self.rules += rules;
        self.steps = walk.log.steps_of_all();
        !self.is_used_up() && self.has_room_for(0)
    }

    /// Whether all rules are evaluated that may be.
    pub(super) fn is_used_up(&self) -> bool {
        self.rules > self.max_rules
    }

    /// Counts the steps and answers of a branch that ends. Returns whether there is room for them.
    pub(super) fn count_end(&mut self, steps: usize, answers: usize) -> bool {
        let bytes = steps * STEP + answers * ANSWER;
        let fits = self.has_room_for(bytes);
        self.ended += if fits { bytes } else { 0 };
        fits
    }

    fn has_room_for(&self, more: usize) -> bool {
        let branches = self.waiting.len() + self.paused;
        let answers = self.answers + self.paused_answers;
        let kept = branches * BRANCH + answers * ANSWER + self.steps * STEP + self.ended;
        kept + more <= MAX_BYTES
    }
}
