//! How many requests a server answered, by its audit log.

use std::fmt;
use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::PathBuf;

use crate::control_plane::ControlPlane;

/// The log, and how far it was read.
pub(super) struct Requests {
    log: PathBuf,
    read: u64,
}

/// How many there were.
pub(super) struct Count {
    all: usize,
    pods: usize,
}

impl Requests {
    pub(super) fn of(plane: &ControlPlane) -> Self {
        Self { log: plane.file(ControlPlane::AUDIT_LOG), read: 0 }
    }

    /// Those since the last time. The log has the reader's alone, a line for each.
    pub(super) fn since_last(&mut self) -> Count {
        let mut file = File::open(&self.log).unwrap();
        file.seek(SeekFrom::Start(self.read)).unwrap();
        let mut text = String::new();
        self.read += file.read_to_string(&mut text).unwrap() as u64;
        let pods = text.lines().filter(|line| line.contains("\"/api/v1/pods?")).count();
        Count { all: text.lines().count(), pods }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} requests, {} for pods", self.all, self.pods)
    }
}
