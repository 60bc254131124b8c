//! The error of this program.

use std::fmt;
use std::io;

/// A failure, in words.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) String);

impl Failure {
    /// Returns a conversion from an I/O error that names the action that failed.
    pub(crate) fn of(doing: impl fmt::Display) -> impl FnOnce(io::Error) -> Self {
        move |error| Self(format!("cannot {doing}: {error}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
