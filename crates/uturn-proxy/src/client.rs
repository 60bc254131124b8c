//! Connections from clients.

mod accept;
mod counted;
mod linger;
mod serve;
mod stream;
mod tunnel;
mod watched;

pub(crate) use accept::Accepted;
