//! What a client's connection is doing, and how long it may go on doing it.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use uturn_lb::config::Timeouts;

use crate::deadline::{Deadline, Exceeded};

/// How often a connection whose requests are being answered is to look for its client.
const LOOK: Duration = Duration::from_secs(1);

/// The phase of a client's connection, with its time limit.
#[derive(Debug)]
pub(crate) struct Phase {
    now: Cell<Now>,
    /// Requests under way; more than one with HTTP/2 only.
    exchanges: Cell<u32>,
    /// Whether an answer was given before its request was read to the end.
    leaves_unread: Cell<bool>,
    /// Whether bytes that arrive between requests begin the next one. With HTTP/2 they may be
    /// frames of the connection's own.
    is_http1: Cell<bool>,
    timeouts: Timeouts,
    deadline: Deadline,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Now {
    /// No request has begun.
    Idle,
    /// A request has begun, and its headers are not complete.
    Headers,
    /// Requests are being answered. The deadline is the next look for the client.
    Exchange,
    /// The client does not take what is written to it.
    Blocked,
}

impl Phase {
    /// The phase of a new connection: it has to send its first request's headers in time.
    pub(crate) fn new(timeouts: &Timeouts, deadline: Deadline) -> Self {
        deadline.set(timeouts.header);
        Self {
            now: Cell::new(Now::Headers),
            exchanges: Cell::new(0),
            leaves_unread: Cell::new(false),
            is_http1: Cell::new(false),
            timeouts: timeouts.clone(),
            deadline,
        }
    }

    /// The client speaks HTTP/1.
    pub(crate) fn set_http1(&self) {
        self.is_http1.set(true);
    }

    /// Waits for something that the client has to do in time.
    ///
    /// # Errors
    /// When it does not.
    pub(crate) async fn limit<F: Future>(&self, future: F) -> io::Result<F::Output> {
        let slow = |_| io::Error::new(io::ErrorKind::TimedOut, "the client is too slow");
        self.deadline.limit(future).await.map_err(slow)
    }

    /// Begins an exchange. It lasts until the guard is dropped.
    pub(crate) fn begin(self: &Rc<Self>) -> ExchangeGuard {
        self.exchanges.set(self.exchanges.get() + 1);
        self.now.set(Now::Exchange);
        self.deadline.set(LOOK);
        ExchangeGuard(Rc::clone(self))
    }

    /// Bytes have arrived.
    pub(crate) fn read(&self) {
        if self.is_http1.get() && self.now.get() == Now::Idle {
            self.now.set(Now::Headers);
            self.deadline.set(self.timeouts.header);
        }
    }

    /// The client took bytes, or has no room for more.
    pub(crate) fn wrote(&self, is_blocked: bool) {
        match (self.now.get(), is_blocked) {
            (Now::Exchange, true) => {
                self.now.set(Now::Blocked);
                self.deadline.set(self.timeouts.read);
            }
            (Now::Blocked, false) => {
                self.now.set(Now::Exchange);
                self.deadline.set(LOOK);
            }
            _ => {}
        }
    }

    /// Whether it is time to look for the client: one that only waits for its answer is not
    /// noticed otherwise when it goes away.
    pub(crate) fn is_look_due(&self) -> bool {
        self.now.get() == Now::Exchange && self.deadline.is_exceeded()
    }

    /// A request is not read to its end.
    pub(crate) fn leave_unread(&self) {
        self.leaves_unread.set(true);
    }

    /// Whether the client may still be sending what is not read any more.
    pub(crate) fn leaves_unread(&self) -> bool {
        self.leaves_unread.get()
    }

    /// Ready once the phase has lasted too long. Wakes the connection when a look is due.
    pub(crate) fn poll_exceeded(&self, cx: &Context<'_>) -> Poll<Exceeded> {
        if self.is_look_due() {
            self.deadline.set(LOOK);
        }
        self.deadline.poll(cx)
    }

    /// Whether the client has begun a request without completing its headers.
    pub(crate) fn is_in_headers(&self) -> bool {
        self.now.get() == Now::Headers
    }
}

/// An exchange that is under way.
#[derive(Debug)]
pub(crate) struct ExchangeGuard(Rc<Phase>);

impl Drop for ExchangeGuard {
    fn drop(&mut self) {
        let phase = &self.0;
        phase.exchanges.set(phase.exchanges.get() - 1);
        if phase.exchanges.get() == 0 {
            phase.now.set(Now::Idle);
            phase.deadline.set(phase.timeouts.idle);
        }
    }
}
