//! Addresses that probes come from.

use std::net::IpAddr;

use uturn_model::lb::ProbeSource;
use uturn_model::{Family, IpNet};

/// The address that a load balancer with this address sends probes from.
pub fn probe_address(source: ProbeSource, vip: IpAddr) -> IpAddr {
    match source {
        ProbeSource::Vip => vip,
        ProbeSource::Reserved => prober(Family::of(vip)),
        ProbeSource::Range(range) => first_address(range),
    }
}

/// The first address of a range after the network's own.
pub fn first_address(range: IpNet) -> IpAddr {
    let first = match range {
        IpNet::V4(range) => range.hosts().next().map(IpAddr::V4),
        // The network's own address is every router's.
        IpNet::V6(range) => range.hosts().nth(1).map(IpAddr::V6),
    };
    first.unwrap_or_else(|| range.network())
}

/// An address of the range that probes come from when they do not come from the VIP:
/// 100.64.0.0/10. For IPv6 no range is documented; an address that nothing else has stands for
/// it.
pub fn prober(family: Family) -> IpAddr {
    match family {
        Family::V4 => IpAddr::from([100, 64, 0, 1]),
        Family::V6 => IpAddr::from([0x100, 0, 0, 0, 0, 0, 0, 0x64]),
    }
}
