//! A whole measurement, from a plan to counted outcomes.
//!
//! **Owns** the calls that a plan's flows stand for, the clients that make them, and the load
//! balancers while they are measured: what their processes and the kernel report of which flow.

mod client;
mod load_balancers;
mod measurement;
mod target;
mod workload;

pub(crate) use measurement::{measure, watch};
