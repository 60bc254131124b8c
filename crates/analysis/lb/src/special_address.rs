//! Addresses to which a load balancer should not connect for others: those of this machine, of a
//! link, or of no machine.
//!
//! A user who may name targets could make the load balancer connect to services that only this
//! machine reaches. IPv6 has forms for IPv4 addresses, by which packets get there as well: such an
//! address counts as the IPv4 address to which it leads.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The reason why an address cannot belong to another machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Special {
    /// 0.0.0.0/8 and `::`, with which Linux connects to this machine.
    Unspecified,
    /// 127.0.0.0/8 and `::1`.
    Loopback,
    /// 169.254.0.0/16 and fe80::/10, which clouds use for metadata services.
    LinkLocal,
    /// 224.0.0.0/4 and ff00::/8.
    Multicast,
    /// 240.0.0.0/4, with the broadcast address.
    Reserved,
}

impl Special {
    /// Returns the kind of a special address. Returns `None` for an address that another machine
    /// may have.
    pub fn of(address: IpAddr) -> Option<Self> {
        match led_to(address) {
            IpAddr::V4(address) => Self::of_ipv4(address),
            IpAddr::V6(address) => Self::of_ipv6(address),
        }
    }

    fn of_ipv4(address: Ipv4Addr) -> Option<Self> {
        match address.octets()[0] {
            0 => Some(Self::Unspecified),
            127 => Some(Self::Loopback),
            224..=239 => Some(Self::Multicast),
            240.. => Some(Self::Reserved),
            _ => address.is_link_local().then_some(Self::LinkLocal),
        }
    }

    fn of_ipv6(address: Ipv6Addr) -> Option<Self> {
        match address {
            _ if address.is_unspecified() => Some(Self::Unspecified),
            _ if address.is_loopback() => Some(Self::Loopback),
            _ if address.is_multicast() => Some(Self::Multicast),
            _ if address.is_unicast_link_local() => Some(Self::LinkLocal),
            _ => None,
        }
    }

    /// Returns whether no machine can have such an address, not even this one at its operator's
    /// request.
    pub fn is_nobodys(self) -> bool {
        matches!(self, Self::Unspecified | Self::Multicast | Self::Reserved)
    }
}

impl fmt::Display for Special {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unspecified => "an unspecified address",
            Self::Loopback => "a loopback address",
            Self::LinkLocal => "a link-local address",
            Self::Multicast => "a multicast address",
            Self::Reserved => "a reserved address",
        })
    }
}

/// Returns the address to which packets for an address are delivered: the IPv4 address in an IPv6
/// address that is mapped (`::ffff:…`), compatible (`::…`), translated (64:ff9b::/96) or tunnelled
/// (2002::/16).
pub fn led_to(address: IpAddr) -> IpAddr {
    let IpAddr::V6(outer) = address else { return address };
    let inner = match outer.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => return address,
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x64, 0xff9b, 1, _, _, _, high, low]
        | [0x2002, high, low, ..] => (high, low),
        _ => return address,
    };
    let ([a, b], [c, d]) = (inner.0.to_be_bytes(), inner.1.to_be_bytes());
    IpAddr::V4(Ipv4Addr::new(a, b, c, d))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_are_of_no_other_machine() {
        use Special::{LinkLocal, Loopback, Multicast, Reserved, Unspecified};
        for (address, expected) in [
            ("10.0.0.1", None),
            ("100.64.0.1", None),
            ("128.0.0.1", None),
            ("169.253.255.255", None),
            ("fd00::1", None),
            ("2001:db8::7f00:1", None),
            ("::ffff:10.0.0.1", None),
            ("2002:a00:1::1", None),
            ("64:ff9b::10.0.0.1", None),
            ("0.0.0.0", Some(Unspecified)),
            ("0.1.2.3", Some(Unspecified)),
            ("::", Some(Unspecified)),
            ("::ffff:0.0.0.0", Some(Unspecified)),
            ("64:ff9b::0.0.0.0", Some(Unspecified)),
            ("127.0.0.1", Some(Loopback)),
            ("127.255.255.254", Some(Loopback)),
            ("::1", Some(Loopback)),
            ("::ffff:127.0.0.1", Some(Loopback)),
            ("::ffff:7f00:1", Some(Loopback)),
            ("::127.0.0.1", Some(Loopback)),
            ("::ffff:0:127.0.0.1", Some(Loopback)),
            ("64:ff9b::127.0.0.1", Some(Loopback)),
            ("64:ff9b:1::127.0.0.1", Some(Loopback)),
            ("2002:7f00:1::", Some(Loopback)),
            ("169.254.169.254", Some(LinkLocal)),
            ("fe80::1", Some(LinkLocal)),
            ("febf::1", Some(LinkLocal)),
            ("::ffff:169.254.169.254", Some(LinkLocal)),
            ("64:ff9b::a9fe:a9fe", Some(LinkLocal)),
            ("2002:a9fe:a9fe::1", Some(LinkLocal)),
            ("224.0.0.1", Some(Multicast)),
            ("ff02::1", Some(Multicast)),
            ("::ffff:239.1.1.1", Some(Multicast)),
            ("240.0.0.1", Some(Reserved)),
            ("255.255.255.255", Some(Reserved)),
        ] {
            let found = Special::of(address.parse().unwrap());
            assert_eq!(found, expected, "{address}");
        }
    }
}
