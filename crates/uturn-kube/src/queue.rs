//! What failed is tried again later, each time after twice the pause.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;
use uturn_operator::event::Event;

/// The first pause.
const FIRST: Duration = Duration::from_secs(1);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(300);

/// What failed, by a name.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    failed: BTreeMap<String, Failure>,
}

#[derive(Clone, Debug)]
struct Failure {
    times: u32,
    next: Instant,
    events: Vec<Event>,
}

impl Queue {
    /// Whether something may be tried now.
    pub fn is_due(&self, name: &str, now: Instant) -> bool {
        self.failed.get(name).is_none_or(|failure| failure.next <= now)
    }

    /// Notes a failure, with what users are told of it.
    pub fn failed(&mut self, name: &str, now: Instant, events: Vec<Event>) {
        let first = Failure { times: 0, next: now, events: Vec::new() };
        let failure = self.failed.entry(name.to_owned()).or_insert(first);
        failure.events = events;
        let pause = FIRST.saturating_mul(1 << failure.times.min(16)).min(LONGEST);
        failure.times += 1;
        failure.next = now + pause;
    }

    /// Notes a success.
    pub fn succeeded(&mut self, name: &str) {
        self.failed.remove(name);
    }

    /// What users were told of a failure.
    pub fn events(&self, name: &str) -> &[Event] {
        self.failed.get(name).map_or(&[], |failure| &failure.events)
    }

    /// Forgets failures of what has nothing to be done any more.
    pub fn keep(&mut self, names: &BTreeSet<String>) {
        self.failed.retain(|name, _| names.contains(name));
    }

    /// When something that failed may be tried again: the earliest time.
    pub fn next(&self) -> Option<Instant> {
        self.failed.values().map(|failure| failure.next).min()
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
        let mut pauses = Vec::new();
        for _ in 0..11 {
            queue.failed("a", now, Vec::new());
            assert!(!queue.is_due("a", now) && queue.is_due("b", now));
            let next = queue.next().unwrap();
            pauses.push((next - now).as_secs());
            assert!(queue.is_due("a", next));
            now = next;
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        queue.succeeded("a");
        assert!(queue.is_empty() && queue.next().is_none());
    }
}
