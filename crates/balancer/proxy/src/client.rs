//! Connections from clients.

mod accept;
mod counted;
mod floods;
mod linger;
mod serve;
mod stream;
mod tunnel;
mod watched;

pub(crate) use accept::Accepted;

/// The size of the buffer for a connection's first bytes. Most requests and TLS greetings arrive in
/// one read.
const FIRST_READ: usize = 4096;
