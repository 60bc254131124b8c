//! Why a comparison could not be made.

use std::fmt;
use std::io;

/// What went wrong, in words.
#[derive(Debug)]
pub(crate) struct Failure(pub(crate) String);

impl Failure {
    /// Names what an error prevented.
    pub(crate) fn of(doing: impl fmt::Display) -> impl FnOnce(io::Error) -> Self {
        move |error| Self(format!("cannot {doing}: {error}"))
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
