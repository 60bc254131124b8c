//! The probabilities with which a retried request ends: arithmetic over a ring of targets.
//!
//! A load balancer asks one target and, if that fails, the next in line, until it has asked each
//! target once. The outcome of a request that begins at a target is the outcome there and, if the
//! target fails, the outcome of a request that begins at the next one. One pass backwards over
//! the ring therefore computes the outcome for every first target. Equal targets in a row are a
//! run, whose sum is known in closed form.
//!
//! A request that has passed all targets has to stop where it began. If `P` is the probability that
//! all targets fail and `X` the outcomes of requests that continue for two rounds, the outcomes of
//! the request are `X` of the first round minus `P` times `X` of the second.

use std::ops::Mul as _;

use uturn_model::Share;
use uturn_path::ReasonSet;

use crate::failover::spread::{NOTHING, Spread};
use crate::failover::target_outcome::{Failure, TargetOutcome};

/// The index of a kind of targets in a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct KindIndex(u32);

impl KindIndex {
    pub(crate) fn new(index: usize) -> Self {
        Self(index as u32)
    }

    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Adjacent targets of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Run {
    pub(crate) kind: KindIndex,
    pub(crate) length: u32,
}

/// The probabilities of the ends of requests that begin at any target of a ring, by the targets'
/// weights.
#[derive(Clone, Debug, Default)]
pub(crate) struct FailoverProbability {
    /// A target answered.
    pub(crate) answered: Spread,
    /// No target answered, and the last one timed out.
    pub(crate) timed_out: Spread,
    /// No target answered, and the last one refused.
    pub(crate) refused: Spread,
}

impl FailoverProbability {
    pub(crate) fn new(kinds: &[TargetOutcome], ring: &[Run]) -> Self {
        let mut counts = vec![0u64; kinds.len()];
        for run in ring {
            counts[run.kind.index()] += u64::from(run.length);
        }
        let weight: f64 =
            kinds.iter().zip(&counts).map(|(kind, count)| kind.weight * *count as f64).sum();
        let mut odds = Self::default();
        if weight <= 0.0 {
            return odds;
        }
        let sum = &mut odds.answered;
        let mut next = Spread::default();
        // No request passes a target that always answers: the ring begins there.
        if let Some(sure) = ring.iter().rposition(|run| kinds[run.kind.index()].failures.is_empty())
        {
            for run in ring[..=sure].iter().rev().chain(ring[sure + 1..].iter().rev()) {
                next = kinds[run.kind.index()].back(run.length, &next, sum);
            }
        } else {
            let mut second = Spread::default();
            for run in ring.iter().rev() {
                next = kinds[run.kind.index()].back(run.length, &next, &mut second);
            }
            for run in ring.iter().rev() {
                next = kinds[run.kind.index()].back(run.length, &next, sum);
            }
            if let Some(all_fail) = all_fail(kinds, &counts, None) {
                sum.add(&second.times(&all_fail), ReasonSet::default(), 0, -1.0);
                odds.give_up(kinds, ring, &counts);
            }
        }
        let can_wait = |(kind, _): &(&TargetOutcome, &u64)| {
            kind.failures.iter().any(|failure| failure.is_timeout)
        };
        let most: u64 = kinds.iter().zip(&counts).filter(can_wait).map(|(_, count)| *count).sum();
        for (_, row) in &mut odds.answered.0 {
            row.shares.truncate((most as usize + 1).saturating_sub(row.from));
        }
        for spread in [&mut odds.answered, &mut odds.timed_out, &mut odds.refused] {
            spread.scale(1.0 / weight);
        }
        odds
    }

    /// Adds the requests that asked all targets: the last one is before the first.
    fn give_up(&mut self, kinds: &[TargetOutcome], ring: &[Run], counts: &[u64]) {
        let mut last = vec![0.0; kinds.len()];
        for (at, run) in ring.iter().enumerate() {
            let first_of_next = kinds[ring[(at + 1) % ring.len()].kind.index()].weight;
            last[run.kind.index()] +=
                f64::from(run.length - 1) * kinds[run.kind.index()].weight + first_of_next;
        }
        for (at, weight) in last.into_iter().enumerate().filter(|(_, weight)| *weight > 0.0) {
            let Some(before) = all_fail(kinds, counts, Some(at)) else { continue };
            for failure in &kinds[at].failures {
                let (end, timeouts) = if failure.is_timeout {
                    (&mut self.timed_out, 1)
                } else {
                    (&mut self.refused, 0)
                };
                end.add(&before, failure.why, timeouts, weight * failure.share.get());
            }
        }
    }
}

impl TargetOutcome {
    fn answered(&self) -> Spread {
        let mut answered = Spread::default();
        for (why, share) in &self.answers {
            answered.row(*why).add(0, &[share.get()], 1.0);
        }
        answered
    }

