//! The interface of this crate for systems other than Linux, where [`Machine::find`] always fails.

use std::io::Read;
use std::net::TcpStream;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::{Ended, Job, JobOutput, MachineError, Unavailable};

/// A machine that can be started. No value of this type exists here.
#[derive(Clone, Debug)]
pub struct Machine(Never);

/// A type without values. It is private, so that callers compile unchanged on every system.
#[derive(Clone, Debug)]
enum Never {}

impl Machine {
    /// Always fails: there is no User Mode Linux on this system.
    ///
    /// # Errors
    /// Always [`Unavailable::NotLinux`].
    pub fn find() -> Result<Self, Unavailable> {
        Err(Unavailable::NotLinux)
    }

    /// Returns the name and release of the machine's kernel.
    pub fn kernel(&self) -> String {
        match self.0 {}
    }

    /// Sets the machine's memory, in MiB.
    #[must_use]
    pub fn with_memory(self, _mib: u32) -> Self {
        match self.0 {}
    }

    /// Sets a time limit.
    #[must_use]
    pub fn with_limit(self, _limit: Duration) -> Self {
        match self.0 {}
    }

    /// Ends the machine once this becomes true.
    #[must_use]
    pub fn with_stop(self, _stop: Arc<AtomicBool>) -> Self {
        match self.0 {}
    }

    /// Gives the machine a network.
    #[must_use]
    pub fn with_link(self, _namespace: &str, _device: &str) -> Self {
        match self.0 {}
    }

    /// Lets clients use the machine.
    #[cfg(unix)]
    #[must_use]
    pub fn with_control(self, _socket: std::os::unix::net::UnixListener) -> Self {
        match self.0 {}
    }

    /// Runs a job.
    ///
    /// # Errors
    /// Never returns: there is no machine to call it on.
    pub fn run(
        &self,
        _job: &Job,
        _hear: &mut dyn FnMut(JobOutput<'_>),
    ) -> Result<Ended, MachineError> {
        match self.0 {}
    }
}

/// A client of a running machine, of which there is none here.
#[derive(Clone, Debug)]
pub struct MachineClient(());

impl MachineClient {
    /// Creates a client that reaches nothing.
    pub fn of(_socket: &Path) -> Self {
        Self(())
    }

    /// Always fails.
    ///
    /// # Errors
    /// Always [`Unavailable::NotLinux`].
    pub fn run(
        &self,
        _job: &Job,
        _input: Option<Box<dyn Read + Send>>,
        _hear: &mut dyn FnMut(JobOutput<'_>),
    ) -> Result<Ended, MachineError> {
        Err(Unavailable::NotLinux.into())
    }

    /// Always fails.
    ///
    /// # Errors
    /// Always [`Unavailable::NotLinux`].
    pub fn connect(&self, _port: u16, _connection: &TcpStream) -> Result<(), MachineError> {
        Err(Unavailable::NotLinux.into())
    }
}

/// Returns whether this process is the first process of a machine, which it never is here.
pub fn is_inside() -> bool {
    false
}

/// Fails: this process is never the first process of a machine here.
pub fn inside() -> ExitCode {
    ExitCode::FAILURE
}
