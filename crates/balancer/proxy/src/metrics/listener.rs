//! The metrics of a listener.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use super::histogram::{Counts, Histogram};

/// The statuses that the load balancer itself answers with. One more counter is for any other.
pub(crate) const OWN_STATUSES: [u16; 17] =
    [301, 302, 303, 307, 308, 400, 404, 405, 408, 413, 429, 431, 500, 501, 502, 503, 504];

/// The classes of statuses; `none` is for requests without an answer.
pub(crate) const CLASSES: [&str; 6] = ["none", "1xx", "2xx", "3xx", "4xx", "5xx"];

/// The metrics of a listener, for as long as it listens.
#[derive(Debug)]
pub(crate) struct ListenerMetrics {
    shards: Box<[Shard]>,
    /// The number of workers that accept its connections.
    accepting: AtomicUsize,
}

/// The counters of one worker. They are aligned so that workers do not share cache lines;
/// processors fetch lines in pairs.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Shard {
    accepted: AtomicU64,
    closed: AtomicU64,
    failed: AtomicU64,
    refused: [AtomicU64; Refusal::ALL.len()],
    requests: [[AtomicU64; CLASSES.len()]; AnsweredBy::ALL.len()],
    own: [AtomicU64; OWN_STATUSES.len() + 1],
    cut: [AtomicU64; Cut::ALL.len()],
    received: AtomicU64,
    sent: AtomicU64,
    first_byte: Histogram,
    total: Histogram,
}

/// The counts of all workers of a listener.
#[derive(Debug, Default)]
pub(crate) struct Sum {
    pub(crate) accepted: u64,
    pub(crate) closed: u64,
    pub(crate) failed: u64,
    pub(crate) refused: [u64; Refusal::ALL.len()],
    pub(crate) requests: [[u64; CLASSES.len()]; AnsweredBy::ALL.len()],
    pub(crate) own: [u64; OWN_STATUSES.len() + 1],
    pub(crate) cut: [u64; Cut::ALL.len()],
    pub(crate) received: u64,
    pub(crate) sent: u64,
    pub(crate) first_byte: Counts,
    pub(crate) total: Counts,
}

/// The reason why a connection was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The process has as many connections as it may have.
    ProcessLimit,
    /// The free descriptors are kept for targets, the admin address and health checks.
    Descriptors,
    /// The listener has as many connections as it may have.
    ListenerLimit,
    /// The client has as many connections as it may have.
    ClientLimit,
    /// The listener's rate of new connections is exceeded.
    Rate,
    /// No security group admits the client.
    SecurityGroup,
    /// The PROXY header was broken, late or missing.
    ProxyHeader,
}

impl Refusal {
    pub(crate) const ALL: [Self; 7] = [
        Self::ProcessLimit,
        Self::Descriptors,
        Self::ListenerLimit,
        Self::ClientLimit,
        Self::Rate,
        Self::SecurityGroup,
        Self::ProxyHeader,
    ];

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::ProcessLimit => "process_limit",
            Self::Descriptors => "descriptors",
            Self::ListenerLimit => "listener_limit",
            Self::ClientLimit => "client_limit",
            Self::Rate => "rate",
            Self::SecurityGroup => "security_group",
            Self::ProxyHeader => "proxy_header",
        }
    }
}

/// The side that answered a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnsweredBy {
    /// A target; also counted when the client's connection ended before an answer.
    Target,
    /// The load balancer itself.
    LoadBalancer,
}

impl AnsweredBy {
    pub(crate) const ALL: [Self; 2] = [Self::Target, Self::LoadBalancer];

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Target => "target",
            Self::LoadBalancer => "load_balancer",
        }
    }
}

/// The side that ended an answer before it was complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The client, or the end of its connection.
    Client,
    /// The target.
    Target,
}

impl Cut {
    pub(crate) const ALL: [Self; 2] = [Self::Client, Self::Target];

    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Target => "target",
        }
    }
}

impl ListenerMetrics {
    /// Returns metrics with zero counts for this many workers.
    pub(crate) fn new(workers: usize) -> Self {
        let shards = (0..workers.max(1)).map(|_| Shard::default()).collect();
        Self { shards, accepting: AtomicUsize::new(0) }
    }

    /// Returns the counters of a worker.
    pub(crate) fn of_worker(&self, worker: usize) -> &Shard {
        &self.shards[worker % self.shards.len()]
    }

