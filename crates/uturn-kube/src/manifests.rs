//! What is applied to a cluster before the controllers run in it.

/// The definition of TkeServiceConfig, with a schema of this project's own.
pub const CONFIG_DEFINITION: &str = include_str!("../manifests/tkeserviceconfigs.yaml");

/// The account of the controllers, and what it may do.
pub const RIGHTS: &str = include_str!("../manifests/rights.yaml");
