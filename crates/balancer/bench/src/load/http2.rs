//! A connection of HTTP/2 that has one request at a time.

use std::future::Future;
use std::io;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper::client::conn::http2::{self, SendRequest};
use hyper::rt::Executor;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::task::spawn_local;

use super::connection::Stream;

/// A connection of HTTP/2.
pub(super) struct Http2 {
    sender: SendRequest<Empty<Bytes>>,
    uri: String,
}

/// An executor that runs a connection's tasks on the current thread.
#[derive(Clone, Copy, Debug)]
struct Here;

impl<F: Future + 'static> Executor<F> for Here {
    fn execute(&self, future: F) {
        spawn_local(async move {
            future.await;
        });
    }
}

impl Http2 {
    /// Begins an HTTP/2 connection whose requests ask for this path.
    ///
    /// # Errors
    /// When the handshake fails.
    pub(super) async fn begin(stream: Stream, path: &str) -> io::Result<Self> {
        let (sender, connection) =
            http2::handshake(Here, TokioIo::new(stream)).await.map_err(io::Error::other)?;
        // A connection that fails also fails its requests, which report the error.
        spawn_local(async move {
            let _ = connection.await;
        });
        Ok(Self { sender, uri: format!("https://bench.example{path}") })
    }

    /// Sends the request and reads the answer to its end.
    ///
    /// # Errors
    /// When the answer is not `200`, or the connection ends before it does.
    pub(super) async fn ask(&mut self) -> io::Result<()> {
        let request = Request::get(&self.uri).body(Empty::new()).map_err(io::Error::other)?;
        let mut answer = self.sender.send_request(request).await.map_err(io::Error::other)?;
        while let Some(frame) = answer.frame().await {
            frame.map_err(io::Error::other)?;
        }
        match answer.status() {
            StatusCode::OK => Ok(()),
            status => Err(io::Error::other(format!("answered {status}"))),
        }
    }
}
