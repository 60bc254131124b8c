//! What a server grants its clients, so that slow ones leave room for others.

use std::time::Duration;

/// What a server grants its clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at a time; more wait until one ends, and one that has not asked for anything
    /// makes room for them.
    pub connections: usize,
    /// Connections at a time from one address, or from one IPv6 network of 64 bits; more are closed.
    pub connections_per_address: usize,
    /// How long a client may take to send the head of its first request.
    pub first_head: Duration,
    /// How long a client may take to send a request's head, which also ends idle connections.
    pub head: Duration,
    /// How long a client may take to send a body.
    pub body: Duration,
    /// How long a large body may wait until others were read.
    pub body_turn: Duration,
    /// How long a client may take to receive an answer, once it does not take all of it at once.
    pub answer: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 512,
            connections_per_address: 256,
            first_head: Duration::from_secs(10),
            head: Duration::from_secs(60),
            body: Duration::from_secs(60),
            body_turn: Duration::from_secs(10),
            answer: Duration::from_secs(60),
        }
    }
}
