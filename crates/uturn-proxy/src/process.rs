//! What all threads of the process share.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use uturn_lb::event::Event;

use crate::access_log::AccessLog;
use crate::descriptors::Descriptors;
use crate::local_error::LocalErrors;

/// Takes events, from many threads.
pub type Observer = Arc<dyn Fn(&Event) + Send + Sync>;

/// Which events an observer takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// What changes: it serves, a target is alive or dead, a target is left alone.
    Changes,
    /// Every step of every connection as well.
    Connections,
}

/// The process.
pub(crate) struct Process {
    observer: Observer,
    detail: Detail,
    /// Counts connections from clients.
    connections: AtomicU64,
    /// The connections from clients that are open.
    open: AtomicUsize,
    /// The most that may be.
    most: usize,
    pub(crate) access_log: AccessLog,
    /// How many descriptors there are, and for what.
    pub(crate) descriptors: Descriptors,
    /// What this machine failed at.
    pub(crate) local_errors: LocalErrors,
    /// Whether it accepts nothing more and ends what is open.
    pub(crate) is_draining: AtomicBool,
    /// Changes of the configuration that succeeded, and that failed.
    pub(crate) reloads: [AtomicU64; 2],
    /// Whether the latest change failed.
    pub(crate) has_failed_reload: AtomicBool,
}

impl Process {
    pub(crate) fn new(
        observer: Observer,
        detail: Detail,
        most_connections: Option<usize>,
        access_log: AccessLog,
    ) -> Self {
        let descriptors = Descriptors::of_process();
        Self {
            observer,
            detail,
            connections: AtomicU64::new(0),
            open: AtomicUsize::new(0),
            most: most_connections.unwrap_or_else(|| descriptors.connections()),
            access_log,
            descriptors,
            local_errors: LocalErrors::new(),
            is_draining: AtomicBool::new(false),
            reloads: Default::default(),
            has_failed_reload: AtomicBool::new(false),
        }
    }

    /// Counts a change of the configuration.
    pub(crate) fn count_reload(&self, succeeded: bool) {
        self.reloads[usize::from(!succeeded)].fetch_add(1, Ordering::Relaxed);
        self.has_failed_reload.store(!succeeded, Ordering::Relaxed);
    }

    /// Reports a change.
    pub(crate) fn report_change(&self, event: &Event) {
        (self.observer)(event);
    }

    /// Reports a step of a connection, if the observer takes those.
    pub(crate) fn report(&self, event: impl FnOnce() -> Event) {
        if self.detail == Detail::Connections {
            (self.observer)(&event());
        }
    }

    /// Takes a connection in. Returns `None` if there are as many as there may be.
    pub(crate) fn admit(self: &Arc<Self>) -> Option<Admission> {
        let open = self.open.fetch_add(1, Ordering::Relaxed);
        let number = self.connections.fetch_add(1, Ordering::Relaxed);
        // Dropped at once if it is one too many.
        let admission = Admission { process: Arc::clone(self), number };
        (open < self.most).then_some(admission)
    }
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process").field("open", &self.open).finish_non_exhaustive()
    }
}

/// A connection that counts as open until this is dropped.
#[derive(Debug)]
pub(crate) struct Admission {
    process: Arc<Process>,
    /// Counts the connections of the process.
    pub(crate) number: u64,
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.process.open.fetch_sub(1, Ordering::Relaxed);
    }
}
