//! The library that the machine's kernel is started with: `preload/ptrace.rs`, which explains why.

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;

use rustix::fs::{MemfdFlags, memfd_create};

/// The library. Empty if it could not be built.
const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/ptrace.so"));

/// The variable of the dynamic loader that names libraries to load first.
pub(super) const VARIABLE: &str = "LD_PRELOAD";

/// Returns whether this build has the library.
pub(super) fn is_there() -> bool {
    !LIBRARY.is_empty()
}

/// The library as an open file. Processes that are started inherit the file while this is kept.
pub(super) struct Preload(File);

impl Preload {
    /// Puts the library into memory. Returns `None` if this build has none.
    pub(super) fn open() -> io::Result<Option<Self>> {
        if !is_there() {
            return Ok(None);
        }
        let mut file = File::from(memfd_create("uturn-machine-ptrace", MemfdFlags::empty())?);
        file.write_all(LIBRARY)?;
        Ok(Some(Self(file)))
    }

    /// Returns the value of [`VARIABLE`] for a process that inherits the file.
    pub(super) fn value(&self) -> OsString {
        let mut value = OsString::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()));
        if let Some(other) = env::var_os(VARIABLE) {
            value.push(":");
            value.push(other);
        }
        value
    }
}
