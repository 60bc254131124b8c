//! The lab on Linux: namespaces, links, rules, processes.
//!
//! Each folder uses those above it, and no other:
//!
//! ```text
//!   kernel     namespaces, links, routes and rules of any kernel
//!   run        the state, programs and threads of one run
//!   build      the cluster: fabric, edge, nodes, pods, and the links between them
//!   forward    rules of nodes and fabric, and load balancers
//!   serve      what answers in pods, and DNS
//!   observe    frames, drops and counters, and what they say of a failed connection
//!   measure    a plan: calls, clients, outcomes
//!
//!   cluster    the cluster in a box: kernel to serve, under a real control plane
//! ```

mod build;
#[cfg(feature = "cluster")]
pub(crate) mod cluster;
mod forward;
mod kernel;
mod measure;
mod observe;
mod run;
mod serve;
mod sweep;

pub(crate) use build::availability::available;
pub(crate) use measure::{measure, watch};
pub(crate) use sweep::sweep;
