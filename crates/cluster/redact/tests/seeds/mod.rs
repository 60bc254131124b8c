//! Which random clusters the tests make.

use std::env;
use std::ops::Range;

/// The seeds of random clusters: so many from the first one, unless `UTURN_REDACT_CLUSTERS` states how
/// many and `UTURN_REDACT_SEED` which one is the first.
pub(crate) fn of(first: u64, count: u64) -> Range<u64> {
    let stated = |name: &str| env::var(name).ok().map(|text| text.parse::<u64>().unwrap());
    let seed = stated("UTURN_REDACT_SEED");
    let count = stated("UTURN_REDACT_CLUSTERS").unwrap_or(if seed.is_some() { 1 } else { count });
    let first = seed.unwrap_or(first);
    first..first + count
}
