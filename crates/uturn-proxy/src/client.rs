//! Connections from clients.

mod accept;
mod counted;
mod serve;
mod stream;
mod watched;

pub(crate) use accept::Accepted;
