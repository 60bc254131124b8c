//! The metrics of a target.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use uturn_lb::event::ProbeResult;

use crate::lock::locked;

/// The counts of requests and connections to a target.
#[derive(Debug, Default)]
pub(crate) struct TargetMetrics {
    pub(crate) picks: AtomicU64,
    pub(crate) retries: AtomicU64,
    pub(crate) failures: AtomicU64,
    pub(crate) rests: AtomicU64,
    pub(crate) timeouts: AtomicU64,
    pub(crate) refusals: AtomicU64,
}

/// The reason why a connection to a target failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectFailure {
    /// Nothing answered in time.
    Timeout,
    /// The target refused the connection.
    Refused,
}

impl TargetMetrics {
    /// Counts that the target was picked by its turn.
    pub(crate) fn pick(&self) {
        self.picks.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts that the target is tried after another one failed.
    pub(crate) fn retry(&self) {
        self.retries.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a failed request.
    pub(crate) fn fail(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts that the target begins to rest.
    pub(crate) fn rest(&self) {
        self.rests.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a failed connection attempt.
    pub(crate) fn fail_to_connect(&self, failure: ConnectFailure) {
        let count = match failure {
            ConnectFailure::Timeout => &self.timeouts,
            ConnectFailure::Refused => &self.refusals,
        };
        count.fetch_add(1, Ordering::Relaxed);
    }
}

/// The results of probes, in the order in which they are counted.
pub(crate) const PROBE_RESULTS: [(ProbeResult, &str); 5] = [
    (ProbeResult::Answered, "answered"),
    (ProbeResult::TimedOut, "timed_out"),
    (ProbeResult::Refused, "refused"),
    (ProbeResult::Unreachable, "unreachable"),
    (ProbeResult::Unexpected, "unexpected"),
];

/// The results of a target's health checks.
#[derive(Debug, Default)]
pub(crate) struct ProbeRecord {
    counts: [AtomicU64; PROBE_RESULTS.len()],
    state: Mutex<ProbeState>,
}

/// The state of a target according to its health checks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProbeState {
    /// Whether the target is alive; `None` while that is undecided.
    pub(crate) alive: Option<bool>,
    /// The latest result.
    pub(crate) latest: Option<ProbeResult>,
}

impl ProbeRecord {
    /// Records the result of a probe, and the decision that follows from all probes so far.
    pub(crate) fn record(&self, result: ProbeResult, alive: Option<bool>) {
        let place = PROBE_RESULTS.iter().position(|(known, _)| *known == result);
        if let Some(place) = place {
            self.counts[place].fetch_add(1, Ordering::Relaxed);
        }
        let mut state = locked(&self.state);
        *state = ProbeState { alive: alive.or(state.alive), latest: Some(result) };
    }

    /// Returns the current state.
    pub(crate) fn state(&self) -> ProbeState {
        *locked(&self.state)
    }

    /// Returns the number of probes with each result.
    pub(crate) fn counts(&self) -> [u64; PROBE_RESULTS.len()] {
        std::array::from_fn(|place| self.counts[place].load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_decision_stays_until_another_is_made() {
        let record = ProbeRecord::default();
        assert_eq!(record.state(), ProbeState::default());
        record.record(ProbeResult::Refused, Some(false));
        record.record(ProbeResult::Answered, None);
        let latest = Some(ProbeResult::Answered);
        assert_eq!(record.state(), ProbeState { alive: Some(false), latest });
        assert_eq!(record.counts(), [1, 0, 1, 0, 0]);
    }
}
