//! Parse errors with their place.

use std::fmt;

use uturn_model::{Origin, SourceName};

/// A place in a text that does not follow its format.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// The place.
    pub origin: Origin,
    /// A message that states what was found and what was expected.
    pub message: String,
}

/// An error in rules that parse but that the kernel would refuse to load. Displayed like a
/// [`ParseError`].
pub type LoadError = ParseError;

impl ParseError {
    pub(crate) fn at(origin: Origin, message: impl Into<String>) -> Self {
        Self { origin, message: message.into() }
    }

    pub(crate) fn new(
        file: &SourceName,
        line: u32,
        column: u32,
        message: impl Into<String>,
    ) -> Self {
        Self::at(Origin::at(file.clone(), line, column), message)
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.origin, self.message)
    }
}

impl std::error::Error for ParseError {}
