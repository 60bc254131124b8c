//! Reads the kernel's reports of new connections: the address that was called, and the one that
//! answers.

use std::net::SocketAddr;

use uturn_model::Protocol;
use uturn_netns::conntrack::{NEW, ORIGINAL, REPLY, TCP, Tuple, UDP};
use uturn_netns::netlink::{Message, find};

/// The kernel's group for reports of new connections.
pub(crate) const NEW_CONNECTIONS: u32 = 1;

const MARK: u16 = 8;

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
pub(crate) fn connections(bytes: &[u8]) -> Vec<Connection> {
    let messages = Message::all(bytes).map_while(Result::ok);
    let reports = messages.filter(|message| message.kind == NEW);
    reports.filter_map(|message| connection(message.attributes())).collect()
}

fn connection(attributes: &[u8]) -> Option<Connection> {
    let original = Tuple::read(find(attributes, ORIGINAL)?)?;
    let reply = Tuple::read(find(attributes, REPLY)?)?;
    let protocol = match original.protocol {
        TCP => Protocol::Tcp,
        UDP => Protocol::Udp,
        _ => return None,
    };
    let mark = find(attributes, MARK).and_then(|bytes| bytes.first_chunk().copied());
    Some(Connection {
        protocol,
        called: original.destination,
        answers_from: reply.source,
        mark: mark.map_or(0, u32::from_be_bytes),
    })
}

#[cfg(test)]
mod tests {
    use uturn_netns::netlink::{Attributes, request};

    use super::*;

    fn tuple(source: &str, destination: &str, protocol: u8) -> Attributes {
        let [source, destination] = [source, destination].map(|text| text.parse().unwrap());
        Tuple { source, destination, protocol }.attributes()
    }

    fn message(original: &Attributes, reply: &Attributes) -> Vec<u8> {
        let attributes = Attributes::default().nested(ORIGINAL, original).nested(REPLY, reply);
        request(NEW, 0, 0, [2, 0, 0, 0], &attributes)
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
