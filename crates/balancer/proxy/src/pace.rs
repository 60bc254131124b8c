//! The lowest rate at which a client may send a body.

use std::time::{Duration, Instant};

/// The time that is left to wait for a client. Waiting reduces it, and bytes that then arrive add
/// to it, so that a client that sends only a byte now and then runs out of it. Time in which the
/// target reads nothing does not count.
#[derive(Debug)]
pub(crate) struct Pace {
    /// The lowest rate, in bytes per second; 0 for no limit.
    bytes_per_second: u64,
    /// The most time that can be left.
    most: Duration,
    left: Duration,
    /// The time since which the client has been waited for.
    since: Option<Instant>,
}

impl Pace {
    /// Returns the pace of a body that has to come at `bytes_per_second`, and may be late by
    /// `most`.
    pub(crate) fn new(bytes_per_second: u64, most: Duration) -> Self {
        Self { bytes_per_second, most, left: most, since: None }
    }

    /// Begins to wait for the client, and returns the longest time to wait.
    pub(crate) fn wait(&mut self, now: Instant) -> Duration {
        self.since = Some(now);
        if self.bytes_per_second == 0 { self.most } else { self.left }
    }

    /// Notes that bytes have arrived.
    pub(crate) fn receive(&mut self, bytes: usize, now: impl FnOnce() -> Instant) {
        // Bytes that had already arrived took no time.
        let Some(since) = self.since.take() else { return };
        let waited = now().saturating_duration_since(since);
        let gained = (bytes as u64).saturating_mul(1000).checked_div(self.bytes_per_second);
        let left = self.left.saturating_sub(waited);
        self.left =
            left.saturating_add(Duration::from_millis(gained.unwrap_or_default())).min(self.most);
    }

    /// Returns whether less time is left than at the beginning.
    pub(crate) fn is_behind(&self) -> bool {
        self.bytes_per_second > 0 && self.left < self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// Returns for how many seconds a client lasts that sends `bytes` once in `every` seconds.
    fn lasts(pace: &mut Pace, bytes: usize, every: u32) -> Option<u32> {
        let begin = Instant::now();
        (0..10_000).map(|turn| turn * every).find(|seconds| {
            let now = begin + SECOND * *seconds;
            let is_late = pace.wait(now) < SECOND * every;
            pace.receive(bytes, || now + SECOND * every);
            is_late
        })
    }

    #[test]
    fn a_client_that_is_slower_runs_out_of_time_and_one_that_is_not_does_not() {
        let pace = || Pace::new(240, SECOND * 60);
        // A byte comes within every silence that is allowed.
        assert_eq!(lasts(&mut pace(), 1, 59), Some(59));
        assert_eq!(lasts(&mut pace(), 1, 1), Some(60));
        assert_eq!(lasts(&mut pace(), 120, 1), Some(119));
        assert_eq!(lasts(&mut pace(), 240, 1), None);
        assert_eq!(lasts(&mut pace(), 240 * 60, 60), None);
        assert_eq!(lasts(&mut Pace::new(0, SECOND * 60), 1, 59), None);
    }

    #[test]
    fn much_at_once_buys_no_more_than_the_time_of_the_beginning() {
        let mut pace = Pace::new(240, SECOND * 60);
        let now = Instant::now();
        pace.wait(now);
        pace.receive(1 << 30, || now);
        assert!(!pace.is_behind());
        assert_eq!(lasts(&mut pace, 1, 59), Some(59));
    }
}
