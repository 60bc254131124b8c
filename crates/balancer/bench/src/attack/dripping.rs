//! Clients that send or read a byte at a time.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::{Attackers, ending};
use crate::ports::HTTP;

/// The time from one byte to the next.
const EVERY: Duration = Duration::from_secs(1);

/// The receive buffer of a client that reads little or nothing: about this many unread bytes.
pub(super) const NARROW: usize = 4096;

/// A request for a large answer.
pub(super) const LARGE: &[u8] = b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n";

/// Sends a beginning, and then a part once a second until the other end answers or closes.
pub(super) async fn drip(
    mut stream: TcpStream,
    beginning: &[u8],
    part: &[u8],
) -> io::Result<String> {
    stream.write_all(beginning).await?;
    loop {
        match timeout(EVERY, stream.readable()).await {
            Ok(ready) => {
                ready?;
                return Ok(ending::of(&mut stream).await);
            }
            Err(_) => stream.write_all(part).await?,
        }
    }
}

/// Asks for a large answer and reads a byte of it once a second.
pub(super) async fn read(attackers: &Attackers) -> io::Result<String> {
    let mut stream = attackers.hold(HTTP, Some(NARROW)).await?;
    stream.write_all(LARGE).await?;
    let mut byte = [0];
    loop {
        match stream.read(&mut byte).await? {
            0 => return Ok("cut".to_owned()),
            _ => sleep(EVERY).await,
        }
    }
}
