//! Which clients, nodes and endpoints are alike for a target, and which targets are alike.

pub(crate) mod located;
pub(crate) mod node_classes;
pub(crate) mod scope;
pub(crate) mod signature;
pub(crate) mod target_classes;

/// Parts of a shape begin with this.
const PART: u64 = u64::MAX;
