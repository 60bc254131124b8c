//! Time limits of connections, cheap enough to be set with every request.
//!
//! A timer of the runtime costs a lock and an entry in its wheel each time it is set. Here a
//! deadline is a number that one sweep per tick compares with the clock, so that setting and
//! clearing it is a store. The price is precision: a deadline is noticed up to two [`TICK`]s late.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// The time between two sweeps.
pub(crate) const TICK: Duration = Duration::from_millis(100);

/// The number of a tick that never comes.
const NEVER: u64 = u64::MAX;

/// All deadlines of a worker.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    now: Cell<u64>,
    all: RefCell<Vec<Option<Rc<State>>>>,
    free: RefCell<Vec<usize>>,
}

#[derive(Debug)]
struct State {
    due: Cell<u64>,
    waker: RefCell<Option<Waker>>,
}

/// A time limit that can be set and cleared any number of times.
#[derive(Debug)]
pub(crate) struct Deadline {
    state: Rc<State>,
    place: usize,
    deadlines: Rc<Deadlines>,
}

/// A time limit was exceeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exceeded;

impl Deadlines {
    /// Adds a deadline that is not set.
    pub(crate) fn add(self: &Rc<Self>) -> Deadline {
        let state = Rc::new(State { due: Cell::new(NEVER), waker: RefCell::new(None) });
        let mut all = self.all.borrow_mut();
        let place = match self.free.borrow_mut().pop() {
            Some(place) => {
                all[place] = Some(Rc::clone(&state));
                place
            }
            None => {
                all.push(Some(Rc::clone(&state)));
                all.len() - 1
            }
        };
        Deadline { state, place, deadlines: Rc::clone(self) }
    }

    /// Returns the time, in ticks.
    pub(crate) fn now(&self) -> u64 {
        self.now.get()
    }

    /// Sweeps once a tick, for as long as the worker runs.
    pub(crate) async fn run(&self) {
        let mut interval = tokio::time::interval(TICK);
        interval.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        let began = tokio::time::Instant::now();
        loop {
            let at = interval.tick().await;
            self.sweep((at.duration_since(began).as_millis() / TICK.as_millis()) as u64);
        }
    }

    /// Wakes every task that waits for a deadline, whether or not it is due.
    pub(crate) fn wake_all(&self) {
        for state in self.all.borrow().iter().flatten() {
            if let Some(waker) = state.waker.borrow_mut().take() {
                waker.wake();
            }
        }
    }

    /// Sets the time, in ticks, and wakes the tasks whose deadline is due.
    pub(crate) fn sweep(&self, now: u64) {
        self.now.set(now);
        for state in self.all.borrow().iter().flatten() {
            if state.due.get() <= now
                && let Some(waker) = state.waker.borrow_mut().take()
            {
                waker.wake();
            }
        }
    }
}

impl Deadline {
    /// Sets the limit to this time from now.
    pub(crate) fn set(&self, after: Duration) {
        let ticks = after.as_millis().div_ceil(TICK.as_millis()) as u64;
        self.state.due.set(self.deadlines.now.get().saturating_add(ticks + 1));
    }

    /// Removes the limit.
    pub(crate) fn clear(&self) {
        self.state.due.set(NEVER);
    }

    /// Returns whether there is a limit.
    pub(crate) fn is_set(&self) -> bool {
        self.state.due.get() != NEVER
    }

    /// Returns whether there is a limit and it is exceeded.
    pub(crate) fn is_exceeded(&self) -> bool {
        self.state.due.get() <= self.deadlines.now.get()
    }

    /// Returns ready once the limit is exceeded.
    pub(crate) fn poll(&self, cx: &Context<'_>) -> Poll<Exceeded> {
        if self.is_exceeded() {
            return Poll::Ready(Exceeded);
        }
        let mut waker = self.state.waker.borrow_mut();
        if !waker.as_ref().is_some_and(|known| known.will_wake(cx.waker())) {
            *waker = Some(cx.waker().clone());
        }
        Poll::Pending
    }

    /// Waits for a future no longer than the limit that is set now, or during the wait.
    ///
    /// # Errors
    /// When the limit is exceeded first.
    pub(crate) async fn limit<F: Future>(&self, future: F) -> Result<F::Output, Exceeded> {
        let mut future = pin!(future);
        poll_fn(|cx| match future.as_mut().poll(cx) {
            Poll::Ready(output) => Poll::Ready(Ok(output)),
            Poll::Pending => self.poll(cx).map(Err),
        })
        .await
    }

    /// Waits for a future that makes progress, each time within `idle`. Progress that is found when
    /// the limit is exceeded counts, so that a late worker ends nothing.
    ///
    /// # Errors
    /// When the future makes no progress for longer.
    pub(crate) async fn limit_idle<F: Future>(
        &self,
        idle: Duration,
        progress: impl Fn() -> u64,
        future: F,
    ) -> Result<F::Output, Exceeded> {
        let mut future = pin!(future);
        let mut seen = progress();
        self.set(idle);
        poll_fn(|cx| {
            if let Poll::Ready(output) = future.as_mut().poll(cx) {
                return Poll::Ready(Ok(output));
            }
            let now = progress();
            if seen != now {
                seen = now;
                self.set(idle);
            }
            self.poll(cx).map(Err)
        })
        .await
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        self.deadlines.all.borrow_mut()[self.place] = None;
        self.deadlines.free.borrow_mut().push(self.place);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::task::Wake;

    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn a_deadline_wakes_when_its_tick_has_come_and_not_before() {
        let deadlines = Rc::new(Deadlines::default());
        let count = Arc::new(Count::default());
        let waker = Waker::from(Arc::clone(&count));
        let cx = Context::from_waker(&waker);
        let deadline = deadlines.add();
        deadline.set(TICK * 2);
        assert_eq!(deadline.poll(&cx), Poll::Pending);
        deadlines.sweep(2);
        assert_eq!(count.0.load(Ordering::Relaxed), 0, "a part of a tick had passed already");
        deadlines.sweep(3);
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
        assert_eq!(deadline.poll(&cx), Poll::Ready(Exceeded));
        deadline.clear();
        assert_eq!(deadline.poll(&cx), Poll::Pending);
        deadlines.sweep(1000);
        assert_eq!(count.0.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn progress_postpones_the_limit_and_waking_alone_does_not() {
        let deadlines = Rc::new(Deadlines::default());
        let deadline = deadlines.add();
        let progress = Cell::new(0);
        let limited =
            deadline.limit_idle(TICK * 2, || progress.get(), std::future::pending::<()>());
        let mut limited = pin!(limited);
        let mut cx = Context::from_waker(Waker::noop());
        assert!(limited.as_mut().poll(&mut cx).is_pending());
        // Bytes have come, and the worker was late.
        progress.set(1);
        deadlines.sweep(3);
        assert!(limited.as_mut().poll(&mut cx).is_pending());
        deadlines.sweep(5);
        assert!(limited.as_mut().poll(&mut cx).is_pending());
        deadlines.sweep(6);
        assert_eq!(limited.as_mut().poll(&mut cx), Poll::Ready(Err(Exceeded)));
    }

    #[test]
    fn places_are_used_again() {
        let deadlines = Rc::new(Deadlines::default());
        let (first, second) = (deadlines.add(), deadlines.add());
        drop(first);
        let third = deadlines.add();
        assert_eq!((second.place, third.place), (1, 0));
        assert_eq!(deadlines.all.borrow().len(), 2);
    }
}
