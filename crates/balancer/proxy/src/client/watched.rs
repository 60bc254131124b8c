//! A stream that reports to the phase of its connection what is read and written, and notices when
//! its client goes away.
//!
//! hyper reads no further while it waits for an answer: bytes that the client sent after its
//! request belong to the next one, and a client may have closed its side. So nothing would notice
//! that the client is gone. But hyper flushes whenever it is woken, and when a check of the client
//! is due, the phase wakes it.

use std::io::{self, IoSlice};
use std::os::fd::{AsFd, BorrowedFd};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

use crate::exchange::Client;
use crate::joined;
use crate::pass_on::pass_on;
use crate::peer::Peer;
use crate::phase::Phase;
use crate::prefixed::Prefixed;

/// A stream over a TCP connection.
pub(super) trait Connected {
    /// Returns the TCP connection's socket.
    fn socket(&self) -> BorrowedFd<'_>;
}

impl Connected for TcpStream {
    fn socket(&self) -> BorrowedFd<'_> {
        self.as_fd()
    }
}

impl<S: Connected> Connected for Prefixed<S> {
    fn socket(&self) -> BorrowedFd<'_> {
        self.get_ref().socket()
    }
}

impl<S: Connected> Connected for TlsStream<S> {
    fn socket(&self) -> BorrowedFd<'_> {
        self.get_ref().0.socket()
    }
}

/// A client's stream.
#[derive(Debug)]
pub(super) struct Watched<S> {
    stream: S,
    phase: Rc<Phase>,
    /// Whether a client that has closed its side counts as gone.
    aborts_on_close: bool,
}

impl<S> Watched<S> {
    pub(super) fn new(stream: S, client: &Client) -> Self {
        let aborts_on_close = client.listener.settings.abort_on_close;
        Self { stream, phase: Rc::clone(&client.phase), aborts_on_close }
    }

    pub(super) fn into_inner(self) -> S {
        self.stream
    }
}

impl<S: Connected> Watched<S> {
    /// Fails if the client no longer waits for an answer.
    fn look(&self) -> io::Result<()> {
        match Peer::of(&self.stream.socket()) {
            Peer::Gone => Err(io::ErrorKind::ConnectionReset.into()),
            Peer::HasClosed if self.aborts_on_close => Err(io::ErrorKind::ConnectionAborted.into()),
            Peer::HasClosed | Peer::There => Ok(()),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Watched<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if buffer.filled().len() > before {
            self.phase.read();
        }
        result
    }
}

impl<S: AsyncWrite + Connected + Unpin> AsyncWrite for Watched<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.phase.wrote(result.is_pending());
        result
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = joined::poll_write(&mut self.stream, cx, parts);
        self.phase.wrote(result.is_pending());
        result
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.phase.is_look_due() {
            self.look()?;
        }
        let result = Pin::new(&mut self.stream).poll_flush(cx);
        self.phase.wrote(result.is_pending());
        result
    }

    pass_on!(is_write_vectored, poll_shutdown);
}
