//! Events that the controllers report to users of an object, with the documented codes.

use std::fmt;

use uturn_model::ObjectRef;

/// An event of a Service or an Ingress.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Event {
    /// The object.
    pub object: ObjectRef,
    /// The code: `E4011`, `W1002`. The same number means different things for a Service and for
    /// an Ingress.
    pub code: &'static str,
    /// The text for users.
    pub message: String,
}

impl Event {
    /// Returns an event.
    pub fn new(object: &ObjectRef, code: &'static str, message: impl Into<String>) -> Self {
        Self { object: object.clone(), code, message: message.into() }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}: {}", self.code, self.object, self.message)
    }
}
