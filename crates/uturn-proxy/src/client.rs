//! Connections from clients.

mod accept;
mod counted;
mod phase;
mod prefixed;
mod serve;
mod stream;
mod watched;

pub(crate) use accept::Accepted;
pub(crate) use phase::{ExchangeGuard, Phase};
