//! How connection tracking states a connection in its messages.

use std::net::{IpAddr, SocketAddr};

use crate::netlink::{Attributes, find, read_port};

/// The type of a message that states a connection, or reports a new one.
pub const NEW: u16 = 1 << 8;
/// The type of a request for connections.
pub const GET: u16 = 1 << 8 | 1;
/// The type of a request to delete a connection.
pub const DELETE: u16 = 1 << 8 | 2;

/// The attribute with the [`Tuple`] of packets in the direction of the first.
pub const ORIGINAL: u16 = 1;
/// The attribute with the [`Tuple`] of packets in the other direction.
pub const REPLY: u16 = 2;

/// The numbers of protocols.
pub const TCP: u8 = 6;
/// The numbers of protocols.
pub const UDP: u8 = 17;

const IP: u16 = 1;
const PROTOCOL: u16 = 2;
/// The attributes of addresses in [`IP`], for IPv4 and IPv6.
const SOURCE: [u16; 2] = [1, 3];
const DESTINATION: [u16; 2] = [2, 4];
const NUMBER: u16 = 1;
const SOURCE_PORT: u16 = 2;
const DESTINATION_PORT: u16 = 3;

/// One direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tuple {
    /// The source of packets.
    pub source: SocketAddr,
    /// The destination of packets.
    pub destination: SocketAddr,
    /// The number of the protocol.
    pub protocol: u8,
}

impl Tuple {
    /// Reads the value of [`ORIGINAL`] or [`REPLY`]. Returns `None` if the protocol has no ports.
    pub fn read(attributes: &[u8]) -> Option<Self> {
        let addresses = find(attributes, IP)?;
        let protocol = find(attributes, PROTOCOL)?;
        let address = |[v4, v6]: [u16; 2]| match find(addresses, v4) {
            Some(bytes) => Some(IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?)),
            None => Some(IpAddr::from(<[u8; 16]>::try_from(find(addresses, v6)?).ok()?)),
        };
        let port = |kind| read_port(find(protocol, kind)?);
        Some(Self {
            source: SocketAddr::new(address(SOURCE)?, port(SOURCE_PORT)?),
            destination: SocketAddr::new(address(DESTINATION)?, port(DESTINATION_PORT)?),
            protocol: *find(protocol, NUMBER)?.first()?,
        })
    }

    /// Returns the value of [`ORIGINAL`] or [`REPLY`].
    pub fn attributes(&self) -> Attributes {
        let mut addresses = Attributes::default();
        for (end, [v4, v6]) in [(self.source, SOURCE), (self.destination, DESTINATION)] {
            addresses = match end.ip() {
                IpAddr::V4(ip) => addresses.bytes(v4, &ip.octets()),
                IpAddr::V6(ip) => addresses.bytes(v6, &ip.octets()),
            };
        }
        let protocol = Attributes::default()
            .bytes(NUMBER, &[self.protocol])
            .port(SOURCE_PORT, self.source.port())
            .port(DESTINATION_PORT, self.destination.port());
        Attributes::default().nested(IP, &addresses).nested(PROTOCOL, &protocol)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tuples_are_read_back() {
        for (source, destination, protocol) in [
            ("10.1.1.10:40000", "10.0.0.200:80", TCP),
            ("[fd00:1::10]:40000", "[fd00::200]:53", UDP),
        ] {
            let [source, destination] = [source, destination].map(|end| end.parse().unwrap());
            let tuple = Tuple { source, destination, protocol };
            let attributes = tuple.attributes();
            assert_eq!(Tuple::read(attributes.as_bytes()), Some(tuple));
            for length in 0..attributes.as_bytes().len() {
                assert_eq!(Tuple::read(&attributes.as_bytes()[..length]), None);
            }
        }
    }
}
