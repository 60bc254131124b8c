//! The reduced cluster that represents the whole one, and what it lacks.

pub(crate) mod reduced_cluster;
pub(crate) mod representatives;
