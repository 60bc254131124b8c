//! What is counted for a target.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use uturn_lb::event::ProbeResult;

use crate::lock::locked;

/// What requests and connections do to a target.
#[derive(Debug, Default)]
pub(crate) struct TargetMetrics {
    pub(crate) picks: AtomicU64,
    pub(crate) retries: AtomicU64,
    pub(crate) failures: AtomicU64,
    pub(crate) rests: AtomicU64,
    pub(crate) timeouts: AtomicU64,
    pub(crate) refusals: AtomicU64,
}

/// Why no connection to a target came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectFailure {
    /// Nothing answered in time.
    Timeout,
    /// It was refused.
    Refused,
}

impl TargetMetrics {
    /// Its turn came.
    pub(crate) fn pick(&self) {
        self.picks.fetch_add(1, Ordering::Relaxed);
    }

    /// It is tried after another one.
    pub(crate) fn retry(&self) {
        self.retries.fetch_add(1, Ordering::Relaxed);
    }

    /// A request to it failed.
    pub(crate) fn fail(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    /// It rests from now on.
    pub(crate) fn rest(&self) {
        self.rests.fetch_add(1, Ordering::Relaxed);
    }

    /// It could not be connected to.
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

/// What health checks have found out about a target.
#[derive(Debug, Default)]
pub(crate) struct ProbeRecord {
    counts: [AtomicU64; PROBE_RESULTS.len()],
    state: Mutex<ProbeState>,
}

/// What is known from probes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ProbeState {
    /// Whether it is alive; `None` while that is undecided.
    pub(crate) alive: Option<bool>,
    /// The latest result.
    pub(crate) latest: Option<ProbeResult>,
}

impl ProbeRecord {
    /// Records a probe, and what all probes so far say.
    pub(crate) fn record(&self, result: ProbeResult, alive: Option<bool>) {
        let place = PROBE_RESULTS.iter().position(|(known, _)| *known == result);
        if let Some(place) = place {
            self.counts[place].fetch_add(1, Ordering::Relaxed);
        }
        let mut state = locked(&self.state);
        *state = ProbeState { alive: alive.or(state.alive), latest: Some(result) };
    }

    /// What is known now.
    pub(crate) fn state(&self) -> ProbeState {
        *locked(&self.state)
    }

    /// How many probes had each result.
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
