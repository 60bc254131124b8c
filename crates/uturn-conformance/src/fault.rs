//! Why the stage could not do its work. A difference that it found is no fault.

use std::fmt;
use std::io;

/// What went wrong, in words.
#[derive(Debug)]
pub(crate) struct Fault(String);

/// The usual outcome.
pub(crate) type Outcome<T> = Result<T, Fault>;

impl Fault {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Says what was being done when it failed.
pub(crate) trait During<T> {
    fn during(self, what: impl fmt::Display) -> Outcome<T>;
}

impl<T> During<T> for io::Result<T> {
    fn during(self, what: impl fmt::Display) -> Outcome<T> {
        self.map_err(|error| Fault(format!("{what}: {error}")))
    }
}

impl<T> During<T> for serde_json::Result<T> {
    fn during(self, what: impl fmt::Display) -> Outcome<T> {
        self.map_err(|error| Fault(format!("{what}: {error}")))
    }
}
