//! What runs in pods and answers calls.
//!
//! **Owns** the pods' own servers, nginx and HAProxy with the configuration that their ConfigMaps
//! mount, and the cluster's DNS.

pub(crate) mod haproxy;
pub(crate) mod names;
pub(crate) mod nginx;
pub(crate) mod server;
