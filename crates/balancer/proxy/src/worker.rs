//! The state that the tasks of a worker share with each other, and with no other worker.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;

use tokio::sync::Notify;

use crate::deadline::Deadlines;
use crate::process::Process;
use crate::upstream::Pool;

/// The shared state of a worker's tasks.
#[derive(Debug)]
pub(crate) struct Worker {
    /// The number of the worker within the process.
    pub(crate) number: usize,
    pub(crate) process: Arc<Process>,
    pub(crate) pool: Pool,
    pub(crate) deadlines: Rc<Deadlines>,
    is_draining: Cell<bool>,
    open: Cell<usize>,
    closed: Notify,
}

impl Worker {
    pub(crate) fn new(number: usize, process: Arc<Process>) -> Self {
        Self {
            number,
            process,
            pool: Pool::default(),
            deadlines: Rc::default(),
            is_draining: Cell::new(false),
            open: Cell::new(0),
            closed: Notify::new(),
        }
    }

    /// Returns whether connections are to end after their current request. When that changes, all
    /// tasks that wait for one of [`Self::deadlines`] are woken.
    pub(crate) fn is_draining(&self) -> bool {
        self.is_draining.get()
    }

    /// Lets connections end after their current request, and waits until all have ended.
    pub(crate) async fn end_connections(&self) {
        self.is_draining.set(true);
        self.deadlines.wake_all();
        self.all_closed().await;
    }

    /// Waits until no connection is open.
    pub(crate) async fn all_closed(&self) {
        while self.open.get() > 0 {
            self.closed.notified().await;
        }
    }

    /// Counts a connection as open until the guard is dropped.
    pub(crate) fn open(self: &Rc<Self>) -> OpenConnection {
        self.open.set(self.open.get() + 1);
        OpenConnection(Rc::clone(self))
    }
}

/// A client's open connection.
#[derive(Debug)]
pub(crate) struct OpenConnection(Rc<Worker>);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.open.set(self.0.open.get() - 1);
        self.0.closed.notify_one();
    }
}
