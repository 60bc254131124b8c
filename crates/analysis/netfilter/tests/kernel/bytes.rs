//! Packets as bytes, with a tag that survives translation and identifies them.

use std::net::{IpAddr, Ipv4Addr};

use uturn_netfilter::{Packet, Transport};

/// Identifies a packet and its replies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mine {
    tag: u32,
    /// The acknowledgement number of the packet, which resets repeat.
    acknowledges: u32,
    /// The ICMP id that a packet and its reply share.
    id: u16,
    /// Whether it is a reply to a packet of the test.
    answers: bool,
    /// Whether it is an echo or timestamp request.
    asks: bool,
}

/// The relation of a captured packet to one of the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Relation {
    /// It is the packet.
    Itself,
    /// The node's kernel replied to it, as a listener or to an echo request.
    Answer,
    Reset,
    /// An ICMP error about it.
    Error(u8, u8),
}

const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;

impl Mine {
    /// The first packet of a connection.
    pub(crate) fn new(tag: u32, packet: &Packet) -> Self {
        let asks = matches!(packet.transport, Transport::Icmp { kind: 8 | 13, .. });
        Self { tag, acknowledges: tag ^ 0x5555_0000, id: tag as u16, answers: false, asks }
    }

    /// A later packet of another packet's connection.
    pub(crate) fn following(tag: u32, first: Self) -> Self {
        Self { tag, acknowledges: tag ^ 0x5555_0000, ..first }
    }

    /// A reply to another packet.
    pub(crate) fn answering(tag: u32, first: Self) -> Self {
        let acknowledges = first.tag.wrapping_add(1);
        Self { tag, acknowledges, id: first.id, answers: true, asks: false }
    }

    /// The bytes after the IP header.
    pub(crate) fn body(self, packet: &Packet, src: IpAddr) -> Vec<u8> {
        let tag = self.tag.to_be_bytes();
        match packet.transport {
            Transport::Tcp { src_port, dst_port, syn, ack } => {
                let flags = match (syn, ack) {
                    (true, false) => SYN,
                    (true, true) => SYN | ACK,
                    (false, _) => ACK,
                };
                let mut body = ports(src_port, dst_port);
                body.extend(tag);
                body.extend(if flags == SYN { [0; 4] } else { self.acknowledges.to_be_bytes() });
                body.extend([5 << 4, flags, 0xfa, 0xf0, 0, 0, 0, 0]);
                with_checksum(body, 16, Some((6, src, packet.dst)))
            }
            Transport::Udp { src_port, dst_port } => {
                let mut body = ports(src_port, dst_port);
                body.extend([0, 17, 0, 0]);
                body.extend(b"uturn");
                body.extend(tag);
                with_checksum(body, 6, Some((17, src, packet.dst)))
            }
            Transport::Sctp { src_port, dst_port } => {
                // INIT, or its reply.
                let mut body = ports(src_port, dst_port);
                body.extend(if self.answers {
                    self.acknowledges.wrapping_sub(1).to_be_bytes()
                } else {
                    [0; 4]
                });
                body.extend([0; 4]);
                body.extend([if self.answers { 2 } else { 1 }, 0, 0, 20]);
                body.extend(tag);
                body.extend([0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 1]);
                let sum = crc32c(&body).to_le_bytes();
                body[8..12].copy_from_slice(&sum);
                body
            }
            Transport::Icmp { kind, code } => {
                let number = self.id.to_be_bytes();
                let mut body = vec![kind, code, 0, 0, number[0], number[1], 0, 1];
                // A timestamp request and its reply have this length.
                body.extend(tag);
                body.extend([0; 8]);
                with_checksum(body, 2, None)
            }
            Transport::Reset { .. } | Transport::IcmpError { .. } => {
                panic!("a refusal is the kernel's, never a probe")
            }
        }
    }

