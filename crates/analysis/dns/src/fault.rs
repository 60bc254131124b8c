//! Errors in Corefiles.

use std::fmt;

use uturn_model::Origin;

/// An error for which CoreDNS would not start, or a feature that cannot be evaluated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The place of the error.
    pub origin: Origin,
    /// The message, with what was found and what was expected.
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.origin, self.message)
    }
}

impl std::error::Error for Fault {}
