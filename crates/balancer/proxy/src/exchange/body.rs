//! The body of an answer on its way to a client.

use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::HeaderName;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

use super::attempt::Reached;
use super::record::Record;
use crate::deadline::Deadline;
use crate::fields::remove_no_trailers;
use crate::phase::ExchangeGuard;
use crate::request_body::BodyError;
use crate::upstream::Received;

/// The body of an answer.
#[derive(Debug)]
pub(crate) struct AnswerBody {
    source: AnswerSource,
    /// The guard of the exchange, which lasts as long as its body.
    exchange: Option<ExchangeGuard>,
    /// The record of the request, which is counted and logged when the body has ended.
    record: Option<Record>,
}

#[derive(Debug)]
enum AnswerSource {
    /// The whole body is in memory.
    Whole(Option<Bytes>),
    /// A target sends the body.
    Target(Box<TargetBody>),
}

#[derive(Debug)]
struct TargetBody {
    incoming: Incoming,
    reached: Reached,
    deadline: Rc<Deadline>,
    silence: Duration,
    /// The fields that the answer's `Connection` names.
    nominated: Vec<HeaderName>,
    /// Whether the end of a body of unknown length was received.
    is_over: bool,
}

impl AnswerBody {
    /// Returns a body that is completely in memory.
    pub(super) fn whole(text: impl Into<Bytes>) -> Self {
        let text = text.into();
        let source = AnswerSource::Whole((!text.is_empty()).then_some(text));
        Self { source, exchange: None, record: None }
    }

    /// Returns a body that a target sends.
    pub(super) fn of_target(
        received: Received,
        mut reached: Reached,
        deadline: Rc<Deadline>,
        silence: Duration,
        nominated: Vec<HeaderName>,
    ) -> Self {
        let incoming = match received {
            Received::Whole(body) => {
                reached.give_back();
                return Self::whole(body);
            }
            Received::Incoming(incoming) => incoming,
        };
        let body = TargetBody { incoming, reached, deadline, silence, nominated, is_over: false };
        Self { source: AnswerSource::Target(Box::new(body)), exchange: None, record: None }
    }

    /// Makes the exchange last until this body is sent.
    pub(super) fn hold(&mut self, exchange: ExchangeGuard) {
        self.exchange = Some(exchange);
    }

    /// Makes the record end with this body.
    pub(super) fn keep(&mut self, mut record: Record) {
        if self.is_end_stream() {
            record.complete();
        }
        self.record = Some(record);
    }

    fn poll_source(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match &mut self.source {
            AnswerSource::Whole(text) => Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
            AnswerSource::Target(body) => body.poll(cx),
        }
    }
}

impl TargetBody {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let mut polled = Pin::new(&mut self.incoming).poll_frame(cx);
        if polled.is_pending() {
            self.reached.poll(cx);
            polled = Pin::new(&mut self.incoming).poll_frame(cx);
        }
        match polled {
            Poll::Pending => {
                if self.deadline.poll(cx).is_ready() {
                    return Poll::Ready(Some(Err(BodyError::Silent)));
                }
                if !self.deadline.is_set() {
                    self.deadline.set(self.silence);
                }
                Poll::Pending
            }
            Poll::Ready(frame) => {
                self.deadline.clear();
                self.is_over = match &frame {
                    None => true,
                    Some(frame) => frame.as_ref().is_ok_and(Frame::is_trailers),
                };
                let frame = frame.map(|frame| frame.map_err(|_| BodyError::Broken));
                Poll::Ready(frame.map(|frame| frame.map(|frame| self.without_no_trailers(frame))))
            }
        }
    }
}

impl TargetBody {
    /// Removes from trailers the fields that may not be trailers. Other frames stay as they are.
    fn without_no_trailers(&self, frame: Frame<Bytes>) -> Frame<Bytes> {
        match frame.into_trailers() {
            Err(frame) => frame,
            Ok(mut trailers) => {
                remove_no_trailers(&mut trailers, &self.nominated);
                Frame::trailers(trailers)
            }
        }
    }
}

impl Drop for TargetBody {
    fn drop(&mut self) {
        if self.is_over || self.incoming.is_end_stream() {
            self.reached.give_back();
        }
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let polled = self.poll_source(cx);
        let is_end = self.is_end_stream();
        let Some(record) = &mut self.record else { return polled };
        match &polled {
            Poll::Pending => record.wait(),
            Poll::Ready(Some(Ok(frame))) => {
                record.send(frame.data_ref().map_or(0, Bytes::len));
                if is_end {
                    record.complete();
                }
            }
            Poll::Ready(Some(Err(error))) => record.break_off(*error),
            Poll::Ready(None) => record.complete(),
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        match &self.source {
            AnswerSource::Whole(text) => text.is_none(),
            AnswerSource::Target(body) => body.incoming.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            AnswerSource::Whole(text) => {
                SizeHint::with_exact(text.as_ref().map_or(0, |text| text.len() as u64))
            }
            AnswerSource::Target(body) => body.incoming.size_hint(),
        }
    }
}