    /// The relation of a captured packet to this one.
    pub(crate) fn relation(self, seen: &Captured<'_>) -> Option<Relation> {
        let body = seen.body;
        let at = |from: usize| {
            body.get(from..from + 4)
                .map(|four| u32::from_be_bytes([four[0], four[1], four[2], four[3]]))
        };
        let tag = Some(self.tag);
        match seen.protocol {
            6 => {
                let flags = *body.get(13)?;
                let acknowledges = at(8)?;
                if flags & RST != 0 {
                    let about = acknowledges.wrapping_sub(1) == self.tag
                        || acknowledges == self.tag
                        || at(4)? == self.acknowledges;
                    return about.then_some(Relation::Reset);
                }
                let answer =
                    flags & (SYN | ACK) == SYN | ACK && acknowledges == self.tag.wrapping_add(1);
                if at(4) == tag {
                    Some(Relation::Itself)
                } else {
                    answer.then_some(Relation::Answer)
                }
            }
            17 => (body.get(8..13)? == b"uturn" && at(13) == tag).then_some(Relation::Itself),
            132 => (at(16) == tag).then_some(Relation::Itself),
            1 => match *body.first()? {
                // An ICMP redirect does not end the packet.
                5 => None,
                kind @ (3 | 4 | 11 | 12) => {
                    let quoted = Captured::read(body.get(8..)?)?;
                    (self.relation(&quoted)? == Relation::Itself)
                        .then_some(Relation::Error(kind, body[1]))
                }
                // Such a reply repeats the request.
                kind => (at(8) == tag).then_some(if matches!(kind, 0 | 14) && self.asks {
                    Relation::Answer
                } else {
                    Relation::Itself
                }),
            },
            _ => None,
        }
    }
}

fn ports(src: u16, dst: u16) -> Vec<u8> {
    [src.to_be_bytes(), dst.to_be_bytes()].concat()
}

/// A parsed IPv4 packet.
#[derive(Debug)]
pub(crate) struct Captured<'b> {
    pub(crate) src: Ipv4Addr,
    pub(crate) dst: Ipv4Addr,
    protocol: u8,
    body: &'b [u8],
}

impl<'b> Captured<'b> {
    pub(crate) fn read(bytes: &'b [u8]) -> Option<Self> {
        let first = *bytes.first()?;
        let head = usize::from(first & 15) * 4;
        if first >> 4 != 4 || head < 20 || bytes.len() < head {
            return None;
        }
        let address =
            |at: usize| Ipv4Addr::new(bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]);
        Some(Self { src: address(12), dst: address(16), protocol: bytes[9], body: &bytes[head..] })
    }

    /// Source and destination port; 0 if the protocol has none.
    pub(crate) fn ports(&self) -> (u16, u16) {
        match (self.protocol, self.body) {
            (6 | 17 | 132, [a, b, c, d, ..]) => {
                (u16::from_be_bytes([*a, *b]), u16::from_be_bytes([*c, *d]))
            }
            _ => (0, 0),
        }
    }
}

/// A complete IPv4 packet.
pub(crate) fn whole(packet: &Packet, mine: Mine) -> Vec<u8> {
    let body = mine.body(packet, packet.src);
    let (IpAddr::V4(src), IpAddr::V4(dst)) = (packet.src, packet.dst) else {
        panic!("only packets of IPv4 are made here");
    };
    let length = (20 + body.len() as u16).to_be_bytes();
    let mut head = vec![0x45, 0, length[0], length[1], 0, 0, 0, 0, 64, packet.protocol().0, 0, 0];
    head.extend(src.octets());
    head.extend(dst.octets());
    [with_checksum(head, 10, None), body].concat()
}

fn with_checksum(mut bytes: Vec<u8>, at: usize, pseudo: Option<(u8, IpAddr, IpAddr)>) -> Vec<u8> {
    let mut all = Vec::new();
    if let Some((protocol, IpAddr::V4(src), IpAddr::V4(dst))) = pseudo {
        all.extend(src.octets());
        all.extend(dst.octets());
        all.extend([0, protocol]);
        all.extend((bytes.len() as u16).to_be_bytes());
    }
    all.extend(&bytes);
    let mut sum: u32 = all
        .chunks(2)
        .map(|two| u32::from(two[0]) << 8 | two.get(1).map_or(0, |low| u32::from(*low)))
        .sum();
    while sum > 0xffff {
        sum = (sum >> 16) + (sum & 0xffff);
    }
    let sum = if sum == 0xffff { sum } else { !sum };
    bytes[at..at + 2].copy_from_slice(&(sum as u16).to_be_bytes());
    bytes
}

/// SCTP's checksum (Castagnoli).
fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| {
            (sum >> 1) ^ if sum & 1 == 1 { 0x82f6_3b78 } else { 0 }
        })
    })
}

#[test]
fn checksums_are_those_of_the_books() {
    assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    let head =
        [0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0, 0, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0, 0xc7];
    assert_eq!(with_checksum(head.to_vec(), 10, None)[10..12], [0xb8, 0x61]);
}
