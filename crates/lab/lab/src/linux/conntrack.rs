//! Reads the kernel's reports of new connections: the address that was called, and the one that
//! answers.

use std::net::{IpAddr, SocketAddr};

use uturn_model::Protocol;

use super::generic::{Attribute, read_port, read_u16, read_u32};

/// The kernel's group for reports of new connections, and the type of its messages.
pub(crate) const NEW_CONNECTIONS: u32 = 1;
const MESSAGE: u16 = 1 << 8;

/// The length of the netlink header and the netfilter header.
const HEADERS: usize = 16 + 4;

const TUPLE_ORIGINAL: u16 = 1;
const TUPLE_REPLY: u16 = 2;
const MARK: u16 = 8;
const TUPLE_IP: u16 = 1;
const TUPLE_PROTOCOL: u16 = 2;
const SOURCE: [u16; 2] = [1, 3];
const DESTINATION: [u16; 2] = [2, 4];
const PROTOCOL: u16 = 1;
const SOURCE_PORT: u16 = 2;
const DESTINATION_PORT: u16 = 3;
const TCP: u8 = 6;
const UDP: u8 = 17;

/// A TCP or UDP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Connection {
    pub(crate) protocol: Protocol,
    /// The address that the first packet was sent to.
    pub(crate) called: SocketAddr,
    /// The source of answers: the target that the address was translated to.
    pub(crate) answers_from: SocketAddr,
    /// The mark of the connection.
    pub(crate) mark: u32,
}

/// Returns the TCP and UDP connections in a sequence of messages. Stops at the first malformed one.
pub(crate) fn connections(mut bytes: &[u8]) -> Vec<Connection> {
    let mut all = Vec::new();
    while let Some(length) = read_u32(bytes).map(|length| length as usize) {
        let Some(message) = bytes.get(..length).filter(|_| length >= HEADERS) else { break };
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        if message.get(4..).and_then(read_u16) == Some(MESSAGE) {
            all.extend(connection(&message[HEADERS..]));
        }
    }
    all
}

fn connection(message: &[u8]) -> Option<Connection> {
    let original = find(message, TUPLE_ORIGINAL)?;
    let protocol = match *find(find(original, TUPLE_PROTOCOL)?, PROTOCOL)?.first()? {
        TCP => Protocol::Tcp,
        UDP => Protocol::Udp,
        _ => return None,
    };
    let called = end(original, DESTINATION, DESTINATION_PORT)?;
    let answers_from = end(find(message, TUPLE_REPLY)?, SOURCE, SOURCE_PORT)?;
    let mark = find(message, MARK).and_then(|bytes| bytes.first_chunk().copied());
    Some(Connection { protocol, called, answers_from, mark: mark.map_or(0, u32::from_be_bytes) })
}

fn end(tuple: &[u8], [v4, v6]: [u16; 2], port: u16) -> Option<SocketAddr> {
    let addresses = find(tuple, TUPLE_IP)?;
    let ip = match find(addresses, v4) {
        Some(bytes) => IpAddr::from(<[u8; 4]>::try_from(bytes).ok()?),
        None => IpAddr::from(<[u8; 16]>::try_from(find(addresses, v6)?).ok()?),
    };
    Some(SocketAddr::new(ip, read_port(find(find(tuple, TUPLE_PROTOCOL)?, port)?)?))
}

fn find(attributes: &[u8], kind: u16) -> Option<&[u8]> {
    Attribute::all(attributes).find(|attribute| attribute.kind == kind).map(|found| found.value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::generic::Attributes;

    fn tuple(source: &str, destination: &str, protocol: u8) -> Attributes {
        let ends: [SocketAddr; 2] = [source, destination].map(|text| text.parse().unwrap());
        let mut addresses = Attributes::default();
        for (address, kinds) in ends.iter().zip([SOURCE, DESTINATION]) {
            addresses = match address.ip() {
                IpAddr::V4(ip) => addresses.bytes(kinds[0], &ip.octets()),
                IpAddr::V6(ip) => addresses.bytes(kinds[1], &ip.octets()),
            };
        }
        let transport = Attributes::default()
            .bytes(PROTOCOL, &[protocol])
            .port(SOURCE_PORT, ends[0].port())
            .port(DESTINATION_PORT, ends[1].port());
        Attributes::default().nested(TUPLE_IP, &addresses).nested(TUPLE_PROTOCOL, &transport)
    }

    fn message(original: &Attributes, reply: &Attributes) -> Vec<u8> {
        let attributes =
            Attributes::default().nested(TUPLE_ORIGINAL, original).nested(TUPLE_REPLY, reply);
        let attributes = attributes.as_bytes();
        let mut bytes = ((HEADERS + attributes.len()) as u32).to_ne_bytes().to_vec();
        bytes.extend(MESSAGE.to_ne_bytes());
        bytes.extend([0; 10]);
        bytes.extend([2, 0, 0, 0]);
        bytes.extend(attributes);
        bytes
    }

    #[test]
    fn connections_are_read() {
        let (called, target) = ("10.0.0.200:80", "10.0.0.11:30080");
        let v4 =
            message(&tuple("10.1.1.10:40000", called, TCP), &tuple(target, "10.1.1.10:40000", TCP));
        let (called_v6, target_v6) = ("[fd00::200]:53", "[fd00::11]:30053");
        let v6 = message(
            &tuple("[fd00:1::10]:40000", called_v6, UDP),
            &tuple(target_v6, "[fd00:1::10]:40000", UDP),
        );
        let echo =
            message(&tuple("1.2.3.4:0", "1.2.3.5:0", 1), &tuple("1.2.3.5:0", "1.2.3.4:0", 1));
        let connection = |protocol, called: &str, target: &str| Connection {
            protocol,
            called: called.parse().unwrap(),
            answers_from: target.parse().unwrap(),
            mark: 0,
        };
        let expected = [
            connection(Protocol::Tcp, called, target),
            connection(Protocol::Udp, called_v6, target_v6),
        ];
        assert_eq!(connections(&[v4.clone(), echo, v6].concat()), expected);
        for length in 0..v4.len() {
            assert_eq!(connections(&v4[..length]), []);
        }
    }
}
