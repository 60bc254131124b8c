//! Failover by arithmetic: the probabilities with which requests end, where a load balancer tries
//! one target after the other.

pub(crate) mod failover_probability;
pub(crate) mod outcome_reuse;
pub(crate) mod retries;
pub(crate) mod retry_ring;
pub(crate) mod split_by_targets;
pub(crate) mod spread;
pub(crate) mod target_list;
pub(crate) mod target_outcome;
pub(crate) mod target_slots;
