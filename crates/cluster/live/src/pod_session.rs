//! Runs commands in containers of a cluster, one after the other, until the user stops them.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::time::Duration;

use thiserror::Error;

use crate::debug_container::{self, DebugContainer};
use crate::exec::{Container, ExecError, Executed, exec};
use crate::session::Session;

/// A connection to a cluster on which commands are run. Ctrl-C ends the command that is waited for,
/// but not this process.
pub struct PodSession {
    session: Session,
    stop: Pin<Box<dyn Future<Output = io::Result<()>>>>,
    is_stopped: bool,
}

impl std::fmt::Debug for PodSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PodSession").field("session", &self.session).finish_non_exhaustive()
    }
}

/// The reason why something was not done.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum SessionError {
    /// The user stopped it.
    #[error("stopped")]
    Stopped,
    /// It failed.
    #[error(transparent)]
    Exec(#[from] ExecError),
}

impl PodSession {
    /// Uses a connection for commands.
    pub fn new(session: Session) -> Self {
        Self { session, stop: Box::pin(tokio::signal::ctrl_c()), is_stopped: false }
    }

    /// Runs a command in a container, like [`exec`].
    ///
    /// # Errors
    /// If the user stops it, or as [`exec`] says.
    pub fn exec(
        &mut self,
        container: &Container,
        command: &[String],
        limit: Duration,
    ) -> Result<Executed, SessionError> {
        let Self { session: Session { runtime, server }, stop, is_stopped } = self;
        let executed = until(stop, is_stopped, exec(server, container, command, limit));
        runtime.block_on(executed)
    }

    /// Adds a container to a pod, waits until it runs, and returns its name. The container cannot
    /// be removed from the pod again; it ends by itself.
    ///
    /// # Errors
    /// If the user stops it, a right is missing, the pod does not exist, or the container does not
    /// run in time.
    pub fn add_container(&mut self, wanted: &DebugContainer) -> Result<String, SessionError> {
        let Self { session: Session { runtime, server }, stop, is_stopped } = self;
        runtime.block_on(until(stop, is_stopped, debug_container::add(server, wanted)))
    }
}

async fn until<T>(
    stop: &mut Pin<Box<dyn Future<Output = io::Result<()>>>>,
    is_stopped: &mut bool,
    work: impl Future<Output = Result<T, ExecError>>,
) -> Result<T, SessionError> {
    if *is_stopped {
        return Err(SessionError::Stopped);
    }
    tokio::select! {
        biased;
        stopped = stop.as_mut() => {
            *is_stopped = true;
            match stopped {
                Ok(()) => Err(SessionError::Stopped),
                Err(why) => Err(ExecError::Failed(format!("cannot listen for Ctrl-C: {why}")).into()),
            }
        }
        done = work => Ok(done?),
    }
}