    /// Notes that a worker accepts connections from now on.
    pub(crate) fn begin_accepting(&self) {
        self.accepting.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes that a worker accepts no more connections.
    pub(crate) fn end_accepting(&self) {
        self.accepting.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns whether every worker accepts connections.
    pub(crate) fn is_accepting(&self) -> bool {
        self.accepting.load(Ordering::Relaxed) >= self.shards.len()
    }

    /// Returns the sums of all workers' counts.
    pub(crate) fn sum(&self) -> Sum {
        let mut sum = Sum::default();
        for shard in &self.shards {
            shard.add_to(&mut sum);
        }
        sum
    }
}

impl Shard {
    /// Counts an accepted connection.
    pub(crate) fn accept(&self) {
        increment(&self.accepted);
    }

    /// Counts a connection that ended.
    pub(crate) fn close(&self) {
        increment(&self.closed);
    }

    /// Counts a refused connection.
    pub(crate) fn refuse(&self, refusal: Refusal) {
        increment(&self.refused[refusal as usize]);
    }

    /// Counts a connection that ended with an error.
    pub(crate) fn fail(&self) {
        increment(&self.failed);
    }

    /// Counts a request with its answer's status, or with `None` if it got no answer.
    pub(crate) fn answer(&self, by: AnsweredBy, status: Option<u16>) {
        // Every status has a class, as the parser of answers accepts 100 to 999.
        let class = status.map_or(0, |status| usize::from(status / 100).min(CLASSES.len() - 1));
        increment(&self.requests[by as usize][class]);
        if let (AnsweredBy::LoadBalancer, Some(status)) = (by, status) {
            let place = OWN_STATUSES.iter().position(|own| *own == status);
            increment(&self.own[place.unwrap_or(OWN_STATUSES.len())]);
        }
    }

    /// Counts an answer that ended before it was complete.
    pub(crate) fn cut(&self, by: Cut) {
        increment(&self.cut[by as usize]);
    }

    /// Adds bytes of bodies, or of connections on layer 4, that were received and sent.
    pub(crate) fn pass(&self, received: u64, sent: u64) {
        if received > 0 {
            self.received.fetch_add(received, Ordering::Relaxed);
        }
        if sent > 0 {
            self.sent.fetch_add(sent, Ordering::Relaxed);
        }
    }

    /// Records the times from a request's beginning until the answer's head arrived, and until the
    /// answer was forwarded.
    pub(crate) fn time(&self, first_byte: Duration, total: Duration) {
        self.first_byte.count(first_byte);
        self.total.count(total);
    }

    fn add_to(&self, sum: &mut Sum) {
        sum.closed += self.closed.load(Ordering::Relaxed);
        sum.accepted += self.accepted.load(Ordering::Relaxed);
        sum.failed += self.failed.load(Ordering::Relaxed);
        sum.received += self.received.load(Ordering::Relaxed);
        sum.sent += self.sent.load(Ordering::Relaxed);
        add_all(&self.refused, &mut sum.refused);
        add_all(&self.own, &mut sum.own);
        add_all(&self.cut, &mut sum.cut);
        for (counts, sums) in self.requests.iter().zip(&mut sum.requests) {
            add_all(counts, sums);
        }
        self.first_byte.add_to(&mut sum.first_byte);
        self.total.add_to(&mut sum.total);
    }
}

fn increment(count: &AtomicU64) {
    count.fetch_add(1, Ordering::Relaxed);
}

fn add_all(counts: &[AtomicU64], sums: &mut [u64]) {
    for (count, sum) in counts.iter().zip(sums) {
        *sum += count.load(Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_of_workers_are_added_up() {
        let metrics = ListenerMetrics::new(2);
        for worker in [0, 1, 1] {
            let shard = metrics.of_worker(worker);
            shard.accept();
            shard.answer(AnsweredBy::LoadBalancer, Some(503));
            shard.answer(AnsweredBy::LoadBalancer, Some(599));
            shard.answer(AnsweredBy::Target, None);
            shard.pass(1, 2);
        }
        let sum = metrics.sum();
        assert_eq!((sum.accepted, sum.received, sum.sent), (3, 3, 6));
        assert_eq!(sum.requests, [[3, 0, 0, 0, 0, 0], [0, 0, 0, 0, 0, 6]]);
        let of_503 = OWN_STATUSES.iter().position(|status| *status == 503).unwrap();
        assert_eq!((sum.own[of_503], sum.own[OWN_STATUSES.len()]), (3, 3));
    }

    #[test]
    fn a_listener_accepts_when_all_workers_do() {
        let metrics = ListenerMetrics::new(2);
        metrics.begin_accepting();
        assert!(!metrics.is_accepting());
        metrics.begin_accepting();
        assert!(metrics.is_accepting());
        metrics.end_accepting();
        assert!(!metrics.is_accepting());
    }

    #[test]
    fn labels_are_in_the_order_of_the_counts() {
        for (place, refusal) in Refusal::ALL.into_iter().enumerate() {
            assert_eq!(refusal as usize, place);
        }
        assert_eq!(AnsweredBy::ALL.map(|by| by as usize), [0, 1]);
        assert_eq!(Cut::ALL.map(|by| by as usize), [0, 1]);
    }
}
