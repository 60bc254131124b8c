//! Decodes frames: addresses, flags, and the fields that identify a packet.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A packet of TCP or UDP, or an ICMP error about one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Packet {
    pub(super) src: SocketAddr,
    pub(super) dst: SocketAddr,
    pub(super) body: Body,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Body {
    Tcp {
        flags: Flags,
        seq: u32,
        ack: u32,
        /// The number of bytes of payload.
        length: usize,
    },
    Udp(Vec<u8>),
    /// An ICMP error about a packet from the first address to the second.
    Error {
        message: &'static str,
        about: (SocketAddr, SocketAddr),
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flags(u8);

impl Flags {
    pub(super) fn is_fin(self) -> bool {
        self.0 & 1 != 0
    }
    pub(super) fn is_syn(self) -> bool {
        self.0 & 2 != 0
    }
    pub(super) fn is_rst(self) -> bool {
        self.0 & 4 != 0
    }
    pub(super) fn is_ack(self) -> bool {
        self.0 & 16 != 0
    }
}

impl Packet {
    /// Returns whether the packet begins a TCP connection.
    pub(super) fn is_syn(&self) -> bool {
        matches!(self.body, Body::Tcp { flags, .. } if flags.is_syn() && !flags.is_ack())
    }

    /// Returns whether the packet is the first answer to a SYN.
    pub(super) fn is_syn_ack(&self) -> bool {
        matches!(self.body, Body::Tcp { flags, .. } if flags.is_syn() && flags.is_ack())
    }

    pub(super) fn is_rst(&self) -> bool {
        matches!(self.body, Body::Tcp { flags, .. } if flags.is_rst())
    }

    /// Decodes a frame. Returns `None` for other protocols.
    pub(super) fn read(frame: &[u8]) -> Option<Self> {
        let kind = number(frame, 12)?;
        let packet = frame.get(14..)?;
        let (src, dst, protocol, body) = match kind {
            0x0800 => v4(packet)?,
            0x86dd => v6(packet)?,
            _ => return None,
        };
        let at = |ip, port| SocketAddr::new(ip, port);
        match protocol {
            6 => Some(Self {
                src: at(src, number(body, 0)?),
                dst: at(dst, number(body, 2)?),
                body: Body::Tcp {
                    flags: Flags(*body.get(13)?),
                    seq: word(body, 4)?,
                    ack: word(body, 8)?,
                    length: body.len().saturating_sub(usize::from(body.get(12)? >> 4) * 4),
                },
            }),
            17 => Some(Self {
                src: at(src, number(body, 0)?),
                dst: at(dst, number(body, 2)?),
                body: Body::Udp(body.get(8..)?.to_vec()),
            }),
            1 | 58 => {
                let message = icmp_message(protocol, *body.first()?, *body.get(1)?)?;
                let inner = body.get(8..)?;
                let (from, to, _, inner) = if protocol == 1 { v4(inner)? } else { v6(inner)? };
                let about = (at(from, number(inner, 0)?), at(to, number(inner, 2)?));
                Some(Self {
                    src: at(src, 0),
                    dst: at(dst, 0),
                    body: Body::Error { message, about },
                })
            }
            _ => None,
        }
    }
}

/// The source, the destination, the protocol and the payload.
type Parts<'a> = (IpAddr, IpAddr, u8, &'a [u8]);

fn v4(packet: &[u8]) -> Option<Parts<'_>> {
    let header = usize::from(packet.first()? & 15) * 4;
    let ip = |at: usize| -> Option<IpAddr> {
        Some(Ipv4Addr::from(<[u8; 4]>::try_from(packet.get(at..at + 4)?).ok()?).into())
    };
    // ICMP errors quote truncated packets; short frames are padded.
    let whole = usize::from(number(packet, 2)?).clamp(header, packet.len().max(header));
    Some((ip(12)?, ip(16)?, *packet.get(9)?, packet.get(header..whole)?))
}

fn v6(packet: &[u8]) -> Option<Parts<'_>> {
    let ip = |at: usize| -> Option<IpAddr> {
        Some(Ipv6Addr::from(<[u8; 16]>::try_from(packet.get(at..at + 16)?).ok()?).into())
    };
    Some((ip(8)?, ip(24)?, *packet.get(6)?, packet.get(40..)?))
}

fn icmp_message(protocol: u8, kind: u8, code: u8) -> Option<&'static str> {
    Some(match (protocol, kind, code) {
        (1, 3, 0) | (58, 1, 0) => "no route",
        (1, 3, 1) | (58, 1, 3) => "host unreachable",
        (1, 3, 3) | (58, 1, 4) => "port unreachable",
        (1, 3, 9 | 10 | 13) | (58, 1, 1) => "prohibited",
        (1, 3, _) | (58, 1, _) => "unreachable",
        (1, 11, _) | (58, 3, _) => "time to live exceeded",
        _ => return None,
    })
}

fn number(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

impl fmt::Display for Packet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.body {
            Body::Tcp { flags, length, .. } => {
                let names = [
                    (flags.is_syn(), "SYN"),
                    (flags.is_fin(), "FIN"),
                    (flags.is_rst(), "RST"),
                    (flags.is_ack(), "ACK"),
                ];
                let set: Vec<&str> =
                    names.iter().filter(|flag| flag.0).map(|flag| flag.1).collect();
                write!(f, "{} → {} {}", self.src, self.dst, set.join("-"))?;
                if *length > 0 {
                    write!(f, " {length} bytes")?;
                }
                Ok(())
            }
            Body::Udp(bytes) => {
                write!(f, "{} → {} UDP {} bytes", self.src, self.dst, bytes.len())
            }
            Body::Error { message, about: (from, to) } => {
                let (src, dst) = (self.src.ip(), self.dst.ip());
                write!(f, "{src} → {dst} ICMP: {message}, about {from} → {to}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a SYN of 10.1.1.10:40000 to 10.0.0.100:80, padded as short frames are.
    fn syn() -> Vec<u8> {
        let mut frame = vec![0; 12];
        frame.extend([8, 0, 0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0]);
        frame.extend([10, 1, 1, 10, 10, 0, 0, 100]);
        frame.extend([0x9c, 0x40, 0, 80, 0, 0, 0, 7, 0, 0, 0, 0, 0x50, 2, 0, 0, 0, 0, 0, 0]);
        frame.extend([0; 6]);
        frame
    }

    #[test]
    fn a_packet_is_read() {
        let packet = Packet::read(&syn()).unwrap();
        assert_eq!(packet.to_string(), "10.1.1.10:40000 → 10.0.0.100:80 SYN");
        assert!(packet.is_syn() && !packet.is_syn_ack());
    }

    #[test]
    fn an_error_says_what_it_is_about() {
        let mut frame = vec![0; 12];
        frame.extend([8, 0, 0x45, 0, 0, 56, 0, 0, 0, 0, 64, 1, 0, 0]);
        frame.extend([10, 0, 0, 11, 10, 1, 1, 10, 3, 3, 0, 0, 0, 0, 0, 0]);
        frame.extend(&syn()[14..42]);
        let packet = Packet::read(&frame).unwrap();
        let message = "10.0.0.11 → 10.1.1.10 ICMP: port unreachable, \
                    about 10.1.1.10:40000 → 10.0.0.100:80";
        assert_eq!(packet.to_string(), message);
    }

    #[test]
    fn half_a_frame_is_none() {
        let frame = syn();
        for length in 0..frame.len() - 12 {
            assert_eq!(Packet::read(&frame[..length]), None, "{length}");
        }
    }
}
