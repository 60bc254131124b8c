//! What is known of a cluster before anything is made up: its cloud, its Service proxy, its network.

pub(in crate::derive) mod clouds;
pub(in crate::derive) mod extent;
pub(in crate::derive) mod plugin;
pub(in crate::derive) mod provider;
pub(in crate::derive) mod proxy;
pub(in crate::derive) mod service_proxy;
