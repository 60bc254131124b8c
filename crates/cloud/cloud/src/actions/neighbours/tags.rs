//! The tag service: tags of load balancers in every region.

pub(in crate::actions) mod attached;
pub(in crate::actions) mod change;
pub(in crate::actions) mod list;
pub(in crate::actions) mod names;
mod resource;
