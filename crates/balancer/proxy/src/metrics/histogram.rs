//! Histograms of durations.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The upper bounds of the classes, in microseconds. One more class has no bound.
pub(crate) const BOUNDS: [u64; 15] = [
    1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
    5_000_000, 10_000_000, 30_000_000, 60_000_000,
];

/// A histogram of durations.
#[derive(Debug, Default)]
pub(crate) struct Histogram {
    classes: [AtomicU64; BOUNDS.len() + 1],
    /// The sum of all durations, in microseconds.
    sum: AtomicU64,
}

/// The counts of histograms, added up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    /// The number of durations in each class, without those of lower classes.
    pub(crate) classes: [u64; BOUNDS.len() + 1],
    /// The sum of all durations, in microseconds.
    pub(crate) sum: u64,
}

impl Histogram {
    /// Counts a duration.
    pub(crate) fn count(&self, duration: Duration) {
        let micros = u64::try_from(duration.as_micros()).unwrap_or(u64::MAX);
        // A duration belongs to the first class whose bound is not below it.
        let class = BOUNDS.partition_point(|bound| *bound < micros);
        self.classes[class].fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(micros, Ordering::Relaxed);
    }

    /// Adds the counts of the histogram to `counts`.
    pub(crate) fn add_to(&self, counts: &mut Counts) {
        for (class, count) in self.classes.iter().zip(&mut counts.classes) {
            *count += class.load(Ordering::Relaxed);
        }
        counts.sum = counts.sum.wrapping_add(self.sum.load(Ordering::Relaxed));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_counts_in_the_first_class_that_it_does_not_exceed() {
        let histogram = Histogram::default();
        for micros in [0, 1_000, 1_001, 60_000_000, 60_000_001] {
            histogram.count(Duration::from_micros(micros));
        }
        let mut counts = Counts::default();
        histogram.add_to(&mut counts);
        let mut expected = [0; BOUNDS.len() + 1];
        (expected[0], expected[1], expected[14], expected[15]) = (2, 1, 1, 1);
        assert_eq!(counts, Counts { classes: expected, sum: 120_002_002 });
    }
}
