//! Enforces the limits of a listener: open connections, connections per second, requests per
//! second.

use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use uturn_lb::config::Limits;

use crate::by_client::{ByClient, Counted};
use crate::lock::locked;
use crate::metrics::Refusal;

/// The counters of a listener's limits.
#[derive(Debug)]
pub(crate) struct Gate {
    open: AtomicUsize,
    by_client: Arc<ByClient>,
    connections: Mutex<Rate>,
    requests: Mutex<Rate>,
}

/// The reason why a connection was not admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    /// The listener has as many connections as it may have.
    Connections,
    /// The client has as many connections as it may have.
    Client,
    /// The rate of new connections is exceeded.
    Rate,
}

impl From<Full> for Refusal {
    fn from(full: Full) -> Self {
        match full {
            Full::Connections => Self::ListenerLimit,
            Full::Client => Self::ClientLimit,
            Full::Rate => Self::Rate,
        }
    }
}

/// An admitted connection. It counts until this is dropped.
#[derive(Debug)]
pub(crate) struct Entered {
    gate: Arc<Gate>,
    /// The count of the client's connections, if they are limited.
    counted: Option<Counted>,
}

impl Gate {
    pub(crate) fn new() -> Self {
        let now = Instant::now();
        Self {
            open: AtomicUsize::new(0),
            by_client: Arc::default(),
            connections: Mutex::new(Rate::new(now)),
            requests: Mutex::new(Rate::new(now)),
        }
    }

    /// Admits a connection.
    ///
    /// # Errors
    /// When a limit is reached.
    pub(crate) fn enter(
        self: &Arc<Self>,
        client: IpAddr,
        limits: &Limits,
    ) -> Result<Entered, Full> {
        let open = self.open.fetch_add(1, Ordering::Relaxed);
        // Dropping it undoes the count if a limit is reached.
        let mut entered = Entered { gate: Arc::clone(self), counted: None };
        if limits.connections.is_some_and(|most| open >= most) {
            return Err(Full::Connections);
        }
        if let Some(most) = limits.connections_per_client {
            entered.counted = Some(self.by_client.count(client, most).ok_or(Full::Client)?);
        }
        let is_too_fast = |rate| !locked(&self.connections).take(rate, Instant::now());
        if limits.connections_per_second.is_some_and(is_too_fast) {
            return Err(Full::Rate);
        }
        Ok(entered)
    }

    /// Returns whether another request may be served now.
    pub(crate) fn takes_request(&self, limits: &Limits) -> bool {
        let take = |rate| locked(&self.requests).take(rate, Instant::now());
        limits.requests_per_second.is_none_or(take)
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        self.gate.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A token bucket that fills at a rate and holds the tokens of one second.
#[derive(Debug)]
struct Rate {
    /// The tokens in the bucket; `None`, which means full, until the first is taken.
    tokens: Option<f64>,
    at: Instant,
}

impl Rate {
    fn new(now: Instant) -> Self {
        Self { tokens: None, at: now }
    }

    /// Takes a token, if there is one, and returns whether there was.
    fn take(&mut self, per_second: u32, now: Instant) -> bool {
        let most = f64::from(per_second);
        let gained = now.saturating_duration_since(self.at).as_secs_f64() * most;
        let tokens = self.tokens.map_or(most, |tokens| (tokens + gained).min(most));
        self.at = now;
        let has_one = tokens >= 1.0;
        self.tokens = Some(if has_one { tokens - 1.0 } else { tokens });
        has_one
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn limits_hold_and_what_ends_makes_room() {
        let gate = Arc::new(Gate::new());
        let limits =
            Limits { connections: Some(3), connections_per_client: Some(2), ..Limits::default() };
        let [first, second] = ["10.1.1.10", "10.1.1.11"].map(|ip| ip.parse().unwrap());
        let a = gate.enter(first, &limits).unwrap();
        let _b = gate.enter(first, &limits).unwrap();
        assert_eq!(gate.enter(first, &limits).unwrap_err(), Full::Client);
        let _c = gate.enter(second, &limits).unwrap();
        assert_eq!(gate.enter(second, &limits).unwrap_err(), Full::Connections);
        drop(a);
        gate.enter(first, &limits).unwrap();
    }

    #[test]
    fn a_rate_allows_a_seconds_worth_and_then_as_many_as_time_brings() {
        let begin = Instant::now();
        let mut rate = Rate::new(begin);
        let mut taken = |at: Duration| (0..100).filter(|_| rate.take(10, begin + at)).count();
        assert_eq!(taken(Duration::ZERO), 10);
        assert_eq!(taken(Duration::from_millis(500)), 5);
        assert_eq!(taken(Duration::from_secs(60)), 10);
    }
}
