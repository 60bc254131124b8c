//! The unit by which servers count clients.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Returns the address by which a client is counted: its own, or the first 64 bits of an IPv6
/// address, whose other bits the client can choose itself. IPv4 addresses within IPv6 ones, mapped
/// or from a translator, count as IPv4 addresses.
pub fn client_network(client: IpAddr) -> IpAddr {
    match client.to_canonical() {
        IpAddr::V4(v4) => v4.into(),
        IpAddr::V6(v6) => match v6.segments() {
            [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
                Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)).into()
            }
            [a, b, c, d, ..] => Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into(),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_client_is_its_network() {
        for (first, second, is_same) in [
            ("2001:db8::1", "2001:db8::2", true),
            ("2001:db8::1", "2001:db8::ffff:ffff:ffff:ffff", true),
            ("2001:db8::1", "2001:db8:0:1::1", false),
            ("192.0.2.1", "192.0.2.2", false),
            ("192.0.2.1", "::ffff:192.0.2.1", true),
            ("::ffff:192.0.2.1", "::ffff:192.0.2.2", false),
            ("64:ff9b::192.0.2.1", "64:ff9b::192.0.2.2", false),
            ("64:ff9b::192.0.2.1", "192.0.2.1", true),
        ] {
            let [first, second] = [first, second].map(|address| address.parse().unwrap());
            let same = client_network(first) == client_network(second);
            assert_eq!(same, is_same, "{first} {second}");
        }
    }
}
