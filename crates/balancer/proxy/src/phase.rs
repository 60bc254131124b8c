//! The phase that a client's connection is in, and the time limit of each phase.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use uturn_lb::config::Timeouts;

use crate::deadline::{Deadline, Exceeded};

/// The time between two checks that the client of a connection whose requests are being answered is
/// still there.
const LOOK: Duration = Duration::from_secs(1);

/// The time for which a busy connection keeps its buffers without a request.
pub(crate) const BUSY: Duration = Duration::from_secs(1);

/// The phase of a client's connection, with its time limit.
#[derive(Debug)]
pub(crate) struct Phase {
    now: Cell<Now>,
    /// Whether the client has not yet taken all bytes that were to be written.
    is_blocked: Cell<bool>,
    /// Whether the last request had a body, of which a part may be unread.
    had_body: Cell<bool>,
    /// Whether the next request is likely to come soon.
    is_busy: Cell<bool>,
    /// The number of requests under way; more than one only with HTTP/2.
    exchanges: Cell<u32>,
    /// Whether an answer was given before its request was read to the end.
    leaves_unread: Cell<bool>,
    /// Whether bytes that arrive between requests begin the next request. With HTTP/2 they may be
    /// frames of the connection itself.
    is_http1: Cell<bool>,
    timeouts: Timeouts,
    deadline: Deadline,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Now {
    /// No request is under way.
    Idle,
    /// A request has begun, and its headers are not complete.
    Headers,
    /// Requests are being answered. The deadline is the time of the next check of the client.
    Exchange,
    /// The client does not read what is written to it.
    Blocked,
}

impl Phase {
    /// Returns the phase of a new connection, which has to send its first request's headers in
    /// time.
    pub(crate) fn new(timeouts: &Timeouts, deadline: Deadline) -> Self {
        deadline.set(timeouts.header);
        Self {
            now: Cell::new(Now::Headers),
            is_blocked: Cell::new(false),
            had_body: Cell::new(false),
            is_busy: Cell::new(false),
            exchanges: Cell::new(0),
            leaves_unread: Cell::new(false),
            is_http1: Cell::new(false),
            timeouts: timeouts.clone(),
            deadline,
        }
    }

    /// Notes that the client speaks HTTP/1.
    pub(crate) fn set_http1(&self) {
        self.is_http1.set(true);
    }

    /// Waits for a future that the client has to complete in time.
    ///
    /// # Errors
    /// When the client does not.
    pub(crate) async fn limit<F: Future>(&self, future: F) -> io::Result<F::Output> {
        let slow = |_| io::Error::new(io::ErrorKind::TimedOut, "the client is too slow");
        self.deadline.limit(future).await.map_err(slow)
    }

    /// Begins an exchange. It lasts until the guard is dropped.
    pub(crate) fn begin(self: &Rc<Self>, has_body: bool) -> ExchangeGuard {
        self.had_body.set(has_body);
        self.exchanges.set(self.exchanges.get() + 1);
        self.now.set(Now::Exchange);
        self.deadline.set(LOOK);
        ExchangeGuard(Rc::clone(self))
    }

    /// Returns the number of requests under way.
    pub(crate) fn exchanges(&self) -> u32 {
        self.exchanges.get()
    }

    /// Notes that bytes have arrived.
    pub(crate) fn read(&self) {
        if self.is_http1.get() && self.now.get() == Now::Idle {
            self.now.set(Now::Headers);
            self.deadline.set(self.timeouts.header);
        }
    }

    /// Notes that the client took bytes, or has no room for more.
    pub(crate) fn wrote(&self, is_blocked: bool) {
        self.is_blocked.set(is_blocked);
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

    /// Returns whether the client is due to be checked. A client that only waits for its answer
    /// would otherwise go away unnoticed.
    pub(crate) fn is_look_due(&self) -> bool {
        self.now.get() == Now::Exchange && self.deadline.is_exceeded()
    }

    /// Notes that a request is not read to its end.
    pub(crate) fn leave_unread(&self) {
        self.leaves_unread.set(true);
    }

    /// Returns whether the client may still be sending bytes that are not read any more.
    pub(crate) fn leaves_unread(&self) -> bool {
        self.leaves_unread.get()
    }

    /// Returns ready when the phase has lasted too long. Wakes the connection when a check of the
    /// client is due.
    pub(crate) fn poll_exceeded(&self, cx: &Context<'_>) -> Poll<Exceeded> {
        if self.is_look_due() {
            self.deadline.set(LOOK);
        }
        self.deadline.poll(cx)
    }

    /// Sets whether the next request is likely to come within [`BUSY`].
    pub(crate) fn set_busy(&self, is_busy: bool) {
        self.is_busy.set(is_busy);
    }

    /// Returns whether the buffers for requests may be freed for now: everything that was read is
    /// answered, every answer is written, and the next request is not likely to come soon.
    pub(crate) fn may_rest(&self) -> bool {
        self.is_idle() && !self.is_busy.get()
    }

    /// Ends the busy time, if only that was exceeded, and returns whether it did. A request may
    /// still come.
    pub(crate) fn end_busy(&self) -> bool {
        let rest = self.timeouts.idle.saturating_sub(BUSY);
        let is_over = self.now.get() == Now::Idle && self.is_busy.replace(false);
        if is_over && !rest.is_zero() {
            self.deadline.set(rest);
            return true;
        }
        false
    }

    fn is_idle(&self) -> bool {
        self.now.get() == Now::Idle && !self.is_blocked.get() && !self.had_body.get()
    }

    /// Returns whether the client has begun a request without completing its headers.
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
            let idle = phase.timeouts.idle;
            phase.deadline.set(if phase.is_busy.get() { idle.min(BUSY) } else { idle });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;
    use crate::deadline::{Deadlines, TICK};

    #[test]
    fn a_busy_connection_rests_when_its_busy_time_is_over_and_ends_after_its_idle_time() {
        let deadlines = Rc::new(Deadlines::default());
        let timeouts = Timeouts { idle: BUSY * 3, ..Timeouts::default() };
        let phase = Rc::new(Phase::new(&timeouts, deadlines.add()));
        let cx = Context::from_waker(Waker::noop());
        let ticks = |time: Duration| (time.as_millis() / TICK.as_millis()) as u64 + 1;
        phase.set_http1();
        drop(phase.begin(false));
        assert!(phase.may_rest(), "nothing says that another request comes soon");
        phase.read();
        phase.set_busy(true);
        assert!(!phase.may_rest(), "a request has begun");
        drop(phase.begin(false));
        assert!(!phase.may_rest());
        deadlines.sweep(ticks(BUSY));
        assert!(phase.poll_exceeded(&cx).is_ready() && phase.end_busy());
        assert!(phase.may_rest() && phase.poll_exceeded(&cx).is_pending());
        deadlines.sweep(ticks(BUSY) + ticks(BUSY * 2));
        assert!(phase.poll_exceeded(&cx).is_ready() && !phase.end_busy());
    }

    #[test]
    fn a_connection_does_not_rest_while_something_may_be_unread_or_unwritten() {
        let deadlines = Rc::new(Deadlines::default());
        let phase = Rc::new(Phase::new(&Timeouts::default(), deadlines.add()));
        drop(phase.begin(true));
        assert!(!phase.may_rest(), "the request had a body");
        drop(phase.begin(false));
        phase.wrote(true);
        assert!(!phase.may_rest(), "the answer is not written");
        phase.wrote(false);
        assert!(phase.may_rest());
    }
}
