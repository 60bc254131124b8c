//! Connections to targets that wait for further requests.
//!
//! Each worker has a pool of its own, so that no lock is taken. The latest that was given back is
//! taken first; the others grow old and are closed.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use uturn_lb::config::Keepalive;

use super::http1::Http1;
use super::http2::Http2;

/// How often connections are looked for that have been idle for too long.
pub(crate) const SWEEP: Duration = Duration::from_secs(1);

/// What a connection has to have in common with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) target: SocketAddr,
    /// The address that the target sees.
    pub(crate) source: Source,
}

/// The address that a target sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    /// The client's.
    Client(IpAddr),
    /// The load balancer's.
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
    /// An idle connection that the target has not closed.
    pub(crate) fn take(&self, key: &Key) -> Option<Http1> {
        loop {
            let mut idle = self.http1.borrow_mut().get_mut(key)?.pop()?;
            if idle.connection.is_ready() {
                return Some(idle.connection);
            }
        }
    }

    /// Keeps a connection for the next request, if it can take one.
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

    /// An open HTTP/2 connection, which others may be using too.
    pub(crate) fn shared(&self, key: &Key) -> Option<Http2> {
        let mut all = self.http2.borrow_mut();
        let connection = all.get(key)?;
        if connection.is_ready() {
            return Some(connection.clone());
        }
        all.remove(key);
        None
    }

    /// Lets others use an HTTP/2 connection.
    pub(crate) fn share(&self, key: Key, connection: Http2) {
        self.http2.borrow_mut().insert(key, connection);
    }

    /// Closes all that are idle, so that their descriptors can serve others.
    pub(crate) fn close_idle(&self) {
        self.http1.borrow_mut().clear();
    }

    /// Closes connections that have been idle for too long, again and again.
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
