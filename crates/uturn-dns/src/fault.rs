//! What is wrong with a Corefile, and where.

use std::fmt;

use uturn_model::Origin;

/// Why a Corefile cannot be taken for what CoreDNS would do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Where.
    pub origin: Origin,
    /// What was found and what was expected.
    pub message: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.origin, self.message)
    }
}

impl std::error::Error for Fault {}
