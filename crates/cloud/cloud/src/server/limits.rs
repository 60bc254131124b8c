//! The limits of a server, which keep slow clients from using up its resources.

use std::time::Duration;

/// The limits of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most connections at a time. Further ones wait until one ends; a connection without an
    /// active request may be closed for them.
    pub connections: usize,
    /// The most connections at a time from one address, or from one IPv6 network of 64 bits.
    /// Further ones are closed.
    pub connections_per_address: usize,
    /// The time in which a client must send the head of its first request.
    pub first_head: Duration,
    /// The time in which a client must send the head of any request; also ends idle connections.
    pub head: Duration,
    /// The time in which a client must send a body.
    pub body: Duration,
    /// The longest time that a large body waits until others were read.
    pub body_turn: Duration,
    /// The time in which a client must receive an answer, once it does not take all of it at once.
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
