//! The objects and load balancers that have to be processed, and those that failed and are tried
//! again later, each time after twice the pause.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;
use uturn_model::ObjectRef;

/// The first pause.
const FIRST: Duration = Duration::from_secs(1);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(300);

/// An object or a load balancer that is processed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Work {
    /// A Service or an Ingress.
    Object(ObjectRef),
    /// The load balancer with this id.
    Balancer(String),
}

/// The objects and load balancers that have to be processed.
#[derive(Clone, Debug, Default)]
pub struct Due {
    first: BTreeSet<Work>,
    later: BTreeSet<Work>,
}

impl Due {
    /// Adds an object or load balancer that changed itself.
    pub fn insert(&mut self, work: Work) {
        self.later.remove(&work);
        self.first.insert(work);
    }

    /// Adds an object or load balancer that may wait until all that changed themselves are done.
    pub fn insert_later(&mut self, work: Work) {
        if !self.first.contains(&work) {
            self.later.insert(work);
        }
    }

    /// Removes an object or load balancer.
    pub fn remove(&mut self, work: &Work) {
        self.first.remove(work);
        self.later.remove(work);
    }

    /// Returns all objects and load balancers, in the order in which they are processed.
    pub fn iter(&self) -> impl Iterator<Item = &Work> {
        self.first.iter().chain(&self.later)
    }

    /// Returns whether nothing has to be processed.
    pub fn is_empty(&self) -> bool {
        self.first.is_empty() && self.later.is_empty()
    }
}

/// The objects and load balancers that failed the last time.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    failed: BTreeMap<Work, Failure>,
}

#[derive(Clone, Copy, Debug)]
struct Failure {
    times: u32,
    next: Instant,
}

/// Returns the pause after a failure that followed this many others.
pub fn pause(times: u32) -> Duration {
    FIRST.saturating_mul(1 << times.min(16)).min(LONGEST)
}

impl Queue {
    /// Returns whether an object or load balancer may be tried now.
    pub fn is_due(&self, work: &Work, now: Instant) -> bool {
        self.failed.get(work).is_none_or(|failure| failure.next <= now)
    }

    /// Notes a failure.
    pub fn failed(&mut self, work: &Work, now: Instant) {
        let failure = self.failed.entry(work.clone()).or_insert(Failure { times: 0, next: now });
        failure.next = now + pause(failure.times);
        failure.times += 1;
    }

    /// Notes a success.
    pub fn succeeded(&mut self, work: &Work) {
        self.failed.remove(work);
    }

    /// Returns the failed objects and load balancers that may be tried again.
    pub fn due(&self, now: Instant) -> impl Iterator<Item = &Work> {
        self.failed.iter().filter(move |(_, failure)| failure.next <= now).map(|(work, _)| work)
    }

    /// Returns the earliest time after `now` at which a failed object or load balancer may be tried
    /// again.
    pub fn next(&self, now: Instant) -> Option<Instant> {
        self.failed.values().map(|failure| failure.next).filter(|next| *next > now).min()
    }

    /// Returns the number of objects and load balancers that failed the last time.
    pub fn len(&self) -> usize {
        self.failed.len()
    }

    /// Returns whether nothing failed the last time.
    pub fn is_empty(&self) -> bool {
        self.failed.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let (mut queue, mut now) = (Queue::default(), Instant::now());
        let [a, b] = ["a", "b"].map(|id| Work::Balancer(id.to_owned()));
        let mut pauses = Vec::new();
        for _ in 0..11 {
            queue.failed(&a, now);
            assert!(!queue.is_due(&a, now) && queue.is_due(&b, now));
            assert_eq!(queue.due(now).count(), 0);
            let next = queue.next(now).unwrap();
            pauses.push((next - now).as_secs());
            assert!(queue.is_due(&a, next));
            assert_eq!(queue.due(next).collect::<Vec<_>>(), [&a]);
            now = next;
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        queue.succeeded(&a);
        assert!(queue.is_empty() && queue.next(now).is_none());
    }

    #[test]
    fn what_changed_itself_comes_first() {
        let [a, b] = ["a", "b"].map(|id| Work::Balancer(id.to_owned()));
        let mut due = Due::default();
        due.insert_later(a.clone());
        due.insert(b.clone());
        due.insert_later(b.clone());
        assert_eq!(due.iter().collect::<Vec<_>>(), [&b, &a]);
        due.remove(&b);
        due.insert(a.clone());
        assert_eq!(due.iter().collect::<Vec<_>>(), [&a]);
    }
}
