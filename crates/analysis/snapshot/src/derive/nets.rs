//! Ranges of addresses around others.

use std::net::IpAddr;

use ipnet::IpNet;

/// Returns the range around an address with this prefix length, or for IPv6 with as many host bits.
pub(super) fn around(ip: IpAddr, length: u8) -> Option<IpNet> {
    let length = if ip.is_ipv4() { length } else { 128 - (32 - length) };
    IpNet::new(ip, length).ok().map(|net| net.trunc())
}

/// Iterates over the blocks of 256 addresses in a range. The first of several is left out: the
/// owner of the range uses it.
pub(super) fn blocks(net: IpNet) -> impl Iterator<Item = IpNet> {
    let length = net.prefix_len().max(net.max_prefix_len() - 8);
    let blocks = net.subnets(length).into_iter().flatten();
    blocks.skip(usize::from(length > net.prefix_len()))
}
