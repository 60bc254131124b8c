//! Settings for targets that tenants may not use.

use std::net::IpAddr;

/// The targets that are refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefusedTargets {
    /// Whether targets are refused that are not another machine's: loopback, link-local, multicast
    /// and unspecified addresses, those of load balancers, and [`Self::addresses`].
    pub local: bool,
    /// The addresses of the cloud itself, and the admin addresses of its data planes.
    pub addresses: Vec<IpAddr>,
}
