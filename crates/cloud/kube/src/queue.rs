//! What has to be looked at, and what failed and is tried again later, each time after twice the
//! pause.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;
use uturn_model::ObjectRef;

/// The first pause.
const FIRST: Duration = Duration::from_secs(1);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(300);

/// What is looked at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Work {
    /// A Service or an Ingress.
    Object(ObjectRef),
    /// The load balancer with this id.
    Balancer(String),
}

/// What has to be looked at.
#[derive(Clone, Debug, Default)]
pub struct Due {
    first: BTreeSet<Work>,
    later: BTreeSet<Work>,
}

impl Due {
    /// Adds what changed itself.
    pub fn insert(&mut self, work: Work) {
        self.later.remove(&work);
        self.first.insert(work);
    }

    /// Adds what may wait until all that changed itself is done.
    pub fn insert_later(&mut self, work: Work) {
        if !self.first.contains(&work) {
            self.later.insert(work);
        }
    }

    /// Removes something.
    pub fn remove(&mut self, work: &Work) {
        self.first.remove(work);
        self.later.remove(work);
    }

    /// All of it, in the order in which it is looked at.
    pub fn iter(&self) -> impl Iterator<Item = &Work> {
        self.first.iter().chain(&self.later)
    }

    /// Whether nothing has to be looked at.
    pub fn is_empty(&self) -> bool {
        self.first.is_empty() && self.later.is_empty()
    }
}

/// What failed.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    failed: BTreeMap<Work, Failure>,
}

#[derive(Clone, Copy, Debug)]
struct Failure {
    times: u32,
    next: Instant,
}

/// How long to wait after so many failures before the last one.
pub fn pause(times: u32) -> Duration {
    FIRST.saturating_mul(1 << times.min(16)).min(LONGEST)
}

impl Queue {
    /// Whether something may be tried now.
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

    /// What failed and may be tried again.
    pub fn due(&self, now: Instant) -> impl Iterator<Item = &Work> {
        self.failed.iter().filter(move |(_, failure)| failure.next <= now).map(|(work, _)| work)
    }

    /// When something that failed may be tried again: the earliest time after `now`.
    pub fn next(&self, now: Instant) -> Option<Instant> {
        self.failed.values().map(|failure| failure.next).filter(|next| *next > now).min()
    }

    /// How many things failed last time.
    pub fn len(&self) -> usize {
        self.failed.len()
    }

    /// Whether nothing failed last time.
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
