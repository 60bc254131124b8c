//! Idle connections to targets, kept for further requests.
//!
//! Each worker has a pool of its own, so that no lock is taken. The connection that was given back
//! last is taken first; the others age and are closed.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use uturn_lb::config::Keepalive;

use super::http1::Http1;
use super::http2::Http2;

/// The time between two searches for connections that have been idle for too long.
pub(crate) const SWEEP: Duration = Duration::from_secs(1);

/// The properties that a connection has to share with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) target: SocketAddr,
    /// The source address of the connection.
    pub(crate) source: Source,
}

/// The source address that a target sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    /// The client's address.
    Client(IpAddr),
    /// The load balancer's address.
    Own(IpAddr),
}

/// The idle connections of a worker.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    http1: RefCell<BTreeMap<Key, Vec<Idle>>>,
    http2: RefCell<BTreeMap<Key, Http2>>,
}

#[derive(Debug)]
struct Idle {
    connection: Http1,
    until: Instant,
}

impl Pool {
    /// Takes an idle connection that the target has not closed.
    pub(crate) fn take(&self, key: &Key) -> Option<Http1> {
        loop {
            let mut idle = self.http1.borrow_mut().get_mut(key)?.pop()?;
            if idle.connection.is_ready() {
                return Some(idle.connection);
            }
        }
    }

    /// Keeps a connection for further requests, if it is ready and there is room.
    pub(crate) fn give(&self, key: Key, connection: Http1, keepalive: &Keepalive) {
        if keepalive.connections == 0 {
            return;
        }
        let Some(connection) = connection.into_ready() else { return };
        let mut all = self.http1.borrow_mut();
        let idle = all.entry(key).or_default();
        if idle.len() < keepalive.connections {
            idle.push(Idle { connection, until: Instant::now() + keepalive.idle });
        }
    }

    /// Returns an open HTTP/2 connection, which other requests may be using too.
    pub(crate) fn shared(&self, key: &Key) -> Option<Http2> {
        let mut all = self.http2.borrow_mut();
        let connection = all.get(key)?;
        if connection.is_ready() {
            return Some(connection.clone());
        }
        all.remove(key);
        None
    }

    /// Shares an HTTP/2 connection with other requests.
    pub(crate) fn share(&self, key: Key, connection: Http2) {
        self.http2.borrow_mut().insert(key, connection);
    }

    /// Closes all idle connections, so that their descriptors are free.
    pub(crate) fn close_idle(&self) {
        self.http1.borrow_mut().clear();
    }

    /// Closes connections that have been idle for too long, at every [`SWEEP`].
    pub(crate) async fn run(&self) {
        loop {
            tokio::time::sleep(SWEEP).await;
            self.sweep(Instant::now());
        }
    }

    fn sweep(&self, now: Instant) {
        self.http1.borrow_mut().retain(|_, idle| {
            idle.retain_mut(|idle| idle.until > now && idle.connection.is_ready());
            !idle.is_empty()
        });
        self.http2.borrow_mut().retain(|_, connection| connection.is_ready());
    }
}
