//! The end of a connection that the load balancer closes while the client may still be sending.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy, sink};
use tokio::time::timeout;

/// The longest time until the client closes its side.
const LIMIT: Duration = Duration::from_secs(2);

/// The most bytes that are read meanwhile.
const AT_MOST: u64 = 1 << 20;

/// Closes this side, and reads until the client has closed its own (RFC 9112, section 9.6).
///
/// A socket that is closed with unread bytes, or receives bytes afterwards, sends a reset, and a
/// client may then lose an answer that it has not read yet.
pub(super) async fn linger(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    if stream.shutdown().await.is_ok() {
        let _ = timeout(LIMIT, copy(&mut stream.take(AT_MOST), &mut sink())).await;
    }
}
