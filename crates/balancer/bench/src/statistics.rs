//! Summaries of the figures of several rounds, and the rate and duration of rounds.

use serde::Serialize;

/// The constant rate, as a part of the speed of the slowest contestant.
pub(crate) const PART: f64 = 0.5;

/// The number of answers that a round needs for its p99.9 to rest on more than a few answers.
pub(crate) const ENOUGH: u64 = 10_000;

/// The largest factor by which a round at a constant rate is lengthened to have enough answers.
const LONGEST: u32 = 2;

/// The median and the range of a figure over several rounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Summary {
    pub(crate) median: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

impl Summary {
    /// Summarises figures. Returns `None` if there are none.
    pub(crate) fn of(figures: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut figures: Vec<f64> = figures.into_iter().collect();
        figures.sort_by(f64::total_cmp);
        let (least, most) = (*figures.first()?, *figures.last()?);
        let middle = figures.len() / 2;
        let median = match figures.len() % 2 {
            0 => f64::midpoint(figures[middle - 1], figures[middle]),
            _ => figures[middle],
        };
        Some(Self { median, least, most })
    }

    /// Compares figures round by round; in ratios above 1 `ours` are better. Returns `None` if no
    /// round has both figures.
    pub(crate) fn ratio(ours: &[f64], theirs: &[f64], more_is_better: bool) -> Option<Self> {
        let rounds = ours.iter().zip(theirs);
        Self::of(rounds.map(|(our, their)| if more_is_better { our / their } else { their / our }))
    }
}

/// Returns the constant rate, in requests per second, at which times are measured, from the speed
/// of the slowest contestant.
pub(crate) fn constant_rate(slowest: f64) -> u32 {
    ((slowest * PART) as u32).max(10)
}

/// Returns the duration of a round at full speed, in seconds.
pub(crate) fn full_seconds(asked: u32) -> u32 {
    asked.div_ceil(2)
}

/// Returns the duration of a round at this rate, in seconds. It exceeds `asked` if the round then
/// has enough answers, but is at most `LONGEST` times as long.
pub(crate) fn constant_seconds(rate: u32, asked: u32) -> u32 {
    match seconds_for_enough(rate) {
        enough if enough <= asked.saturating_mul(LONGEST) => enough.max(asked),
        _ => asked,
    }
}

/// Returns the seconds that enough answers take at this rate.
pub(crate) fn seconds_for_enough(rate: u32) -> u32 {
    // A few more answers are counted on, as some requests fail.
    let answers = ENOUGH + ENOUGH / 50;
    u32::try_from(answers.div_ceil(u64::from(rate.max(1)))).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_has_the_middle_and_both_ends() {
        let summary = |figures: &[f64]| Summary::of(figures.iter().copied());
        assert_eq!(summary(&[3.0, 1.0, 2.0]), Some(Summary { median: 2.0, least: 1.0, most: 3.0 }));
        assert_eq!(summary(&[4.0, 1.0, 2.0, 3.0]).unwrap().median, 2.5);
        assert_eq!(summary(&[]), None);
    }

    #[test]
    fn better_is_above_one_whatever_is_measured() {
        let ratio = |more| Summary::ratio(&[30.0, 20.0, 12.0], &[20.0, 20.0, 10.0], more).unwrap();
        assert_eq!(ratio(true), Summary { median: 1.2, least: 1.0, most: 1.5 });
        assert_eq!(ratio(false).median, 10.0 / 12.0);
    }

    #[test]
    fn ratios_are_of_one_round_each() {
        // Both were slow in the second round: the machine had something else to do.
        let ratio = Summary::ratio(&[100.0, 50.0], &[100.0, 50.0], true).unwrap();
        assert_eq!(ratio, Summary { median: 1.0, least: 1.0, most: 1.0 });
        assert_eq!(Summary::ratio(&[1.0], &[], true), None);
    }

    #[test]
    fn rounds_last_until_there_are_enough_answers_within_bounds() {
        assert_eq!(constant_rate(20_001.0), 10_000);
        assert_eq!(constant_rate(3.0), 10);
        assert_eq!((full_seconds(1), full_seconds(2), full_seconds(15)), (1, 1, 8));
        assert_eq!(constant_seconds(50_000, 2), 2);
        assert_eq!(constant_seconds(3_400, 2), 3);
        // Four seconds would not be enough either.
        assert_eq!(constant_seconds(500, 2), 2);
        assert_eq!(seconds_for_enough(500), 21);
        assert!(u64::from(seconds_for_enough(3_400)) * 3_400 >= ENOUGH);
    }
}
