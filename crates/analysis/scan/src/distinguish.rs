//! The means by which the cluster's rules distinguish addresses, ports and nodes.

pub(crate) mod captured;
pub(crate) mod captured_nodes;
pub(crate) mod discriminators;
pub(crate) mod policies;
pub(crate) mod range_index;
pub(crate) mod redundant_capture;
