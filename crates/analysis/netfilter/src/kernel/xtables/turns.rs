//! Rules that match one packet in so many, in turn (`-m statistic --mode nth`).

use super::super::matching::Unknown;
use super::super::turns::{Counter, Numbers, is_counter};
use super::super::walk::Walk;
use crate::iptables::{Match, Rule, Statistic};

/// A visit of such a rule. It matches where its counter is at 0, or everywhere else if it is negated.
pub(super) struct Turn {
    counter: Counter,
    every: u64,
    pub(super) odds: f64,
    matching: Option<Numbers>,
    others: Option<Numbers>,
}

impl Turn {
    /// Returns `None` if whether the rule matches depends on something else too.
    pub(super) fn of(rule: &Rule, unknown: Unknown, walk: &Walk, counter: Counter) -> Option<Self> {
        let mut chances = rule.matches.iter().filter(|item| matches!(item, Match::Statistic(_)));
        let only = chances.next().filter(|_| unknown.is_none() && chances.next().is_none());
        let Match::Statistic(Statistic::Nth { not, every, .. }) = only? else { return None };
        let every = u64::from((*every).max(1));
        let now = walk.notes.turns.now(counter, every);
        let (mut hit, mut rest) = (now.within(every, 0, 1), now.within(every, 1, every));
        let (hit, others) = (hit.next(), rest.next());
        // The remaining numbers are in one row, since each visit before was followed.
        let (matching, others) = if *not { (others, hit) } else { (hit, others) };
        let odds = matching.map_or(0.0, |matching| now.share_of(matching).get());
        Some(Self { counter, every, odds, matching, others })
    }

    /// The branch of the rule's match.
    pub(super) fn matches(&self, walk: &mut Walk) {
        if let Some(numbers) = self.matching {
            walk.notes.turns.met(self.counter, self.every, numbers);
        }
    }

    /// The branch that goes on behind the rule.
    pub(super) fn passes(&self, walk: &mut Walk) {
        if let Some(numbers) = self.others {
            walk.notes.turns.met(self.counter, self.every, numbers);
        }
    }
}

/// Whether a rule may have counted a packet that another match of it then lets pass.
pub(super) fn may_count_in_vain(rule: &Rule) -> bool {
    rule.matches.iter().rev().skip(1).any(is_counter)
}
