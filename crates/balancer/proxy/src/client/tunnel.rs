//! Forwards bytes between a client and a target unchanged.

use std::io;
use std::rc::Rc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, copy_bidirectional};
use tokio::net::TcpStream;

use super::counted::Counted;
use crate::peer;
use crate::worker::Worker;

/// Forwards bytes in both directions until both sides have ended.
///
/// # Errors
/// When either connection breaks, or when the client neither sends nor takes a byte for longer than
/// `idle`.
pub(super) async fn pass<S>(
    worker: &Worker,
    client: &mut Counted<S>,
    target: &mut TcpStream,
    idle: Duration,
) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    // The client's side has inherited it from the listening socket.
    peer::set_keepalive(target)?;
    let deadline = worker.deadlines.add();
    let counts = Rc::clone(&client.counts);
    let copied = copy_bidirectional(client, target);
    match deadline.limit_idle(idle, || counts.sum(), copied).await {
        Ok(ended) => ended.map(|_| ()),
        Err(_) => {
            let why = format!("no byte in either direction for {idle:?}");
            Err(io::Error::new(io::ErrorKind::TimedOut, why))
        }
    }
}
