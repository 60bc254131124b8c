//! Whether the other end of a connection is still there.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use socket2::{SockRef, TcpKeepalive};

/// How long a connection is silent before the kernel asks whether the other end is still there.
const KEEPALIVE_AFTER: Duration = Duration::from_secs(60);

/// The time from one such question to the next.
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(15);

/// How many of them stay without an answer before the connection ends.
const KEEPALIVE_RETRIES: u32 = 4;

/// Lets the kernel end a connection whose other end is gone without a word: after two minutes.
/// Connections that a listening socket accepts take it over.
///
/// # Errors
/// When the socket is no TCP socket, or is closed.
pub(crate) fn set_keepalive(socket: &impl AsFd) -> io::Result<()> {
    let keepalive = TcpKeepalive::new()
        .with_time(KEEPALIVE_AFTER)
        .with_interval(KEEPALIVE_INTERVAL)
        .with_retries(KEEPALIVE_RETRIES);
    SockRef::from(socket).set_tcp_keepalive(&keepalive)
}
