//! The small cluster that stands for the whole one, and what it cannot say.

pub(crate) mod reduced_cluster;
pub(crate) mod representatives;
