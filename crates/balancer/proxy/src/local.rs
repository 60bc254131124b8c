//! Tasks that stay on their worker's thread.

use std::future::poll_fn;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use hyper::rt::Executor;

use crate::deadline::Deadlines;

/// An executor for the tasks of an HTTP/2 connection to a target.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalTasks;

impl<F: Future<Output = ()> + 'static> Executor<F> for LocalTasks {
    fn execute(&self, task: F) {
        tokio::task::spawn_local(task);
    }
}

/// An executor for the streams of an HTTP/2 connection with a client. It drops streams that nothing
/// wakes for too long, as their client has no room for the answer. That resets them.
#[derive(Clone, Debug)]
pub(crate) struct LimitedTasks {
    deadlines: Rc<Deadlines>,
    limit: Duration,
}

impl LimitedTasks {
    pub(crate) fn new(deadlines: &Rc<Deadlines>, limit: Duration) -> Self {
        Self { deadlines: Rc::clone(deadlines), limit }
    }
}

impl<F: Future<Output = ()> + 'static> Executor<F> for LimitedTasks {
    fn execute(&self, task: F) {
        let (deadline, limit) = (self.deadlines.add(), self.limit);
        tokio::task::spawn_local(async move {
            let mut task = pin!(task);
            poll_fn(|cx| {
                if deadline.is_set() && deadline.poll(cx).is_ready() {
                    return Poll::Ready(());
                }
                let polled = task.as_mut().poll(cx);
                deadline.set(limit);
                // This registers the task to be woken; the deadline is not due yet.
                let _ = deadline.poll(cx);
                polled
            })
            .await;
        });
    }
}