    /// Returns the outcomes of requests that begin at the first target of a run; `next` has the
    /// outcomes of those that begin after the run. Adds those of requests that begin anywhere in
    /// the run to the sum.
    fn back(&self, length: u32, next: &Spread, sum: &mut Spread) -> Spread {
        match self.failures.as_slice() {
            [] => {
                let here = self.answered();
                sum.add(&here, ReasonSet::default(), 0, self.weight * f64::from(length));
                here
            }
            [failure] if length > 2 && failure.why.late().is_zero() => {
                self.back_at_once(length, failure, next, sum)
            }
            failures => {
                let mut here = next.clone();
                for _ in 0..length {
                    let behind = std::mem::replace(&mut here, self.answered());
                    for failure in failures {
                        here.add(
                            &behind,
                            failure.why,
                            usize::from(failure.is_timeout),
                            failure.share.get(),
                        );
                    }
                    here.trim();
                    sum.add(&here, ReasonSet::default(), 0, self.weight);
                }
                here
            }
        }
    }

    /// Does the same for a long run that fails in one way only.
    fn back_at_once(
        &self,
        length: u32,
        failure: &Failure,
        next: &Spread,
        sum: &mut Spread,
    ) -> Spread {
        let mut here = Spread::default();
        let timeouts = usize::from(failure.is_timeout);
        if !self.answers.is_empty() {
            // The shares of requests for which this many targets fail before one of the run
            // answers: of those that begin at the first target, and of all.
            let (mut of_first, mut of_all) = (Vec::new(), Vec::new());
            let mut share = 1.0;
            for before in 0..length {
                of_first.push(share);
                of_all.push(share * f64::from(length - before));
                share *= failure.share.get();
                if share < NOTHING {
                    break;
                }
            }
            for (why, answers) in &self.answers {
                for (end, shares, scale) in [
                    (&mut here, &of_first, answers.get()),
                    (&mut *sum, &of_all, answers.get() * self.weight),
                ] {
                    end.row(*why).add(0, &shares[..1], scale);
                    let behind = end.row(why.and(failure.why));
                    if failure.is_timeout {
                        behind.add(1, &shares[1..], scale);
                    } else {
                        behind.add(0, &[shares[1..].iter().sum()], scale);
                    }
                }
            }
        }
        let through = failure.share.power(u64::from(length)).get();
        for (why, row) in &next.0 {
            let end = sum.row(why.and(failure.why));
            if failure.is_timeout {
                end.add(row.from + 1, &delayed(&row.shares, failure.share, length), self.weight);
            } else {
                let times: f64 =
                    (1..=u64::from(length)).map(|times| failure.share.power(times).get()).sum();
                end.add(row.from, &row.shares, times * self.weight);
            }
        }
        if through >= NOTHING {
            here.add(next, failure.why, timeouts * length as usize, through);
        }
        here.trim();
        here
    }
}

/// Returns shares that wait once, twice and so on up to `times` times, each time a part of them.
fn delayed(shares: &[f64], part: Share, times: u32) -> Vec<f64> {
    let times = times as usize;
    let beyond = part.power(times as u64 + 1).get();
    let part = part.get();
    let mut sum = 0.0f64;
    let mut all = Vec::with_capacity(shares.len() + times);
    for at in 0..shares.len() + times - 1 {
        sum = part * (sum + shares.get(at).copied().unwrap_or(0.0));
        if at >= times {
            sum -= beyond * shares[at - times];
        }
        sum = sum.max(0.0);
        if at >= shares.len() && sum < NOTHING {
            break;
        }
        all.push(sum);
    }
    all
}

/// Returns the ways in which all targets fail, without one of the kind `left_out`. Returns `None`
/// if that hardly ever happens.
fn all_fail(kinds: &[TargetOutcome], counts: &[u64], left_out: Option<usize>) -> Option<Spread> {
    let with_counts = || {
        let all = kinds.iter().zip(counts).enumerate();
        all.map(|(at, (kind, count))| (kind, count - u64::from(left_out == Some(at))))
            .filter(|(_, count)| *count > 0)
    };
    let all_fail = with_counts().map(|(kind, count)| kind.fails().power(count));
    if all_fail.fold(Share::ALL, Share::mul).is_negligible() {
        return None;
    }
    let mut all = Spread::unit();
    for (kind, count) in with_counts() {
        let mut failing = Spread::default();
        match kind.failures.as_slice() {
            [only] if only.why.late().is_zero() => {
                let timeouts = count as usize * usize::from(only.is_timeout);
                failing.row(only.why).add(timeouts, &[only.share.power(count).get()], 1.0);
            }
            several => {
                for failure in several {
                    let timeouts = usize::from(failure.is_timeout);
                    failing.row(failure.why).add(timeouts, &[failure.share.get()], 1.0);
                }
                failing = failing.power(count);
            }
        }
        all = all.times(&failing);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    /// Makes the set of the mechanisms whose bits are set.
    fn reasons(bits: u32) -> ReasonSet {
        let all = uturn_model::Mechanism::ALL.into_iter();
        let of: Vec<_> = all.filter(|mechanism| bits & 1 << *mechanism as u32 != 0).collect();
        ReasonSet::of(&of)
    }

    /// Answered, timed out or refused, with why and how many timeouts.
    type Ends = BTreeMap<(u8, ReasonSet, u32), Share>;

    /// Follows every beginning through every attempt.
    fn followed(kinds: &[TargetOutcome], ring: &[usize]) -> Ends {
        let weight: f64 = ring.iter().map(|kind| kinds[*kind].weight).sum();
        let mut ends = Ends::new();
        for start in 0..ring.len() {
            let first = Share::ratio(kinds[ring[start]].weight, weight);
            let mut waiting = Ends::from([((0, ReasonSet::default(), 0), first)]);
            for step in 0..ring.len() {
                let kind = &kinds[ring[(start + step) % ring.len()]];
                for ((_, why, timeouts), share) in std::mem::take(&mut waiting) {
                    for (more, part) in &kind.answers {
                        *ends.entry((0, why.and(*more), timeouts)).or_default() += share * *part;
                    }
                    for failure in &kind.failures {
                        let end = if failure.is_timeout { 1 } else { 2 };
                        let timeouts = timeouts + u32::from(failure.is_timeout);
                        let left =
                            waiting.entry((end, why.and(failure.why), timeouts)).or_default();
                        *left += share * failure.share;
                    }
                }
            }
            for (end, share) in waiting {
                *ends.entry(end).or_default() += share;
            }
        }
        ends.retain(|_, share| !share.is_rounded_from(Share::NONE));
        ends
    }

    fn kind() -> impl Strategy<Value = TargetOutcome> {
        let failure = (any::<bool>(), 0u32..3, 1u32..9);
        (prop_oneof![Just(0u32), 1u32..20], prop::collection::vec(failure, 0..3), 1u32..4, 0u32..2)
            .prop_map(|(answers, mut failures, weight, why)| {
                failures.sort_unstable();
                failures.dedup_by_key(|failure| (failure.0, failure.1));
                let answers = if failures.is_empty() { 1 } else { answers };
                let all =
                    f64::from(answers + failures.iter().map(|failure| failure.2).sum::<u32>());
                let share = |part: u32| Share::ratio(f64::from(part), all);
                let failures = failures.into_iter().map(|(is_timeout, why, part)| Failure {
                    is_timeout,
                    why: reasons(1 << why >> 1).after(if is_timeout {
                        Duration::ZERO
                    } else {
                        Duration::from_secs(why.into())
                    }),
                    share: share(part),
                });
                TargetOutcome {
                    weight: f64::from(weight),
                    answers: (answers > 0)
                        .then(|| (reasons(why << 4), share(answers)))
                        .into_iter()
                        .collect(),
                    failures: failures.collect(),
                }
            })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn odds_are_what_following_every_request_gives(
            kinds in prop::collection::vec(kind(), 1..4),
            runs in prop::collection::vec((0usize..4, 1u32..7), 1..6),
        ) {
            let runs: Vec<Run> = runs
                .into_iter()
                .map(|(kind, length)| Run { kind: KindIndex::new(kind % kinds.len()), length })
                .collect();
            let flat: Vec<usize> = runs
                .iter()
                .flat_map(|run| std::iter::repeat_n(run.kind.index(), run.length as usize))
                .collect();
            let wanted = followed(&kinds, &flat);
            let odds = FailoverProbability::new(&kinds, &runs);
            let mut found = Ends::new();
            for (end, spread) in [(0, &odds.answered), (1, &odds.timed_out), (2, &odds.refused)] {
                for (why, timeouts, share) in spread.iter() {
                    *found.entry((end, why, timeouts)).or_default() += share;
                }
            }
            for end in wanted.keys().chain(found.keys()) {
                let share = |ends: &Ends| ends.get(end).copied().unwrap_or_default();
                prop_assert!(
                    (share(&wanted).get() - share(&found).get()).abs() < 2.0 * Share::ROUNDING,
                    "{end:?}: {} and not {}", share(&wanted), share(&found)
                );
            }
        }
    }
}
