//! The body of a request on its way to a target.

use std::cell::{Cell, RefCell};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{HeaderMap, HeaderName};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use thiserror::Error;

use crate::deadline::Deadline;
use crate::fields::remove_no_trailers;
use crate::pace::Pace;
use crate::phase::Phase;

/// The bytes of a body that are kept so that the request can be sent again. A longer body cannot be
/// sent again.
const KEPT_AT_MOST: usize = 64 * 1024;

/// The reason why a body ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(crate) enum BodyError {
    /// The sender closed its connection or broke its protocol.
    #[error("the body ended early")]
    Broken,
    /// The sender was silent for too long.
    #[error("the body's next part did not come in time")]
    Silent,
    /// The client sends the body more slowly than the listener allows.
    #[error("the body comes too slowly")]
    Slow,
    /// The body is larger than the listener allows.
    #[error("the body is too large")]
    TooLarge,
}

/// The body of a request. It is cheap to give to one target after another.
#[derive(Debug)]
pub(crate) struct RequestBody {
    /// The source of the body; `None` for a request without a body.
    source: Option<Rc<RefCell<Source>>>,
    /// The number of kept parts that were sent.
    parts: usize,
    /// The number of bytes that were sent.
    sent: u64,
    /// Whether the trailers were sent.
    has_sent_trailers: bool,
}

/// The body as it comes from the client, shared by all attempts to send it.
#[derive(Debug)]
struct Source {
    incoming: Incoming,
    /// The length that the client announced.
    length: Option<u64>,
    kept: Vec<Bytes>,
    kept_bytes: usize,
    trailers: Option<HeaderMap>,
    /// The fields that `Connection` names. They are not forwarded as trailers either.
    nominated: Vec<HeaderName>,
    /// Whether parts that were read are kept.
    keeps: bool,
    /// Whether a part was read that is no longer kept.
    is_lost: bool,
    received: Rc<Cell<u64>>,
    /// The phase of the client's connection.
    phase: Rc<Phase>,
    limit: u64,
    /// The deadline for the answer. Each part of the body postpones it.
    deadline: Rc<Deadline>,
    silence: Duration,
    pace: Pace,
    /// Whether the next part is awaited from the client.
    waits_for_client: bool,
    /// Whether the whole body was read.
    is_read: bool,
    failed: Option<BodyError>,
}

/// The limits of a request's body, and what is told about its progress.
#[derive(Debug)]
pub(crate) struct BodyLimits {
    pub(crate) bytes: Option<u64>,
    pub(crate) silence: Duration,
    /// The lowest rate that the body may have until its answer begins, in bytes per second; 0 for
    /// no limit.
    pub(crate) bytes_per_second: u64,
    pub(crate) deadline: Rc<Deadline>,
    /// The counter of the body's bytes.
    pub(crate) received: Rc<Cell<u64>>,
    /// The phase of the client's connection, which is told if the body is not read to its end.
    pub(crate) phase: Rc<Phase>,
    /// The fields that `Connection` names.
    pub(crate) nominated: Vec<HeaderName>,
}

impl RequestBody {
    /// Returns the body of a request that has none.
    pub(crate) fn none() -> Self {
        Self { source: None, parts: 0, sent: 0, has_sent_trailers: false }
    }

    /// Returns the body that a client sends. Its beginning is kept so that the request can be sent
    /// again.
    pub(crate) fn new(incoming: Incoming, limits: BodyLimits) -> Self {
        let source = Source {
            length: incoming.size_hint().exact(),
            incoming,
            kept: Vec::new(),
            kept_bytes: 0,
            trailers: None,
            nominated: limits.nominated,
            keeps: true,
            is_lost: false,
            received: limits.received,
            phase: limits.phase,
            limit: limits.bytes.unwrap_or(u64::MAX),
            deadline: limits.deadline,
            silence: limits.silence,
            pace: Pace::new(limits.bytes_per_second, limits.silence),
            waits_for_client: false,
            is_read: false,
            failed: None,
        };
        Self { source: Some(Rc::new(RefCell::new(source))), ..Self::none() }
    }

    /// Returns whether the request has no body.
    pub(crate) fn is_none(&self) -> bool {
        self.source.is_none()
    }

