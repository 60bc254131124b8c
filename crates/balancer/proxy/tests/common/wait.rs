//! Waiting for what has to come.

use std::thread;
use std::time::{Duration, Instant};

/// No test waits longer: a fault fails it instead of blocking it. A busy machine needs far less.
pub(crate) const PATIENCE: Duration = Duration::from_secs(600);

/// Waits until something is so.
pub(crate) fn await_that(mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "it never was so");
        thread::yield_now();
    }
}
