//! The actions of other services that clients of load balancers call: for instances, networks,
//! security groups, addresses, tags, certificates, and the caller's identity.

pub(super) mod account;
pub(super) mod addresses;
mod certificate_content;
pub(super) mod certificates;
pub(super) mod deployments;
pub(super) mod instances;
pub(super) mod networks;
pub(super) mod security_groups;
mod selection;
pub(super) mod tags;
pub(super) mod zones;
