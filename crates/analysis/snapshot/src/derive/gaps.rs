//! Finds what decides about flows and is not known.

pub(in crate::derive) mod missing;
pub(in crate::derive) mod unjudged;
