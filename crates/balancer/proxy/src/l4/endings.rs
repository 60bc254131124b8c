//! Removed targets whose connections are to end.

use std::collections::{HashMap, HashSet};
use std::time::{Duration, Instant};

use super::Endpoint;

/// The removed targets, and the times when their connections end.
#[derive(Debug, Default)]
pub(super) struct Endings(HashMap<Endpoint, Instant>);

impl Endings {
    /// Records a change of targets. Removed targets have this long; targets that are back stay.
    pub(super) fn record(
        &mut self,
        before: &HashSet<Endpoint>,
        after: &HashSet<Endpoint>,
        now: Instant,
        drain: Duration,
    ) {
        self.0.retain(|endpoint, _| !after.contains(endpoint));
        for endpoint in before.difference(after) {
            self.0.entry(*endpoint).or_insert(now + drain);
        }
    }

    /// Returns when connections end next, or `None` if none are to end.
    pub(super) fn next(&self) -> Option<Instant> {
        self.0.values().min().copied()
    }

    /// Removes and returns the targets whose time is over.
    pub(super) fn take_due(&mut self, now: Instant) -> HashSet<Endpoint> {
        self.0.extract_if(|_, at| *at <= now).map(|(endpoint, _)| endpoint).collect()
    }
}

#[cfg(test)]
mod tests {
    use uturn_model::Protocol;

    use super::*;

    fn endpoint(target: &str) -> Endpoint {
        Endpoint {
            listener: "10.0.0.200:80".parse().unwrap(),
            transport: Protocol::Tcp,
            target: target.parse().unwrap(),
        }
    }

    #[test]
    fn a_removed_target_has_its_time_and_one_that_is_back_stays() {
        let (a, b) = (endpoint("10.0.0.11:80"), endpoint("10.0.0.12:80"));
        let now = Instant::now();
        let second = Duration::from_secs(1);
        let mut endings = Endings::default();
        assert_eq!(endings.next(), None);
        endings.record(&[a, b].into(), &[].into(), now, 2 * second);
        // Its time is not prolonged.
        endings.record(&[a].into(), &[].into(), now + second, 2 * second);
        assert_eq!(endings.next(), Some(now + 2 * second));
        endings.record(&[].into(), &[b].into(), now + second, 2 * second);
        assert_eq!(endings.take_due(now + second), HashSet::new());
        assert_eq!(endings.take_due(now + 2 * second), HashSet::from([a]));
        assert_eq!(endings.next(), None);
    }
}
