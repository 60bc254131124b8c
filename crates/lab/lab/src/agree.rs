//! Compares measured outcomes with predicted ones.
//!
//! If a scheduler takes targets in turns and the connects are a whole number of turns, counts must
//! be exact. If chance decides, only predicted outcomes may occur, each about as often as its share
//! predicts: the bounds reject a right prediction one time in a million.

use std::fmt;
use std::time::Duration;

use uturn_model::{Outcome, Route, Share, Verdict};

/// The probability that a right prediction is rejected.
const ERROR_RATE: f64 = 1e-6;

/// The result of the comparison.
#[derive(Clone, Debug, PartialEq)]
pub enum Agreement {
    /// Measured and predicted outcomes agree.
    Agrees,
    /// They differ.
    Differs(Vec<Difference>),
}

impl Agreement {
    /// Returns whether they agree.
    pub fn holds(&self) -> bool {
        *self == Self::Agrees
    }
}

/// An outcome whose count does not fit its share.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// The outcome.
    pub outcome: Outcome,
    /// The predicted share; zero if the outcome was not predicted.
    pub predicted: Share,
    /// The number of times that the outcome occurred.
    pub measured: u64,
    /// The number of all connects.
    pub of: u64,
}

impl Difference {
    /// Describes the difference in one line. `whose` names the shares that the count was compared
    /// with: `predicted` or `expected`.
    pub fn describe(&self, whose: &str) -> String {
        let Self { outcome, predicted, measured, of } = self;
        let should = match *predicted {
            Share::NONE => "none".to_owned(),
            share => format!("{:.1}", share.count(*of)),
        };
        format!("{outcome}: {measured} of {of} measured, {should} {whose}")
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.describe("predicted"))
    }
}

/// Returns the outcomes of a verdict, with their shares, as seen by a client that gives up after
/// `limit`.
pub fn within(verdict: &Verdict, limit: Duration) -> Vec<(Outcome, Share)> {
    let all: f64 = verdict.routes.iter().map(|route| route.share.get()).sum();
    let share = |route: &Route| Share::ratio(route.share.get(), all);
    let routes = verdict.routes.iter();
    seen(routes.map(|route| (route.outcome, route.late, share(route))), limit)
}

/// Returns outcomes as [`within`] does, for outcomes that include their delay.
pub fn outcomes_within(outcomes: &[(Outcome, Share)], limit: Duration) -> Vec<(Outcome, Share)> {
    seen(outcomes.iter().map(|(outcome, share)| (*outcome, Duration::ZERO, *share)), limit)
}

fn seen(
    ways: impl Iterator<Item = (Outcome, Duration, Share)>,
    limit: Duration,
) -> Vec<(Outcome, Share)> {
    let mut seen: Vec<(Outcome, Share)> = Vec::new();
    for (outcome, late, share) in ways {
        let is_late = outcome.after().is_some_and(|after| after + late >= limit);
        let outcome = if is_late { Outcome::Hangs } else { outcome };
        match seen.iter_mut().find(|entry| entry.0 == outcome) {
            Some(known) => known.1 += share,
            None => seen.push((outcome, share)),
        }
    }
    seen
}

/// Compares shares with counts, which must match exactly if `exact` is set.
pub fn agrees(
    predicted: &[(Outcome, Share)],
    measured: &[(Outcome, u64)],
    exact: bool,
) -> Agreement {
    let of: u64 = measured.iter().map(|(_, count)| count).sum();
    let mut outcomes: Vec<Outcome> =
        predicted.iter().map(|entry| entry.0).chain(measured.iter().map(|entry| entry.0)).collect();
    outcomes.sort_unstable();
    outcomes.dedup();
    let tests = outcomes.len().max(1) as f64;
    let differences: Vec<Difference> = outcomes
        .into_iter()
        .filter_map(|outcome| {
            let share: Share =
                predicted.iter().filter(|entry| entry.0 == outcome).map(|entry| entry.1).sum();
            let count: u64 =
                measured.iter().filter(|entry| entry.0 == outcome).map(|entry| entry.1).sum();
            let fits = if exact {
                share.is_about(Share::ratio(count as f64, of.max(1) as f64))
            } else {
                is_likely(count, of, share, ERROR_RATE / tests)
            };
            let difference = Difference { outcome, predicted: share, measured: count, of };
            (!fits || of == 0).then_some(difference)
        })
        .collect();
    if differences.is_empty() { Agreement::Agrees } else { Agreement::Differs(differences) }
}

