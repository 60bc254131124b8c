//! A connection to a target that speaks HTTP/1.1.
//!
//! hyper's connection is a future, and moves bytes while it is polled. Usually a task of its own
//! polls it, which costs a switch between tasks for each request and each answer. Here the
//! exchange that uses the connection polls it, and the pool does when it takes an idle one out.

use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::task::{Context, Waker};

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, Connection, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::joined::Joined;
use crate::request_body::RequestBody;

/// A connection, idle or in use.
#[derive(Debug)]
pub(crate) struct Http1 {
    send: SendRequest<RequestBody>,
    connection: Connection<TokioIo<Joined>, RequestBody>,
    /// Whether the connection's future is still to be polled.
    is_alive: bool,
}

/// Why there is no answer.
#[derive(Debug)]
pub(crate) struct SendError {
    /// The request, if not a byte of it was sent.
    pub(crate) unsent: Option<Request<RequestBody>>,
    pub(crate) error: hyper::Error,
}

impl Http1 {
    pub(crate) async fn new(stream: TcpStream) -> Result<Box<Self>, hyper::Error> {
        let (send, connection) =
            http1::Builder::new().handshake(TokioIo::new(Joined(stream))).await?;
        Ok(Box::new(Self { send, connection, is_alive: true }))
    }

    /// Sends a request and returns the answer's head. Its body arrives while [`Self::poll`] is
    /// called.
    ///
    /// # Errors
    /// When the target closes the connection or does not speak HTTP.
    pub(crate) async fn send(
        &mut self,
        request: Request<RequestBody>,
    ) -> Result<Response<Incoming>, SendError> {
        let answer = self.send.try_send_request(request);
        let mut answer = pin!(answer);
        poll_fn(|cx| {
            if self.is_alive {
                self.is_alive = Pin::new(&mut self.connection).poll(cx).is_pending();
            }
            // The answer comes out of the connection that was polled just now: nothing else will
            // have to wake this task for it.
            answer.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        })
        .await
        .map_err(|mut failed| SendError {
            unsent: failed.take_message(),
            error: failed.into_error(),
        })
    }

    /// Moves bytes in both directions as far as they go.
    pub(crate) fn poll(&mut self, cx: &mut Context<'_>) {
        if self.is_alive {
            self.is_alive = Pin::new(&mut self.connection).poll(cx).is_pending();
        }
    }

    /// Whether it can take another request at once. Notices that the target has closed it.
    pub(crate) fn is_ready(&mut self) -> bool {
        self.poll(&mut Context::from_waker(Waker::noop()));
        self.is_alive && self.send.is_ready()
    }

    /// The stream, and what was read from it already, after the target switched protocols.
    pub(crate) fn into_stream(self) -> (TcpStream, Bytes) {
        let parts = self.connection.into_parts();
        (parts.io.into_inner().0, parts.read_buf)
    }
}
