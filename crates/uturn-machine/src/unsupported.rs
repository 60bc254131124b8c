//! What systems other than Linux have: nobody can get hold of a machine.

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::{Ended, Job, JobOutput, MachineError, Unavailable};

/// A machine that can be started. There is none here.
#[derive(Clone, Debug)]
pub struct Machine(Never);

/// What nobody can have; that is this module's own business, so that whoever asks for a
/// machine is written in the same way for all systems.
#[derive(Clone, Debug)]
enum Never {}

impl Machine {
    /// Says that there is none.
    pub fn find() -> Result<Self, Unavailable> {
        Err(Unavailable::NotLinux)
    }

    /// What its kernel is.
    pub fn kernel(&self) -> String {
        match self.0 {}
    }

    /// Gives it this much memory.
    #[must_use]
    pub fn with_memory(self, _mib: u32) -> Self {
        match self.0 {}
    }

    /// Ends it after this time.
    #[must_use]
    pub fn with_limit(self, _limit: Duration) -> Self {
        match self.0 {}
    }

    /// Ends it once this is true.
    #[must_use]
    pub fn with_stop(self, _stop: Arc<AtomicBool>) -> Self {
        match self.0 {}
    }

    /// Gives it a network.
    #[must_use]
    pub fn with_link(self, _namespace: &str, _device: &str) -> Self {
        match self.0 {}
    }

    /// Runs a job.
    pub fn run(
        &self,
        _job: &Job,
        _hear: &mut dyn FnMut(JobOutput<'_>),
    ) -> Result<Ended, MachineError> {
        match self.0 {}
    }
}

/// Whether this process is the first of a machine.
pub fn is_inside() -> bool {
    false
}

/// What the first process of a machine does.
pub fn inside() -> ExitCode {
    ExitCode::FAILURE
}
