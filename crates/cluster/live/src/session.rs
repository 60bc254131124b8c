//! A connection to a cluster for several operations, one after the other.

use std::sync::Arc;

use tokio::runtime::{Builder, Runtime};

use crate::access::Access;
use crate::error::LiveError;
use crate::nodes::{CaptureSettings, NodeCapture, NodePlan, capture};
use crate::read::{Settings, read_from};
use crate::reading::Reading;
use crate::server::Server;

/// A server, and the runtime that waits for its answers. Programs that provide credentials run
/// once.
#[derive(Debug)]
pub struct Session {
    pub(crate) runtime: Runtime,
    pub(crate) server: Arc<Server>,
}

impl Session {
    /// Finds the server that a kubeconfig names.
    ///
    /// # Errors
    /// If no cluster is named, or credentials cannot be obtained.
    pub fn open(access: &Access) -> Result<Self, LiveError> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(LiveError::Runtime)?;
        let server = runtime.block_on(Server::find(access))?;
        Ok(Self { runtime, server: Arc::new(server) })
    }

    /// Reads the cluster. `progress` is called with what is being read, and the number of these
    /// objects so far.
    ///
    /// # Errors
    /// If the server cannot be reached, or does not accept the credentials.
    pub fn read(
        &self,
        settings: &Settings,
        progress: &dyn Fn(&str, usize),
    ) -> Result<Reading, LiveError> {
        self.runtime.block_on(read_from(&self.server, settings, progress))
    }

    /// Captures nodes, several at once. Returns `None` if it is interrupted. In any case the pods
    /// that it made are removed, or `notes` is told which could not be.
    pub fn capture(
        &self,
        plans: Vec<NodePlan>,
        settings: &CaptureSettings,
        notes: &dyn Fn(&str),
    ) -> Option<Vec<NodeCapture>> {
        self.runtime.block_on(capture(&self.server, plans, settings, notes))
    }
}
