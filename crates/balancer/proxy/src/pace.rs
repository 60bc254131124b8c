//! How slowly a client may send a body.

use std::time::{Duration, Instant};

/// The time for which a client may still be waited for. Waiting takes from it, and what then
/// arrives adds to it, so that a client that sends a byte now and then runs out of it. Time in
/// which a target takes nothing does not count.
#[derive(Debug)]
pub(crate) struct Pace {
    /// The fewest bytes a second; 0 for any.
    bytes_per_second: u64,
    /// The most time that there can be left.
    most: Duration,
    left: Duration,
    /// Since when the client is waited for.
    since: Option<Instant>,
}

impl Pace {
    /// The pace of a body that is to come with so many bytes a second, and may be late by `most`.
    pub(crate) fn new(bytes_per_second: u64, most: Duration) -> Self {
        Self { bytes_per_second, most, left: most, since: None }
    }

    /// The client is waited for from now on. Returns how long.
    pub(crate) fn wait(&mut self, now: Instant) -> Duration {
        self.since = Some(now);
        if self.bytes_per_second == 0 { self.most } else { self.left }
    }

    /// Bytes have come.
    pub(crate) fn receive(&mut self, bytes: usize, now: impl FnOnce() -> Instant) {
        // What was there already has cost no time.
        let Some(since) = self.since.take() else { return };
        let waited = now().saturating_duration_since(since);
        let gained = (bytes as u64).saturating_mul(1000).checked_div(self.bytes_per_second);
        let left = self.left.saturating_sub(waited);
        self.left =
            left.saturating_add(Duration::from_millis(gained.unwrap_or_default())).min(self.most);
    }

    /// Whether what is left is less than it was at the beginning.
    pub(crate) fn is_behind(&self) -> bool {
        self.bytes_per_second > 0 && self.left < self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    /// For how many seconds a client lasts that sends so many bytes every few seconds.
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
