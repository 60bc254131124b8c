//! What all threads of the process share.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use uturn_lb::event::Event;

use crate::access_log::AccessLog;
use crate::by_client::{ByClient, Counted};
use crate::descriptors::Descriptors;
use crate::local_error::LocalErrors;

/// Takes events, from many threads.
pub type Observer = Arc<dyn Fn(&Event) + Send + Sync>;

/// Which events an observer takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// What changes: it serves, a target is alive or dead, a target is left alone.
    Changes,
    /// Every step of every connection as well.
    Connections,
}

/// What a client may have of connections, of which so many are free of so many: [`SHARE`] for each
/// that is free, but none of the last quarter if it has [`FEW`].
///
/// So nobody who takes all that can be had keeps out those who have few. The first rule divides what
/// there is among those who want much (switches divide their memory so; the literature calls it dynamic
/// thresholds), and the second holds while what was taken first has not ended yet.
fn share_of(free: usize, all: usize) -> usize {
    let reserve = all / 4;
    let few = (reserve / 8).clamp(1, FEW);
    (SHARE * free.saturating_sub(reserve)).max(few)
}

/// How many connections a client may have for each that is free.
const SHARE: usize = 2;

/// How many connections are few, where there are hundreds.
const FEW: usize = 8;

/// The process.
pub(crate) struct Process {
    observer: Observer,
    detail: Detail,
    /// Counts connections from clients.
    connections: AtomicU64,
    /// The connections from clients that are open.
    open: AtomicUsize,
    /// The most that may be.
    most: usize,
    /// Requests that share a connection with one that is under way already: each may need a
    /// connection to a target of its own.
    streams: AtomicUsize,
    /// The most connections and such requests that descriptors suffice for.
    pairs: usize,
    /// What each client has of connections, and of such requests.
    by_client: Arc<ByClient>,
    streams_by_client: Arc<ByClient>,
    pub(crate) access_log: AccessLog,
    /// How many descriptors there are, and for what.
    pub(crate) descriptors: Descriptors,
    /// What this machine failed at.
    pub(crate) local_errors: LocalErrors,
    /// Whether it accepts nothing more and ends what is open.
    pub(crate) is_draining: AtomicBool,
    /// Changes of the configuration that succeeded, and that failed.
    pub(crate) reloads: [AtomicU64; 2],
    /// Whether the latest change failed.
    pub(crate) has_failed_reload: AtomicBool,
}

impl Process {
    pub(crate) fn new(
        observer: Observer,
        detail: Detail,
        most_connections: Option<usize>,
        access_log: AccessLog,
    ) -> Self {
        let descriptors = Descriptors::of_process();
        let most = most_connections.unwrap_or_else(|| descriptors.connections());
        Self::with_room(observer, detail, most, descriptors.pairs().max(most), access_log)
    }

    /// One with room for so many connections from clients, and for so many requests that each may
    /// need a connection to a target.
    fn with_room(
        observer: Observer,
        detail: Detail,
        most: usize,
        pairs: usize,
        access_log: AccessLog,
    ) -> Self {
        Self {
            observer,
            detail,
            connections: AtomicU64::new(0),
            open: AtomicUsize::new(0),
            most,
            streams: AtomicUsize::new(0),
            pairs,
            by_client: Arc::default(),
            streams_by_client: Arc::default(),
            access_log,
            descriptors: Descriptors::of_process(),
            local_errors: LocalErrors::new(),
            is_draining: AtomicBool::new(false),
            reloads: Default::default(),
            has_failed_reload: AtomicBool::new(false),
        }
    }

    /// Counts a change of the configuration.
    pub(crate) fn count_reload(&self, succeeded: bool) {
        self.reloads[usize::from(!succeeded)].fetch_add(1, Ordering::Relaxed);
        self.has_failed_reload.store(!succeeded, Ordering::Relaxed);
    }

    /// Reports a change.
    pub(crate) fn report_change(&self, event: &Event) {
        (self.observer)(event);
    }

    /// Reports a step of a connection, if the observer takes those.
    pub(crate) fn report(&self, event: impl FnOnce() -> Event) {
        if self.detail == Detail::Connections {
            (self.observer)(&event());
        }
    }

    /// Takes a connection of a client in. Returns `None` if there are as many as there may be, or if
    /// the client has its share.
    pub(crate) fn admit(self: &Arc<Self>, client: IpAddr) -> Option<(Admission, Counted)> {
        let open = self.open.fetch_add(1, Ordering::Relaxed);
        let number = self.connections.fetch_add(1, Ordering::Relaxed);
        // Dropped at once if it is one too many.
        let admission = Admission { process: Arc::clone(self), number };
        let share = self.share(client)?;
        (open < self.most).then_some((admission, share))
    }

