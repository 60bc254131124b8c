//! Errors of the stage itself. A difference that the stage found is no fault.

use std::fmt;
use std::io;

/// An error message.
#[derive(Debug)]
pub(crate) struct Fault(String);

/// The result type of the stage.
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

/// Adds to an error what was being done when it occurred.
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
