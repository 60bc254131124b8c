//! The cluster that is built.
//!
//! **Owns** the namespaces of the fabric, the edge, nodes and pods, the links and tunnels between
//! them, and the check whether all that can be built here.

pub(crate) mod availability;
pub(crate) mod edge;
pub(crate) mod handover;
pub(crate) mod kernel_parts;
pub(crate) mod lab_cluster;
pub(crate) mod links;
pub(crate) mod pods;
pub(crate) mod public;
pub(crate) mod tunnel;