    /// Takes in a request of a client whose connection has others under way. Returns `None` if the
    /// client has its share.
    pub(crate) fn admit_stream(self: &Arc<Self>, client: IpAddr) -> Option<Stream> {
        self.streams.fetch_add(1, Ordering::Relaxed);
        // Dropped at once if it is one too many.
        let mut stream = Stream { process: Arc::clone(self), share: None };
        // Such requests leave half of all to connections.
        let used = self.streams.load(Ordering::Relaxed);
        let free = (self.pairs / 2).saturating_sub(used).min(self.free_pairs());
        if free == 0 {
            return None;
        }
        let most = share_of(free, self.pairs / 2);
        stream.share = Some(self.streams_by_client.count(client, most)?);
        Some(stream)
    }

    /// Counts a connection that was taken in as a client's. Returns `None` if the client has its
    /// share already.
    pub(crate) fn share(&self, client: IpAddr) -> Option<Counted> {
        let open = self.open.load(Ordering::Relaxed);
        let free = self.most.saturating_sub(open).min(self.free_pairs());
        self.by_client.count(client, share_of(free, self.most))
    }

    /// For how many more connections and requests descriptors suffice.
    fn free_pairs(&self) -> usize {
        let used = self.open.load(Ordering::Relaxed) + self.streams.load(Ordering::Relaxed);
        self.pairs.saturating_sub(used)
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process").field("open", &self.open).finish_non_exhaustive()
    }
}

/// A connection that counts as open until this is dropped.
#[derive(Debug)]
pub(crate) struct Admission {
    process: Arc<Process>,
    /// Counts the connections of the process.
    pub(crate) number: u64,
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.process.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A request that counts beside its connection until this is dropped.
#[derive(Debug)]
pub(crate) struct Stream {
    process: Arc<Process>,
    share: Option<Counted>,
}

impl Drop for Stream {
    fn drop(&mut self) {
        drop(self.share.take());
        self.process.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(most: usize) -> Arc<Process> {
        let log = AccessLog::start().unwrap();
        Arc::new(Process::with_room(Arc::new(|_| {}), Detail::Changes, most, most, log))
    }

    fn client(number: u8) -> IpAddr {
        [192, 0, 2, number].into()
    }

    #[test]
    fn who_has_few_gets_in_whatever_others_take() {
        for greedy in [1, 2, 5, 12] {
            let process = process(420);
            let mut held = Vec::new();
            for _ in 0..1000 {
                held.extend((0..greedy).filter_map(|number| process.admit(client(number))));
            }
            let newcomer: Vec<_> = (0..5).filter_map(|_| process.admit(client(200))).collect();
            assert_eq!(newcomer.len(), 5, "beside {greedy} with {}", held.len());
            drop((held, newcomer));
            assert_eq!(process.open.load(Ordering::Relaxed), 0);
        }
    }

    #[test]
    fn who_came_first_leaves_some_to_those_who_come_later() {
        let process = process(420);
        let take = |number: u8| -> Vec<_> {
            (0..1000).map_while(|_| process.admit(client(number))).collect()
        };
        let held: Vec<_> = (0..10).map(take).collect();
        let counts: Vec<_> = held.iter().map(Vec::len).collect();
        assert!(counts[0].abs_diff(210) <= 2, "two thirds of three quarters: {counts:?}");
        assert!(counts.iter().all(|count| *count >= FEW), "{counts:?}");
        // Those who came first leave, and take part as others do.
        drop(held);
        assert!(take(20).len().abs_diff(210) <= 2);
    }

    #[test]
    fn the_last_connection_goes_to_who_has_none() {
        let process = process(2);
        let held = process.admit(client(1)).unwrap();
        let other = process.admit(client(2)).unwrap();
        assert!(process.admit(client(3)).is_none());
        drop((held, other));
    }

    #[test]
    fn requests_that_share_a_connection_count_as_connections_do() {
        let process = process(420);
        let connection = process.admit(client(1)).unwrap();
        let streams: Vec<_> = (0..1000).map_while(|_| process.admit_stream(client(1))).collect();
        assert!(streams.len().abs_diff(106) <= 2, "{}", streams.len());
        let others: Vec<_> = (0..40).filter_map(|_| process.admit(client(2))).collect();
        assert_eq!(others.len(), 40);
        drop((connection, streams, others));
        assert_eq!(process.streams.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn where_descriptors_suffice_no_number_of_connections_limits_requests() {
        let log = AccessLog::start().unwrap();
        let observer: Observer = Arc::new(|_| {});
        let process = Process::with_room(observer, Detail::Changes, 4, 10_000, log);
        let process = Arc::new(process);
        let connection = process.admit(client(1)).unwrap();
        let streams: Vec<_> = (0..1000).map_while(|_| process.admit_stream(client(1))).collect();
        assert_eq!(streams.len(), 1000);
        let more: Vec<_> = (0..10).filter_map(|_| process.admit(client(1))).collect();
        assert!(!more.is_empty());
        drop((connection, streams, more));
    }
}
