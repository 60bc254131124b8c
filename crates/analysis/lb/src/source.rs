//! The addresses from which a load balancer itself sends.

use std::net::IpAddr;

use uturn_model::IpNet;

/// Returns the address that replaces a source: the first of the range after the network's own. The
/// address must be bound where the load balancer runs.
pub fn replaced_source(range: IpNet) -> IpAddr {
    let first = match range {
        IpNet::V4(range) => range.hosts().next().map(IpAddr::V4),
        // The network's own address is the anycast address of all routers.
        IpNet::V6(range) => range.hosts().nth(1).map(IpAddr::V6),
    };
    first.unwrap_or_else(|| range.network())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_gives_its_first_address() {
        for (range, address) in [
            ("100.127.0.0/16", "100.127.0.1"),
            ("10.0.0.7/32", "10.0.0.7"),
            ("fd00::/64", "fd00::1"),
            ("fd00::7/128", "fd00::7"),
        ] {
            let range: IpNet = range.parse().unwrap();
            assert_eq!(replaced_source(range), address.parse::<IpAddr>().unwrap(), "{range}");
        }
    }
}
