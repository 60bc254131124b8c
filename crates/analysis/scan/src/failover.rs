//! One target after the other, as arithmetic: how often requests end how.

pub(crate) mod failover_probability;
pub(crate) mod outcome_reuse;
pub(crate) mod retries;
pub(crate) mod retry_ring;
pub(crate) mod split_by_targets;
pub(crate) mod spread;
pub(crate) mod target_list;
pub(crate) mod target_outcome;
pub(crate) mod target_slots;
