//! What the cluster's rules can tell apart: addresses, ports, nodes.

pub(crate) mod captured;
pub(crate) mod captured_nodes;
pub(crate) mod discriminators;
pub(crate) mod range_index;
pub(crate) mod redundant_capture;
