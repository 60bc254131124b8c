//! Tasks that stay on their worker's thread.

use hyper::rt::Executor;

/// Runs what HTTP/2 needs beside a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalTasks;

impl<F: Future<Output = ()> + 'static> Executor<F> for LocalTasks {
    fn execute(&self, task: F) {
        tokio::task::spawn_local(task);
    }
}
