//! Addresses that probes come from.

use std::net::IpAddr;

use uturn_model::Family;

/// An address of the range that probes come from when they do not come from the VIP:
/// 100.64.0.0/10. For IPv6 no range is documented; an address that nothing else has stands for
/// it.
pub fn prober(family: Family) -> IpAddr {
    match family {
        Family::V4 => IpAddr::from([100, 64, 0, 1]),
        Family::V6 => IpAddr::from([0x100, 0, 0, 0, 0, 0, 0, 0x64]),
    }
}
