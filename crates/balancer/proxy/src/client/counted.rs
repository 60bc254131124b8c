//! A stream that counts its bytes, for connections that are forwarded unchanged.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::pass_on::pass_on;

/// A stream with the number of bytes that passed it.
#[derive(Debug)]
pub(super) struct Counted<S> {
    stream: S,
    pub(super) counts: Rc<Counts>,
}

/// The number of bytes that passed a stream.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) read: Cell<u64>,
    pub(super) written: Cell<u64>,
}

impl Counts {
    /// Returns the sum of both directions.
    pub(super) fn sum(&self) -> u64 {
        self.read.get() + self.written.get()
    }
}

impl<S> Counted<S> {
    pub(super) fn new(stream: S) -> Self {
        Self { stream, counts: Rc::default() }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Counted<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = Pin::new(&mut self.stream).poll_read(cx, buffer);
        let read = (buffer.filled().len() - before) as u64;
        self.counts.read.set(self.counts.read.get() + read);
        result
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Counted<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.stream).poll_write(cx, bytes);
        if let Poll::Ready(Ok(written)) = &result {
            self.counts.written.set(self.counts.written.get() + *written as u64);
        }
        result
    }

    pass_on!(poll_flush, poll_shutdown);
}
