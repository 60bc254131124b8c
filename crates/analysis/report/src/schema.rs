//! What uturn prints as JSON, as types: one module a command.
//!
//! Fields are printed in the order in which a type declares them. Their names are a contract:
//! fields may be added, none is renamed or taken away. `docs/schema` publishes these types as
//! JSON Schemas, with the comments of their fields as descriptions; tests hold both, and what
//! whole commands print, against each other.

pub mod baseline;
pub mod check;
mod common;
pub mod cure;
pub mod explain;
pub mod explain_classes;
pub mod lab;
pub mod lab_fuzz;
pub mod migrate;
pub mod probe;
#[cfg(feature = "schema")]
mod published;
pub mod sarif;
pub mod scan;
pub mod trace;
pub mod version;
pub mod walk;
pub mod whatif;

pub use common::{
    By, Flow, Hop, Leg, NotAnOutcome, Outcome, OutcomeShare, OutcomeWord, Severity, Step,
    Supposition,
};
#[cfg(feature = "schema")]
pub use published::published;
