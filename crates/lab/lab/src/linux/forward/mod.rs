//! What forwards packets in a built cluster.
//!
//! **Owns** the rules of nodes, of the fabric and of its edge, the load balancers on layer 4 in the
//! kernel and as a process of their own, and the results of their health checks.

pub(crate) mod balancer_process;
pub(crate) mod call_counters;
pub(crate) mod health;
pub(crate) mod layer_4;
pub(crate) mod node_answers;
pub(crate) mod rules;