/// Returns whether `count` hits in `of` tries with probability `share` lie between the bounds that
/// cut off half of `error` on each side.
fn is_likely(count: u64, of: u64, share: Share, error: f64) -> bool {
    if share == Share::NONE {
        return count == 0;
    }
    if share == Share::ALL {
        return count == of;
    }
    let share = share.get();
    let at_most: f64 = (0..=count).map(|k| binomial(k, of, share)).sum();
    let at_least: f64 = (count..=of).map(|k| binomial(k, of, share)).sum();
    at_most > error / 2.0 && at_least > error / 2.0
}

fn binomial(k: u64, n: u64, p: f64) -> f64 {
    let choose: f64 = (1..=k).map(|i| ((n - k + i) as f64 / i as f64).ln()).sum();
    (choose + k as f64 * p.ln() + (n - k) as f64 * (1.0 - p).ln()).exp()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LATE: Outcome = Outcome::Answered { after: Duration::from_secs(4) };

    #[test]
    fn exact_means_exact() {
        let third = [(Outcome::AT_ONCE, Share::of(2, 3)), (LATE, Share::of(1, 3))];
        assert!(agrees(&third, &[(Outcome::AT_ONCE, 8), (LATE, 4)], true).holds());
        let verdict = agrees(&third, &[(Outcome::AT_ONCE, 9), (LATE, 3)], true);
        let Agreement::Differs(differences) = verdict else { panic!("they differ") };
        assert_eq!(differences.len(), 2);
        assert_eq!(differences[0].to_string(), "answered at once: 9 of 12 measured, 8.0 predicted");
        let describe = differences[0].describe("expected");
        assert_eq!(describe, "answered at once: 9 of 12 measured, 8.0 expected");
    }

    #[test]
    fn an_unpredicted_outcome_is_a_difference() {
        let always = [(Outcome::AT_ONCE, Share::ALL)];
        let measured = [(Outcome::AT_ONCE, 11), (Outcome::Hangs, 1)];
        for exact in [true, false] {
            let Agreement::Differs(all) = agrees(&always, &measured, exact) else {
                panic!("they differ")
            };
            assert!(all.iter().any(|difference| difference.outcome == Outcome::Hangs
                && difference.predicted == Share::NONE));
        }
    }

    #[test]
    fn a_shorter_wait_sees_fewer_outcomes() {
        let after = |seconds| Outcome::Answered { after: Duration::from_secs(seconds) };
        let [half, quarter, eighth] = [2, 4, 8].map(|whole| Share::of(1, whole));
        let all =
            [(after(0), half), (after(1), quarter), (after(3), eighth), (Outcome::Hangs, eighth)];
        let seen = outcomes_within(&all, Duration::from_millis(2500));
        assert_eq!(seen, [(after(0), half), (after(1), quarter), (Outcome::Hangs, quarter)]);
    }

    #[test]
    fn nothing_measured_agrees_with_nothing() {
        assert!(!agrees(&[(Outcome::AT_ONCE, Share::ALL)], &[], true).holds());
        assert!(!agrees(&[(Outcome::AT_ONCE, Share::ALL)], &[], false).holds());
    }

    #[test]
    fn chance_has_room_but_not_too_much() {
        let half = [(Outcome::AT_ONCE, Share::HALF), (Outcome::Hangs, Share::HALF)];
        let measured = |hangs| [(Outcome::AT_ONCE, 40 - hangs), (Outcome::Hangs, hangs)];
        for (hangs, fits) in [(20, true), (10, true), (5, true), (3, false), (0, false)] {
            assert_eq!(agrees(&half, &measured(hangs), false).holds(), fits, "{hangs}");
        }
    }

    proptest! {
        #[test]
        fn binomials_add_up(n in 1u64..400, p in 0.001f64..0.999) {
            let sum: f64 = (0..=n).map(|k| binomial(k, n, p)).sum();
            prop_assert!((sum - 1.0).abs() < 1e-6);
        }

        #[test]
        fn the_expected_count_is_always_likely(n in 1u64..400, p in 0.001f64..0.999) {
            prop_assert!(is_likely((n as f64 * p).round() as u64, n, Share::new(p), ERROR_RATE));
        }
    }
}
