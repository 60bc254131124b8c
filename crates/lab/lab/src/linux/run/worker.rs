//! Threads that work until they are dropped.

use std::io::{self, PipeReader, PipeWriter};
use std::thread::{self, JoinHandle};

/// A thread that is told to end, and awaited, when this is dropped. The thread ends when `L`, which
/// it is connected with, is dropped.
#[derive(Debug)]
pub(crate) struct Worker<L = PipeWriter> {
    life: Option<L>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    /// Starts a thread that works until the other end of a pipe is closed.
    pub(crate) fn start(
        name: &str,
        work: impl FnOnce(PipeReader) + Send + 'static,
    ) -> io::Result<Self> {
        let (end, life) = io::pipe()?;
        Self::with(life, name, move || work(end))
    }
}

impl<L> Worker<L> {
    /// Starts a thread that works until `life` is dropped.
    pub(crate) fn with(
        life: L,
        name: &str,
        work: impl FnOnce() + Send + 'static,
    ) -> io::Result<Self> {
        let thread = thread::Builder::new().name(name.into()).spawn(work)?;
        Ok(Self { life: Some(life), thread: Some(thread) })
    }
}

impl<L> Drop for Worker<L> {
    fn drop(&mut self) {
        drop(self.life.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
