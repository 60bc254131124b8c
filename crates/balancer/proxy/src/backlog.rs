//! Connections that the kernel has completed, but that were not accepted yet.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::task::Poll;

use tokio::net::{TcpListener, TcpStream};

/// Accepts such a connection, if there is one now.
pub(crate) async fn accept_waiting(socket: &TcpListener) -> Option<(TcpStream, SocketAddr)> {
    poll_fn(|cx| match socket.poll_accept(cx) {
        Poll::Ready(Ok(accepted)) => Poll::Ready(Some(accepted)),
        _ => Poll::Ready(None),
    })
    .await
}
