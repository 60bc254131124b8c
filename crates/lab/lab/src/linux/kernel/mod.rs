//! The kernel, through system calls, netlink and its own programs.
//!
//! **Owns** namespaces and their settings, links, addresses and routes, tables of rules, virtual
//! servers of IPVS, and the kernel's reports. Knows nothing of clusters.

pub(crate) mod conntrack;
mod generic;
pub(crate) mod ipvs;
pub(crate) mod namespace;
pub(crate) mod netlink;
pub(crate) mod reports;
pub(crate) mod settings;
pub(crate) mod system;
pub(crate) mod tables;
pub(crate) mod wait;