    /// Returns the same body for another attempt.
    pub(crate) fn again(&self) -> Self {
        Self { source: self.source.clone(), ..Self::none() }
    }

    /// Returns whether another attempt could send the whole body.
    pub(crate) fn is_whole(&self) -> bool {
        self.source.as_ref().is_none_or(|source| !source.borrow().is_lost)
    }

    /// Returns why reading the body from the client failed, if it did.
    pub(crate) fn failure(&self) -> Option<BodyError> {
        self.source.as_ref().and_then(|source| source.borrow().failed)
    }

    /// Returns why the client is late, if the next part is awaited from the client.
    pub(crate) fn delay(&self) -> Option<BodyError> {
        let source = self.source.as_ref()?.borrow();
        let delay = if source.pace.is_behind() { BodyError::Slow } else { BodyError::Silent };
        source.waits_for_client.then_some(delay)
    }
}

impl Source {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if let Some(error) = self.failed {
            return Poll::Ready(Some(Err(error)));
        }
        let polled = Pin::new(&mut self.incoming).poll_frame(cx);
        let has_waited = std::mem::replace(&mut self.waits_for_client, polled.is_pending());
        let polled = match polled {
            Poll::Pending => {
                if !has_waited && self.deadline.is_set() {
                    self.deadline.set(self.pace.wait(Instant::now()));
                }
                return Poll::Pending;
            }
            Poll::Ready(None) => {
                self.is_read = true;
                None
            }
            Poll::Ready(Some(Err(_))) => Some(Err(BodyError::Broken)),
            Poll::Ready(Some(Ok(frame))) => Some(self.receive(frame)),
        };
        if self.deadline.is_set() {
            self.deadline.set(self.silence);
        }
        if let Some(Err(error)) = &polled {
            self.failed = Some(*error);
        }
        Poll::Ready(polled)
    }

    fn receive(&mut self, frame: Frame<Bytes>) -> Result<Frame<Bytes>, BodyError> {
        let frame = match frame.into_trailers() {
            Err(frame) => frame,
            Ok(mut trailers) => {
                remove_no_trailers(&mut trailers, &self.nominated);
                self.trailers = Some(trailers.clone());
                return Ok(Frame::trailers(trailers));
            }
        };
        let Some(part) = frame.data_ref() else { return Ok(frame) };
        self.pace.receive(part.len(), Instant::now);
        self.received.set(self.received.get() + part.len() as u64);
        if self.received.get() > self.limit {
            return Err(BodyError::TooLarge);
        }
        self.keeps &= self.kept_bytes + part.len() <= KEPT_AT_MOST;
        if self.keeps {
            self.kept_bytes += part.len();
            self.kept.push(part.clone());
        } else {
            self.is_lost = true;
            self.kept = Vec::new();
        }
        Ok(frame)
    }
}

impl Drop for Source {
    fn drop(&mut self) {
        if !self.is_read && !self.incoming.is_end_stream() {
            self.phase.leave_unread();
        }
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = &mut *self;
        let Some(source) = &this.source else { return Poll::Ready(None) };
        let mut source = source.borrow_mut();
        if let Some(part) = source.kept.get(this.parts) {
            this.parts += 1;
            this.sent += part.len() as u64;
            return Poll::Ready(Some(Ok(Frame::data(part.clone()))));
        }
        if let Some(trailers) = &source.trailers {
            let is_next = !std::mem::replace(&mut this.has_sent_trailers, true);
            return Poll::Ready(is_next.then(|| Ok(Frame::trailers(trailers.clone()))));
        }
        let polled = source.poll(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled {
            match frame.data_ref() {
                Some(part) => {
                    this.parts = source.kept.len();
                    this.sent += part.len() as u64;
                }
                None => this.has_sent_trailers = true,
            }
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        let Some(source) = &self.source else { return true };
        let source = source.borrow();
        self.parts >= source.kept.len()
            && (source.trailers.is_none() || self.has_sent_trailers)
            && source.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            None => SizeHint::with_exact(0),
            Some(source) => match source.borrow().length {
                Some(length) => SizeHint::with_exact(length.saturating_sub(self.sent)),
                None => SizeHint::default(),
            },
        }
    }
}
