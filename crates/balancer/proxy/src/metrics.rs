//! The counters of the data plane; `admin::metrics` prints them.
//!
//! **Counting takes no lock and no system call.** Values that every request counts are kept once
//! for each worker ([`ListenerMetrics`]), so that no two threads write the same cache line, and are
//! added up when they are read. A target's counters are beside the counter of its open requests,
//! which the request writes anyway.
//!
//! **The number of series is bounded** by the configuration: no label has a value that a client
//! chooses.

mod histogram;
mod listener;
mod target;

#[cfg(test)]
pub(crate) use histogram::Histogram;
pub(crate) use histogram::{BOUNDS, Counts};
pub(crate) use listener::{
    AnsweredBy, CLASSES, Cut, ListenerMetrics, OWN_STATUSES, Refusal, Shard, Sum,
};
pub(crate) use target::{ConnectFailure, PROBE_RESULTS, ProbeRecord, TargetMetrics};
