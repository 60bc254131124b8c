//! The canonical form in which a client's address is compared, hashed, counted and forwarded.
//!
//! An IPv4 client has two forms: `192.0.2.1`, and `::ffff:192.0.2.1` if a socket accepts both
//! families or a PROXY header is written so. A rule for 192.0.2.0/24 must apply to both.

use std::net::{IpAddr, SocketAddr};

use uturn_model::{IpNet, Ipv4Net};

/// The bits before the IPv4 address in `::ffff:192.0.2.1`.
const MAPPED: u8 = 96;

/// Returns the canonical form of an address and its port: IPv4 if IPv6 only wraps it.
pub fn canonical(address: SocketAddr) -> SocketAddr {
    match address.ip().to_canonical() {
        IpAddr::V4(ip) => SocketAddr::new(IpAddr::V4(ip), address.port()),
        IpAddr::V6(_) => address,
    }
}

/// Returns the canonical form of a range of addresses.
pub fn canonical_range(range: IpNet) -> IpNet {
    let IpNet::V6(wrapped) = range else { return range };
    let length = wrapped.prefix_len().checked_sub(MAPPED);
    let inner = wrapped.addr().to_ipv4_mapped().zip(length);
    let inner = inner.and_then(|(address, length)| Ipv4Net::new(address, length).ok());
    inner.map_or(range, IpNet::V4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_that_ipv6_wraps_is_ipv4() {
        for (address, expected) in [
            ("192.0.2.1:80", "192.0.2.1:80"),
            ("[::ffff:192.0.2.1]:80", "192.0.2.1:80"),
            ("[::ffff:c000:201]:80", "192.0.2.1:80"),
            ("[fd00::1]:80", "[fd00::1]:80"),
            ("[fe80::1%2]:80", "[fe80::1%2]:80"),
            // These addresses do not belong to an IPv4 client.
            ("[::192.0.2.1]:80", "[::192.0.2.1]:80"),
            ("[64:ff9b::192.0.2.1]:80", "[64:ff9b::192.0.2.1]:80"),
        ] {
            let address: SocketAddr = address.parse().unwrap();
            assert_eq!(canonical(address), expected.parse().unwrap());
        }
    }

    #[test]
    fn a_range_that_ipv6_wraps_is_ipv4() {
        for (range, expected) in [
            ("::ffff:6.6.6.0/120", "6.6.6.0/24"),
            ("::ffff:6.6.6.6/128", "6.6.6.6/32"),
            ("::ffff:0.0.0.0/96", "0.0.0.0/0"),
            ("::ffff:0.0.0.0/95", "::ffff:0.0.0.0/95"),
            ("::/0", "::/0"),
            ("6.6.6.0/24", "6.6.6.0/24"),
        ] {
            let range: IpNet = range.parse().unwrap();
            assert_eq!(canonical_range(range), expected.parse().unwrap());
        }
    }
}
