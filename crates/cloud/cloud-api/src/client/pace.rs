//! Limits the rate of requests for each action.

use std::collections::{HashMap, VecDeque};
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// The period that the limit applies to.
const PERIOD: Duration = Duration::from_secs(1);

/// Spaces requests, so that no second has more requests for an action than the API allows.
#[derive(Debug)]
pub struct Pace {
    limit: NonZeroU32,
    /// The times of the latest requests of each action, past or planned, the oldest first.
    sent: Mutex<HashMap<(&'static str, &'static str), VecDeque<Instant>>>,
}

impl Pace {
    /// Returns a limiter that allows this many requests per second for each action.
    pub fn new(limit: NonZeroU32) -> Self {
        Self { limit, sent: Mutex::default() }
    }

    /// Waits until a request of an action of a service may be sent.
    pub async fn turn(&self, service: &'static str, action: &'static str) {
        let at = self.book((service, action), Instant::now());
        sleep_until(at).await;
    }

    /// Reserves and returns the next free time.
    fn book(&self, action: (&'static str, &'static str), now: Instant) -> Instant {
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        let times = sent.entry(action).or_default();
        let is_full = times.len() >= usize::try_from(self.limit.get()).unwrap_or(usize::MAX);
        let first = if is_full { times.pop_front() } else { None };
        let at = first.map_or(now, |first| now.max(first + PERIOD));
        times.push_back(at);
        at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_second_has_more_than_the_limit() {
        let pace = Pace::new(NonZeroU32::new(20).unwrap());
        let start = Instant::now();
        let times: Vec<Duration> =
            (0..100).map(|_| pace.book(("clb", "DescribeListeners"), start) - start).collect();
        for (position, time) in times.iter().enumerate() {
            assert_eq!(time.as_secs(), u64::try_from(position / 20).unwrap());
        }
        assert_eq!(pace.book(("clb", "DescribeTargets"), start), start, "another action");
        // After a pause, requests are sent at once again.
        let later = start + Duration::from_secs(60);
        let again: Vec<Instant> =
            (0..21).map(|_| pace.book(("clb", "DescribeListeners"), later)).collect();
        assert!(again[..20].iter().all(|time| *time == later));
        assert_eq!(again[20], later + PERIOD);
    }
}
