//! The state that all threads of the process share.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use uturn_lb::event::Event;

use crate::access_log::AccessLog;
use crate::by_client::{ByClient, Counted};
use crate::descriptors::Descriptors;
use crate::local_error::LocalErrors;

/// A function that receives events, from many threads.
pub type Observer = Arc<dyn Fn(&Event) + Send + Sync>;

/// The events that an observer receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Changes: the load balancer serves, a target is alive or dead, a target rests.
    Changes,
    /// Every step of every connection as well.
    Connections,
}

/// Returns how many connections a client may have when `free` of `all` connections are free:
/// [`SHARE`] for each free one, without counting the last quarter, but always [`FEW`].
///
/// So a client that takes all it can get does not keep out clients with few connections. The first
/// rule divides the connections among clients that want many (switches divide their memory so; the
/// literature calls it dynamic thresholds). The second rule holds while connections that were taken
/// earlier have not ended yet.
fn share_of(free: usize, all: usize) -> usize {
    let reserve = all / 4;
    let few = (reserve / 8).clamp(1, FEW);
    (SHARE * free.saturating_sub(reserve)).max(few)
}

/// The number of connections that a client may have for each free one.
const SHARE: usize = 2;

/// The number of connections that a client may always have, if there are hundreds in all.
const FEW: usize = 8;

/// The state of the process.
pub(crate) struct Process {
    observer: Observer,
    detail: Detail,
    /// The number of connections from clients so far.
    connections: AtomicU64,
    /// The number of open connections from clients.
    open: AtomicUsize,
    /// The most connections from clients that may be open.
    most: usize,
    /// The number of requests that share a connection with another one under way. Each may need a
    /// connection to a target of its own.
    streams: AtomicUsize,
    /// The most connections and such requests that descriptors suffice for.
    pairs: usize,
    /// The connections of each client, and below the requests that share a connection.
    by_client: Arc<ByClient>,
    streams_by_client: Arc<ByClient>,
    pub(crate) access_log: AccessLog,
    /// The limit of descriptors, and what is kept back for each purpose.
    pub(crate) descriptors: Descriptors,
    /// The errors of this machine's own.
    pub(crate) local_errors: LocalErrors,
    /// Whether the process accepts no more connections and lets open ones end.
    pub(crate) is_draining: AtomicBool,
    /// The number of configuration changes that succeeded, and of those that failed.
    pub(crate) reloads: [AtomicU64; 2],
    /// Whether the latest change of the configuration failed.
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

    /// Returns the state of a process with room for `most` connections from clients, and for
    /// `pairs` connections and requests that may each need a connection to a target.
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

    /// Reports a step of a connection, if the observer wants those.
    pub(crate) fn report(&self, event: impl FnOnce() -> Event) {
        if self.detail == Detail::Connections {
            (self.observer)(&event());
        }
    }

    /// Admits a client's connection. Returns `None` if the process has as many as it may have, or
    /// if the client has its share.
    pub(crate) fn admit(self: &Arc<Self>, client: IpAddr) -> Option<(Admission, Counted)> {
        let open = self.open.fetch_add(1, Ordering::Relaxed);
        let number = self.connections.fetch_add(1, Ordering::Relaxed);
        // Dropping it undoes the count if there is no room.
        let admission = Admission { process: Arc::clone(self), number };
        let share = self.share(client)?;
        (open < self.most).then_some((admission, share))
    }

    /// Admits a request of a client whose connection has other requests under way. Returns `None`
    /// if the client has its share.
    pub(crate) fn admit_stream(self: &Arc<Self>, client: IpAddr) -> Option<Stream> {
        self.streams.fetch_add(1, Ordering::Relaxed);
        // Dropping it undoes the count if there is no room.
        let mut stream = Stream { process: Arc::clone(self), share: None };
        // Such requests leave half of the pairs to connections.
        let used = self.streams.load(Ordering::Relaxed);
        let free = (self.pairs / 2).saturating_sub(used).min(self.free_pairs());
        if free == 0 {
            return None;
        }
        let most = share_of(free, self.pairs / 2);
        stream.share = Some(self.streams_by_client.count(client, most)?);
        Some(stream)
    }

    /// Counts an admitted connection as the client's. Returns `None` if the client already has its
    /// share.
    pub(crate) fn share(&self, client: IpAddr) -> Option<Counted> {
        let open = self.open.load(Ordering::Relaxed);
        let free = self.most.saturating_sub(open).min(self.free_pairs());
        self.by_client.count(client, share_of(free, self.most))
    }

    /// Returns for how many more connections and requests the descriptors suffice.
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
    /// The number of the connection within the process.
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
        // Once these clients have left, another one gets as large a share as the first had.
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
