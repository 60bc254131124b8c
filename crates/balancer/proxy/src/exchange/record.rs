//! The record of a request, which is counted and logged when the answer has ended.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use http::{Method, Request, Version};

use super::service::Client;
use crate::access_log::{Entry, Head};
use crate::metrics::{AnsweredBy, Cut, Shard};
use crate::process::Stream;
use crate::request_body::BodyError;

/// The record of a request. Dropping it counts and logs the request.
#[derive(Debug)]
pub(crate) struct Record {
    client: Rc<Client>,
    /// The request's share, if other requests are under way on the client's connection.
    stream: Option<Stream>,
    began: Instant,
    protocol: &'static str,
    /// Whether the method is HEAD: the answer has no body, whatever its length says.
    is_head: bool,
    /// The head of the request for the access log, if that is on.
    head: Option<Head>,
    attempts: Cell<u32>,
    /// The target that was tried last.
    target: Cell<Option<SocketAddr>>,
    received: Rc<Cell<u64>>,
    answer: Option<Answer>,
    why: Option<String>,
}

/// An answer whose head has arrived.
#[derive(Debug)]
struct Answer {
    by: AnsweredBy,
    status: u16,
    first_byte: Duration,
    /// The number of bytes of the body so far.
    sent: u64,
    /// Whether the body took longer than the head.
    is_long: bool,
    end: End,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The client's connection ended first, unless another end is recorded.
    Open,
    Complete,
    /// The target broke off the answer.
    Broken,
}

impl Record {
    /// Begins the record of a request that has just come in.
    pub(super) fn begin<B>(client: &Rc<Client>, request: &Request<B>) -> Self {
        let is_logged = client.worker.process.access_log.is_on();
        Self {
            client: Rc::clone(client),
            stream: None,
            began: Instant::now(),
            protocol: name(request.version()),
            is_head: request.method() == Method::HEAD,
            head: is_logged.then(|| Head::of(request)),
            attempts: Cell::new(0),
            target: Cell::new(None),
            received: Rc::default(),
            answer: None,
            why: None,
        }
    }

    /// Counts the request as its client's if others are under way on its connection. Returns
    /// whether the client may have it.
    pub(super) fn take_share(&mut self) -> bool {
        let client = &self.client;
        if client.phase.exchanges() <= 1 {
            return true;
        }
        self.stream = client.worker.process.admit_stream(client.address.ip());
        self.stream.is_some()
    }

    /// Notes that the request is sent to a target.
    pub(super) fn attempt(&self, target: SocketAddr) {
        self.attempts.set(self.attempts.get() + 1);
        self.target.set(Some(target));
    }

    /// Returns the counter of the body's bytes.
    pub(super) fn received(&self) -> Rc<Cell<u64>> {
        Rc::clone(&self.received)
    }

    /// Notes why no target answered, or why the switched connection broke.
    pub(crate) fn explain(&mut self, why: &str) {
        if self.head.is_some() && !why.is_empty() {
            self.why = Some(why.to_owned());
        }
    }

    /// Notes that the answer's head has arrived.
    pub(super) fn answer(&mut self, by: AnsweredBy, status: u16) {
        let first_byte = self.began.elapsed();
        self.answer =
            Some(Answer { by, status, first_byte, sent: 0, is_long: false, end: End::Open });
        if self.is_head {
            self.complete();
        }
    }

    /// Notes that the next part of the answer is sent.
    pub(super) fn send(&mut self, bytes: usize) {
        if let Some(answer) = &mut self.answer {
            // An answer of one part that arrived with its head ends at the same time, which saves a
            // look at the clock.
            answer.is_long |= answer.sent > 0;
            answer.sent += bytes as u64;
        }
    }

    /// Notes that the next part of the answer has not arrived yet.
    pub(super) fn wait(&mut self) {
        if let Some(answer) = &mut self.answer {
            answer.is_long = true;
        }
    }

    /// Notes that the answer is complete.
    pub(super) fn complete(&mut self) {
        if let Some(answer) = &mut self.answer {
            answer.end = End::Complete;
        }
    }

    /// Notes that the target broke off the answer, and why.
    pub(super) fn break_off(&mut self, why: BodyError) {
        if let Some(answer) = &mut self.answer {
            answer.end = End::Broken;
        }
        if self.head.is_some() {
            self.why = Some(why.to_string());
        }
    }

    /// Notes that the connection switched protocols and has ended, with these bytes in each
    /// direction.
    pub(crate) fn switched(&mut self, received: u64, sent: u64) {
        self.received.set(self.received.get() + received);
        if let Some(answer) = &mut self.answer {
            answer.sent += sent;
            answer.is_long = true;
        }
        self.complete();
    }

    fn shard(&self) -> &Shard {
        self.client.shard()
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let received = self.received.get();
        let (mut status, mut sent, mut first_byte) = (None, 0, None);
        let total = match &self.answer {
            None => self.began.elapsed(),
            Some(answer) => {
                (status, sent) = (Some(answer.status), answer.sent);
                first_byte = Some(answer.first_byte);
                if answer.end == End::Complete && !answer.is_long {
                    answer.first_byte
                } else {
                    self.began.elapsed()
                }
            }
        };
        let by = self.answer.as_ref().map_or(AnsweredBy::Target, |answer| answer.by);
        self.shard().answer(by, status);
        self.shard().pass(received, sent);
        if let Some(first_byte) = first_byte {
            self.shard().time(first_byte, total);
        }
        let cut = match self.answer.as_ref().map(|answer| answer.end) {
            Some(End::Open) => Some(Cut::Client),
            Some(End::Broken) => Some(Cut::Target),
            Some(End::Complete) | None => None,
        };
        if let Some(cut) = cut {
            self.shard().cut(cut);
        }
        let Some(head) = self.head.take() else { return };
        let is_gone = self.answer.is_none() || cut == Some(Cut::Client);
        let why = self
            .why
            .take()
            .or_else(|| is_gone.then(|| "the client's connection ended first".into()));
        let client = &self.client;
        client.worker.process.access_log.log(Box::new(Entry {
            began: self.began,
            listener: client.listener.address,
            client: client.address,
            connection: client.connection,
            protocol: self.protocol,
            head: Some(head),
            status,
            received,
            sent,
            target: self.target.get(),
            attempts: self.attempts.get(),
            first_byte,
            total,
            why,
        }));
    }
}

/// Counts and logs the answer to a request that could not be read.
pub(crate) fn record_unreadable(client: &Client, status: u16, why: &str) {
    client.shard().answer(AnsweredBy::LoadBalancer, Some(status));
    let log = &client.worker.process.access_log;
    if !log.is_on() {
        return;
    }
    log.log(Box::new(Entry {
        began: Instant::now(),
        listener: client.listener.address,
        client: client.address,
        connection: client.connection,
        protocol: "HTTP",
        head: None,
        status: Some(status),
        received: 0,
        sent: 0,
        target: None,
        attempts: 0,
        first_byte: None,
        total: Duration::ZERO,
        why: Some(why.to_owned()),
    }));
}

fn name(version: Version) -> &'static str {
    match version {
        Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2",
        _ => "HTTP/1.1",
    }
}
