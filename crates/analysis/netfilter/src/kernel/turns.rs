//! Counters by which rules take turns (`-m statistic --mode nth`, `numgen inc`). Each visit counts: a packet
//! that comes by the same rule again finds the counter one further.
//!
//! Other packets may count between two visits of one packet. They are few, and not modelled.

use uturn_model::Share;

use crate::iptables::{Match, Rule, Statistic, TableKind};

/// The number of counters that are remembered, the last ones: branches that remember different
/// numbers do not merge.
const MAX_REMEMBERED: usize = 4;

/// A counter, by the place of its rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Counter {
    /// The counter of a rule of an iptables table: its chain and its number there.
    Iptables(TableKind, usize, usize),
    /// The counter of a step of a rule of nftables: its chain, its number there, and the step.
    Nft(usize, usize, usize),
}

/// The numbers at which a counter may be, each as likely: so many in a row, from the first on. After the
/// last number of a counter comes 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Numbers {
    first: u64,
    pub(super) count: u64,
}

impl Numbers {
    /// All numbers of a counter.
    pub(super) fn all(modulus: u64) -> Self {
        Self { first: 0, count: modulus.max(1) }
    }

    /// Returns the numbers from `start` up to and without `end`, in up to two rows.
    pub(super) fn within(self, modulus: u64, start: u64, end: u64) -> impl Iterator<Item = Self> {
        let row = move |shift: u64| {
            let first = self.first.max(start.saturating_add(shift));
            let end = self.first.saturating_add(self.count).min(end.saturating_add(shift));
            (first < end).then(|| Self { first: first % modulus.max(1), count: end - first })
        };
        [0, modulus].into_iter().filter_map(row)
    }

    /// Returns the probability of some of these numbers.
    pub(super) fn share_of(self, some: Self) -> Share {
        Share::ratio(some.count as f64, self.count as f64)
    }
}

/// The knowledge of a walk about the counters that it visited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Turns(Vec<(Counter, Numbers)>);

impl Turns {
    /// Nothing is known.
    pub(super) const NONE: Self = Self(Vec::new());

    /// Whether nothing is known.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the numbers that a counter may be at now.
    pub(super) fn now(&self, counter: Counter, modulus: u64) -> Numbers {
        let known = self.0.iter().find(|(known, _)| *known == counter);
        known.map_or(Numbers::all(modulus), |(_, numbers)| *numbers)
    }

    /// A visit found a counter at one of these numbers: the next one finds it one further.
    pub(super) fn met(&mut self, counter: Counter, modulus: u64, numbers: Numbers) {
        self.forget(counter);
        if numbers.count >= modulus {
            return;
        }
        if self.0.len() == MAX_REMEMBERED {
            self.0.remove(0);
        }
        self.0.push((counter, Numbers { first: (numbers.first + 1) % modulus, ..numbers }));
    }

    /// A counter may have counted or not.
    pub(super) fn forget(&mut self, counter: Counter) {
        self.0.retain(|(known, _)| *known != counter);
    }
}

/// Whether a rule of iptables counts the packets that come by.
pub(super) fn counts(rule: &Rule) -> bool {
    rule.matches.iter().any(is_counter)
}

/// Whether a match counts the packets that come by.
pub(super) fn is_counter(item: &Match) -> bool {
    matches!(item, Match::Statistic(Statistic::Nth { .. }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_go_round() {
        let all = Numbers::all(5);
        assert_eq!(all.within(5, 0, 1).collect::<Vec<_>>(), [Numbers { first: 0, count: 1 }]);
        let late = Numbers { first: 4, count: 3 };
        let rows: Vec<Numbers> = late.within(5, 0, 5).collect();
        assert_eq!(rows, [Numbers { first: 4, count: 1 }, Numbers { first: 0, count: 2 }]);
        assert_eq!(late.within(5, 1, 4).collect::<Vec<_>>(), [Numbers { first: 1, count: 1 }]);
        assert_eq!(late.within(5, 2, 4).count(), 0);
    }

    #[test]
    fn the_last_counters_are_remembered() {
        let mut turns = Turns::default();
        let counter = |rule| Counter::Nft(0, rule, 0);
        for rule in 0..10 {
            turns.met(counter(rule), 3, Numbers { first: 2, count: 1 });
        }
        assert_eq!(turns.now(counter(9), 3), Numbers { first: 0, count: 1 });
        assert_eq!(turns.now(counter(0), 3), Numbers::all(3));
        turns.met(counter(9), 3, Numbers::all(3));
        assert_eq!(turns.now(counter(9), 3), Numbers::all(3));
        assert!(turns.0.len() < MAX_REMEMBERED);
    }
}
