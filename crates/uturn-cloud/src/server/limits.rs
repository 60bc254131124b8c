//! What a server grants its clients, so that slow ones leave room for others.

use std::time::Duration;

/// What a server grants its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at a time; more wait until one ends.
    pub connections: usize,
    /// How long a client may take to send a request's head, which also ends idle connections.
    pub head: Duration,
    /// How long a client may take to send a body.
    pub body: Duration,
    /// How long a client may take to receive an answer, once it does not take all of it at once.
    pub answer: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 512,
            head: Duration::from_secs(60),
            body: Duration::from_secs(60),
            answer: Duration::from_secs(60),
        }
    }
}
