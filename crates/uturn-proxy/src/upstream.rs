//! Connections to targets.

mod connect;
mod http1;
mod http2;
mod pool;

pub(crate) use connect::{ConnectError, check_source, connect};
pub(crate) use http1::{Http1, SendError};
pub(crate) use http2::Http2;
pub(crate) use pool::{Key, Pool, Source};
