//! Classes of clients, nodes and endpoints that are equivalent for a target, and shapes of
//! equivalent targets.

pub(crate) mod located;
pub(crate) mod node_classes;
pub(crate) mod scope;
pub(crate) mod signature;
pub(crate) mod target_classes;

/// The first number of each part of a shape.
const PART: u64 = u64::MAX;
