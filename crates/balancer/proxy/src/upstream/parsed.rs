//! Exchanges with a target that hyper carries out.
//!
//! hyper's connection is a future that something has to poll. Usually that is a task of its own,
//! which costs a switch between tasks for each request and each answer. Here the future travels
//! with the connection: the exchange that uses it polls it.

use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, Connection, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::SendError;
use crate::joined;
use crate::pass_on::pass_on;
use crate::prefixed::Prefixed;
use crate::request_body::RequestBody;

/// Answers are small whose length in bytes is below this.
const SMALL: u64 = 4096;

/// A connection.
#[derive(Debug)]
pub(crate) struct Parsed {
    send: SendRequest<RequestBody>,
    connection: Connection<TokioIo<TargetStream>, RequestBody>,
    /// Whether the connection's future is still to be polled.
    is_alive: bool,
    /// Whether the request was sent before hyper sends it.
    is_sent: Rc<Cell<bool>>,
    /// Whether the exchange could have done without hyper, from what is known of it now.
    is_small: bool,
}

impl Parsed {
    /// Of a stream on which nothing was sent.
    pub(super) async fn new(stream: TcpStream) -> Result<Self, hyper::Error> {
        Self::handshake(TargetStream::new(Bytes::new(), stream, false)).await
    }

    /// Of a stream on which the request was sent and this much of the answer received. hyper is
    /// given the request too, since the answer's meaning depends on it.
    pub(super) async fn of_answer(
        stream: TcpStream,
        received: Bytes,
    ) -> Result<Self, hyper::Error> {
        Self::handshake(TargetStream::new(received, stream, true)).await
    }

    async fn handshake(stream: TargetStream) -> Result<Self, hyper::Error> {
        let is_sent = Rc::clone(&stream.is_sent);
        let (send, connection) = http1::Builder::new().handshake(TokioIo::new(stream)).await?;
        Ok(Self { send, connection, is_alive: true, is_sent, is_small: false })
    }

    /// Sends a request and returns the answer's head. Its body arrives while [`Self::poll`] is
    /// called.
    ///
    /// # Errors
    /// When the target closes the connection or does not speak HTTP.
    pub(super) async fn send(
        &mut self,
        request: &Request<RequestBody>,
    ) -> Result<Response<Incoming>, SendError> {
        let answer = self.send.try_send_request(super::copy_of(request));
        let mut answer = pin!(answer);
        let answered = poll_fn(|cx| {
            if self.is_alive {
                self.is_alive = Pin::new(&mut self.connection).poll(cx).is_pending();
            }
            // The answer comes out of the connection that was polled just now: nothing else will
            // have to wake this task for it.
            answer.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        });
        let answered = answered.await;
        // What hyper writes next is another request.
        let was_sent = self.is_sent.replace(false);
        if let Ok(response) = &answered {
            let length = response.body().size_hint().exact();
            self.is_small = request.body().is_none() && length.is_some_and(|length| length < SMALL);
        }
        answered.map_err(|mut failed| {
            let is_unsent = failed.take_message().is_some() && !was_sent;
            SendError::new(is_unsent, &failed.into_error())
        })
    }

    /// Moves bytes in both directions as far as they go.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) {
        if self.is_alive {
            self.is_alive = Pin::new(&mut self.connection).poll(cx).is_pending();
        }
    }

    /// Whether it can take another request at once. Notices that the target has closed it.
    pub(super) fn is_ready(&mut self) -> bool {
        self.poll(&mut Context::from_waker(Waker::noop()));
        self.is_alive && self.send.is_ready()
    }

    /// Whether the next request is better sent without hyper.
    pub(super) fn is_small(&self) -> bool {
        self.is_small
    }

    /// The stream of a connection that is ready.
    pub(super) fn into_idle(self) -> Option<TcpStream> {
        let parts = self.connection.into_parts();
        let stream = parts.io.into_inner();
        let is_idle = parts.read_buf.is_empty() && !stream.is_blocked;
        let (unread, stream) = stream.stream.into_parts();
        (is_idle && unread.is_empty()).then_some(stream)
    }

    /// The stream, and what was read from it already.
    pub(super) fn into_stream(self) -> (TcpStream, Bytes) {
        let parts = self.connection.into_parts();
        let (unread, stream) = parts.io.into_inner().stream.into_parts();
        (stream, joined::join(parts.read_buf, &unread))
    }
}

/// A target's stream as hyper sees it.
#[derive(Debug)]
struct TargetStream {
    stream: Prefixed<TcpStream>,
    /// The request was sent before: what hyper writes is dropped.
    is_sent: Rc<Cell<bool>>,
    /// hyper may read: it takes an answer that comes before its request for an error.
    is_readable: bool,
    /// hyper has tried to read too early.
    waiting: Option<Waker>,
    /// Whether something is still to be written.
    is_blocked: bool,
}

impl TargetStream {
    fn new(received: Bytes, stream: TcpStream, is_sent: bool) -> Self {
        let stream = Prefixed::new(received, stream);
        let (is_readable, is_sent) = (!is_sent, Rc::new(Cell::new(is_sent)));
        Self { stream, is_sent, is_readable, waiting: None, is_blocked: false }
    }

    /// Drops what hyper writes of a request that was sent before.
    fn write_nothing(&mut self, length: usize) -> Poll<io::Result<usize>> {
        self.is_readable = true;
        if let Some(waker) = self.waiting.take() {
            waker.wake();
        }
        Poll::Ready(Ok(length))
    }
}

impl AsyncRead for TargetStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.is_readable {
            self.waiting = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for TargetStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.is_sent.get() {
            return self.write_nothing(bytes.len());
        }
        let result = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.is_blocked = result.is_pending();
        result
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        if self.is_sent.get() {
            return self.write_nothing(parts.iter().map(|part| part.len()).sum());
        }
        let result = joined::poll_write(&mut self.stream, cx, parts);
        self.is_blocked = result.is_pending();
        result
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    pass_on!(poll_flush, poll_shutdown);
}
