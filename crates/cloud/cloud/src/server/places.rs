//! The open connections. Each network has a limit, and when all connections are taken, one without
//! an active request is closed for a client that waits.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

/// The time that a connection may be idle between requests while another client waits.
const IDLE: Duration = Duration::from_secs(30);

/// The connections that are served.
#[derive(Debug)]
pub(super) struct Places {
    of_network: usize,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    clients: BTreeMap<u64, Arc<Client>>,
    networks: HashMap<IpAddr, usize>,
}

/// A client that has a connection.
#[derive(Debug)]
pub(super) struct Client {
    /// The client's address, or that of its network: see
    /// [`client_network`](uturn_model::client_network).
    pub(super) network: IpAddr,
    doing: Mutex<Doing>,
    leaves: Notify,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Doing {
    /// The client has not sent the head of a request.
    Silent,
    /// A request of the client is read or answered.
    Busy,
    /// The client has had its answer since then.
    Idle(Instant),
}

/// A connection, which counts as open until this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    places: Arc<Places>,
    number: u64,
    pub(super) client: Arc<Client>,
}

impl Places {
    /// Returns an empty set of connections, with this limit for each network.
    pub(super) fn new(of_network: usize) -> Self {
        Self { of_network, open: Mutex::default() }
    }

    /// Returns whether a network has all connections that it may have.
    pub(super) fn is_full(&self, network: IpAddr) -> bool {
        locked(&self.open).networks.get(&network).is_some_and(|open| *open >= self.of_network)
    }

    /// Adds a connection.
    pub(super) fn enter(self: &Arc<Self>, network: IpAddr) -> Place {
        let doing = Mutex::new(Doing::Silent);
        let client = Arc::new(Client { network, doing, leaves: Notify::new() });
        let mut open = locked(&self.open);
        let number = open.next;
        open.next += 1;
        open.clients.insert(number, Arc::clone(&client));
        *open.networks.entry(network).or_default() += 1;
        Place { places: Arc::clone(self), number, client }
    }

    /// Closes a connection without an active request, of the network that has the most: the oldest
    /// one that never had a request, else the one that has been idle the longest, if that is at
    /// least [`IDLE`]. A shorter limit would close connections whose next request is on the way, in
    /// favour of clients that only open connections.
    pub(super) fn make_room(&self) {
        let open = locked(&self.open);
        let has = |client: &Client| open.networks.get(&client.network).copied().unwrap_or(0);
        let silent = open.clients.iter().filter(|(_, client)| client.is_silent());
        let silent = silent.max_by_key(|(number, client)| (has(client), Reverse(**number)));
        let idle = || {
            let idle = open.clients.values().filter_map(|client| {
                let since = client.idle_since()?;
                (since.elapsed() >= IDLE).then_some((since, client))
            });
            idle.max_by_key(|(since, client)| (has(client), Reverse(*since)))
        };
        let leaving = silent.map(|(_, client)| client).or_else(|| idle().map(|(_, client)| client));
        if let Some(client) = leaving {
            client.leaves.notify_one();
        }
    }
}

impl Client {
    /// Notes that the head of a request has come.
    pub(super) fn begins(&self) {
        *locked(&self.doing) = Doing::Busy;
    }

    /// Notes that the request is answered.
    pub(super) fn ends(&self) {
        *locked(&self.doing) = Doing::Idle(Instant::now());
    }

    /// Returns when the client has to leave: it sent no head within the time, or another client
    /// waits.
    pub(super) async fn leaves(&self, first_head: Duration) {
        let is_late = async {
            sleep(first_head).await;
            if !self.is_silent() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = self.leaves.notified() => {}
            () = is_late => {}
        }
    }

    fn is_silent(&self) -> bool {
        *locked(&self.doing) == Doing::Silent
    }

    fn idle_since(&self) -> Option<Instant> {
        match *locked(&self.doing) {
            Doing::Idle(since) => Some(since),
            Doing::Silent | Doing::Busy => None,
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = locked(&self.places.open);
        open.clients.remove(&self.number);
        if let Some(count) = open.networks.get_mut(&self.client.network) {
            *count -= 1;
            if *count == 0 {
                open.networks.remove(&self.client.network);
            }
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No code that panics runs while one of the mutexes is locked.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;
    use uturn_model::client_network;

    use super::*;

    fn network(address: &str) -> IpAddr {
        client_network(address.parse().unwrap())
    }

    #[test]
    fn an_ipv6_client_has_one_network() {
        let places = Arc::new(Places::new(2));
        let first = places.enter(network("2001:db8::1"));
        let second = places.enter(network("2001:db8::2"));
        assert!(places.is_full(network("2001:db8::3")));
        assert!(!places.is_full(network("2001:db8:0:1::3")));
        drop(first);
        assert!(!places.is_full(network("2001:db8::3")));
        drop(second);
        assert!(
            locked(&places.open).networks.is_empty() && locked(&places.open).clients.is_empty()
        );
    }

    async fn is_told_to_leave(place: &Place) -> bool {
        let leaves = place.client.leaves(Duration::from_secs(3600));
        tokio::time::timeout(Duration::from_millis(1), leaves).await.is_ok()
    }

    #[tokio::test(start_paused = true)]
    async fn who_asks_for_nothing_makes_room() {
        let places = Arc::new(Places::new(9));
        let enter = |address: &str| places.enter(network(address));
        let (busy, idle, silent) = (enter("10.0.0.1"), enter("10.0.0.2"), enter("10.0.0.3"));
        busy.client.begins();
        idle.client.begins();
        idle.client.ends();
        places.make_room();
        assert!(is_told_to_leave(&silent).await);
        drop(silent);
        places.make_room();
        assert!(!is_told_to_leave(&idle).await, "it may send its next request");
        advance(IDLE).await;
        places.make_room();
        assert!(is_told_to_leave(&idle).await);
        drop(idle);
        advance(IDLE * 10).await;
        places.make_room();
        assert!(!is_told_to_leave(&busy).await);
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_the_most_makes_room_first() {
        let places = Arc::new(Places::new(9));
        let enter = |address: &str| places.enter(network(address));
        let newcomer = enter("10.0.0.1");
        let many = [enter("10.0.0.2"), enter("10.0.0.2"), enter("10.0.0.2")];
        places.make_room();
        assert!(is_told_to_leave(&many[0]).await, "the oldest of three");
        assert!(!is_told_to_leave(&newcomer).await, "older, and the only one");
        for place in &many {
            place.client.begins();
        }
        newcomer.client.begins();
        newcomer.client.ends();
        advance(IDLE).await;
        many[1].client.ends();
        advance(IDLE / 2).await;
        many[2].client.ends();
        advance(IDLE).await;
        places.make_room();
        assert!(is_told_to_leave(&many[1]).await, "idle for a shorter time, and one of three");
    }

    #[tokio::test(start_paused = true)]
    async fn the_first_head_has_to_come_soon() {
        let places = Arc::new(Places::new(9));
        let (silent, asking) = (places.enter(network("10.0.0.1")), places.enter(network("::1")));
        asking.client.begins();
        let limit = Duration::from_secs(10);
        silent.client.leaves(limit).await;
        let longer = tokio::time::timeout(limit * 100, asking.client.leaves(limit)).await;
        assert!(longer.is_err());
    }
}
