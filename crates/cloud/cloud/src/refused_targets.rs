//! Which targets tenants may not have.

use std::net::IpAddr;

/// Which targets are refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefusedTargets {
    /// Whether targets are refused that are no other machine's: loopback, link-local, multicast and
    /// unspecified addresses, those of load balancers, and these.
    pub local: bool,
    /// The addresses of the cloud itself, and those at which its data planes are driven.
    pub addresses: Vec<IpAddr>,
}
