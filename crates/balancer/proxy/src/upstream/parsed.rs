//! Connections to targets on which hyper carries out the exchanges.
//!
//! hyper's connection is a future that something has to poll. Usually a task of its own does that,
//! which costs a task switch for each request and each answer. Here the future is part of the
//! connection, and the exchange that uses the connection polls it.

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

/// The length of a body in bytes below which an answer is small.
const SMALL: u64 = 4096;

/// A connection that hyper reads and writes.
#[derive(Debug)]
pub(crate) struct Parsed {
    send: SendRequest<RequestBody>,
    connection: Connection<TokioIo<TargetStream>, RequestBody>,
    /// Whether the connection's future is still to be polled.
    is_alive: bool,
    /// Whether the request was already sent without hyper.
    is_sent: Rc<Cell<bool>>,
    /// Whether the last exchange could have done without hyper: no request body, and a small
    /// answer.
    is_small: bool,
}

impl Parsed {
    /// Uses a stream on which nothing was sent.
    pub(super) async fn new(stream: TcpStream) -> Result<Self, hyper::Error> {
        Self::handshake(TargetStream::new(Bytes::new(), stream, false)).await
    }

    /// Uses a stream on which the request was already sent and `received` is the beginning of the
    /// answer. hyper is given the request too, since the answer's meaning depends on it.
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
            // Polling the connection just now delivers the answer; nothing else has to wake this
            // task for it.
            answer.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        });
        let answered = answered.await;
        // hyper writes another request next.
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

    /// Moves bytes in both directions as far as possible.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) {
        if self.is_alive {
            self.is_alive = Pin::new(&mut self.connection).poll(cx).is_pending();
        }
    }

    /// Returns whether another request can be sent at once. Notices that the target has closed the
    /// connection.
    pub(super) fn is_ready(&mut self) -> bool {
        self.poll(&mut Context::from_waker(Waker::noop()));
        self.is_alive && self.send.is_ready()
    }

    /// Returns whether the next request is better sent without hyper.
    pub(super) fn is_small(&self) -> bool {
        self.is_small
    }

    /// Returns the stream of a connection that is ready. Returns `None` if bytes are unread or
    /// unsent.
    pub(super) fn into_idle(self) -> Option<TcpStream> {
        let parts = self.connection.into_parts();
        let stream = parts.io.into_inner();
        let is_idle = parts.read_buf.is_empty() && !stream.is_blocked;
        let (unread, stream) = stream.stream.into_parts();
        (is_idle && unread.is_empty()).then_some(stream)
    }

    /// Returns the stream, and the bytes that were read from it already.
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
    /// Whether the request was already sent. What hyper writes is then dropped.
    is_sent: Rc<Cell<bool>>,
    /// Whether hyper may read. hyper takes an answer that comes before its request for an error.
    is_readable: bool,
    /// The waker of a read that came too early.
    waiting: Option<Waker>,
    /// Whether bytes are still to be written.
    is_blocked: bool,
}

impl TargetStream {
    fn new(received: Bytes, stream: TcpStream, is_sent: bool) -> Self {
        let stream = Prefixed::new(received, stream);
        let (is_readable, is_sent) = (!is_sent, Rc::new(Cell::new(is_sent)));
        Self { stream, is_sent, is_readable, waiting: None, is_blocked: false }
    }

    /// Drops what hyper writes of a request that was already sent.
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
