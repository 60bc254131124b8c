//! Completes nodes and pods: places, addresses, ranges.

pub(in crate::derive) mod endpoint_pods;
pub(in crate::derive) mod families;
pub(in crate::derive) mod files;
pub(in crate::derive) mod labels;
pub(in crate::derive) mod nodes;
pub(in crate::derive) mod owners;
pub(in crate::derive) mod pod_ranges;
pub(in crate::derive) mod pods;
pub(in crate::derive) mod proxy_names;
pub(in crate::derive) mod ranges;
