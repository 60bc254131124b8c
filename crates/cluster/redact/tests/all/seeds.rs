//! Which random clusters the tests make.

use std::ops::Range;

use uturn_testing::variables;

/// The seeds of random clusters: so many from the first one, unless `UTURN_REDACT_CLUSTERS` states how
/// many and `UTURN_REDACT_SEED` which one is the first.
pub(crate) fn of(first: u64, count: u64) -> Range<u64> {
    let seed = variables::number(variables::REDACT_SEED);
    let usual = if seed.is_some() { 1 } else { count };
    let count = variables::number(variables::REDACT_CLUSTERS).unwrap_or(usual);
    let first = seed.unwrap_or(first);
    first..first + count
}
