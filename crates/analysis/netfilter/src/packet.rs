//! Packets, where they enter a kernel and how they leave it.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use uturn_model::route::Leg;
use uturn_model::{Family, Protocol, Text};

use crate::end::RejectWith;

/// The parts of a packet that rules can match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Packet {
    /// The source address.
    pub src: IpAddr,
    /// The destination address.
    pub dst: IpAddr,
    /// The transport header.
    pub transport: Transport,
    /// The packet mark (`skb->mark`), which is lost when the packet leaves the node.
    pub mark: u32,
}

/// The transport header of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the fields are the protocols' own")]
pub enum Transport {
    /// TCP. With neither flag set it is a later packet of a connection, which carries an ACK.
    Tcp { src_port: u16, dst_port: u16, syn: bool, ack: bool },
    /// UDP.
    Udp { src_port: u16, dst_port: u16 },
    /// SCTP.
    Sctp { src_port: u16, dst_port: u16 },
    /// ICMP or, in an IPv6 packet, ICMPv6.
    Icmp { kind: u8, code: u8 },
    /// The reset of a TCP connection. For conntrack on the node that sends it, one that a rule sends is
    /// RELATED, and one of a port that nobody listens on an answer.
    Reset { src_port: u16, dst_port: u16, by_rule: bool },
    /// The ICMP error that tells the sender of a packet that it was refused. Rules see ICMP, from the
    /// packet's own source. `of`, `called` and `dst_port` are of the refused packet, by which its
    /// connection is found: its protocol, its destination, and the port that it came from.
    IcmpError { kind: u8, code: u8, of: IpProtocol, called: SocketAddr, dst_port: u16 },
}

impl Packet {
    /// The SYN of a TCP connection.
    pub fn tcp(src: SocketAddr, dst: SocketAddr) -> Self {
        Self::new(Protocol::Tcp, src, dst)
    }

    /// A UDP packet.
    pub fn udp(src: SocketAddr, dst: SocketAddr) -> Self {
        Self::new(Protocol::Udp, src, dst)
    }

    /// The first packet of a flow.
    pub fn new(protocol: Protocol, src: SocketAddr, dst: SocketAddr) -> Self {
        let (src_port, dst_port) = (src.port(), dst.port());
        let transport = match protocol {
            Protocol::Tcp => Transport::Tcp { src_port, dst_port, syn: true, ack: false },
            Protocol::Udp => Transport::Udp { src_port, dst_port },
            Protocol::Sctp => Transport::Sctp { src_port, dst_port },
        };
        Self { src: src.ip(), dst: dst.ip(), transport, mark: 0 }
    }

    /// Returns the packet's addresses and ports; port 0 if the protocol has none. For an ICMP
    /// error, they are those that an answer to the refused packet would have.
    pub fn leg(&self) -> Leg {
        if let Transport::IcmpError { called, dst_port, .. } = self.transport {
            return Leg { src: called, dst: SocketAddr::new(self.dst, dst_port) };
        }
        let (src_port, dst_port) = self.transport.ports();
        Leg { src: SocketAddr::new(self.src, src_port), dst: SocketAddr::new(self.dst, dst_port) }
    }

    /// The packet with other addresses and ports.
    #[must_use]
    pub fn with_leg(mut self, leg: Leg) -> Self {
        self.set_src(leg.src);
        self.set_dst(leg.dst);
        self
    }

    /// The reply to the packet, without a mark.
    #[must_use]
    pub fn reply(&self) -> Self {
        let transport = match self.transport {
            Transport::Tcp { src_port, dst_port, syn, ack } => Transport::Tcp {
                src_port: dst_port,
                dst_port: src_port,
                syn: syn && !ack,
                ack: true,
            },
            Transport::Udp { src_port, dst_port } => {
                Transport::Udp { src_port: dst_port, dst_port: src_port }
            }
            Transport::Sctp { src_port, dst_port } => {
                Transport::Sctp { src_port: dst_port, dst_port: src_port }
            }
            Transport::Icmp { kind, code } => {
                let kind = match (self.family(), kind) {
                    (Family::V4, 8) => 0,
                    (Family::V6, 128) => 129,
                    (_, other) => other,
                };
                Transport::Icmp { kind, code }
            }
            Transport::Reset { src_port, dst_port, by_rule } => {
                Transport::Reset { src_port: dst_port, dst_port: src_port, by_rule }
            }
            Transport::IcmpError { kind, code, of, called, dst_port } => {
                let (called, dst_port) = (SocketAddr::new(self.dst, dst_port), called.port());
                Transport::IcmpError { kind, code, of, called, dst_port }
            }
        };
        Self { src: self.dst, dst: self.src, transport, mark: 0 }
    }

    /// Returns the packet that a node sends to the sender if it refuses this packet, without a
    /// mark. The source of an ICMP error is the address that the packet was for if that is the
    /// node's own. Otherwise the source is left unspecified, for the route to the sender to select.
    #[must_use]
    pub fn refusal(&self, with: RejectWith, is_for_node: bool) -> Self {
        let (leg, of) = (self.leg(), self.connection_protocol());
        let back = Self { src: leg.dst.ip(), dst: leg.src.ip(), mark: 0, ..*self };
        let dst_port = leg.src.port();
        match with.icmp() {
            None => {
                let src_port = leg.dst.port();
                Self { transport: Transport::Reset { src_port, dst_port, by_rule: true }, ..back }
            }
            Some((kind, code)) => {
                let called = leg.dst;
                let transport = Transport::IcmpError { kind, code, of, called, dst_port };
                let src = if is_for_node { back.src } else { unspecified(self.family()) };
                Self { src, transport, ..back }
            }
        }
    }

    /// Returns the answer of a kernel if nobody listens on the port that the packet is for.
    #[must_use]
    pub fn refusal_of_port(&self) -> Self {
        match self.transport {
            Transport::Tcp { src_port, dst_port, .. } => {
                let (src_port, dst_port) = (dst_port, src_port);
                let transport = Transport::Reset { src_port, dst_port, by_rule: false };
                Self { transport, ..self.reply() }
            }
            Transport::Udp { .. } => self.refusal(RejectWith::default_for(self.family()), true),
            // SCTP answers for itself.
            _ => self.reply(),
        }
    }

    /// Whether it says that a packet was refused.
    pub fn is_refusal(&self) -> bool {
        matches!(self.transport, Transport::Reset { .. } | Transport::IcmpError { .. })
    }

    /// Returns the packet's address family.
    pub fn family(&self) -> Family {
        Family::of(self.dst)
    }

    /// The protocol number of its payload.
    pub fn protocol(&self) -> IpProtocol {
        match (self.transport, self.family()) {
            (Transport::Tcp { .. } | Transport::Reset { .. }, _) => IpProtocol::TCP,
            (Transport::Udp { .. }, _) => IpProtocol::UDP,
            (Transport::Sctp { .. }, _) => IpProtocol::SCTP,
            (Transport::Icmp { .. } | Transport::IcmpError { .. }, Family::V4) => IpProtocol::ICMP,
            (Transport::Icmp { .. } | Transport::IcmpError { .. }, Family::V6) => {
                IpProtocol::ICMPV6
            }
        }
    }

    /// The protocol of the connection that it belongs to.
    pub fn connection_protocol(&self) -> IpProtocol {
        match self.transport {
            Transport::IcmpError { of, .. } => of,
            _ => self.protocol(),
        }
    }

    /// The source of an ICMP error changes only with that of its connection.
    pub(crate) fn set_src(&mut self, src: SocketAddr) {
        match &mut self.transport {
            Transport::Tcp { src_port, .. }
            | Transport::Udp { src_port, .. }
            | Transport::Sctp { src_port, .. }
            | Transport::Reset { src_port, .. } => *src_port = src.port(),
            Transport::IcmpError { called, .. } if *called == src => return,
            Transport::IcmpError { called, .. } => *called = src,
            Transport::Icmp { .. } => {}
        }
        self.src = src.ip();
    }

    pub(crate) fn set_dst(&mut self, dst: SocketAddr) {
        self.dst = dst.ip();
        match &mut self.transport {
            Transport::Tcp { dst_port, .. }
            | Transport::Udp { dst_port, .. }
            | Transport::Sctp { dst_port, .. }
            | Transport::Reset { dst_port, .. }
            | Transport::IcmpError { dst_port, .. } => *dst_port = dst.port(),
            Transport::Icmp { .. } => {}
        }
    }
}

impl Transport {
    /// Type and code of an ICMP message.
    pub(crate) fn icmp(self) -> Option<(u8, u8)> {
        match self {
            Self::Icmp { kind, code } | Self::IcmpError { kind, code, .. } => Some((kind, code)),
            _ => None,
        }
    }

    /// Whether the kernel gives it the conntrack entry of the packet that it refuses.
    pub(crate) fn has_entry_of_refused(self) -> bool {
        matches!(self, Self::IcmpError { .. } | Self::Reset { by_rule: true, .. })
    }

    pub(crate) fn is_error(self) -> bool {
        matches!(self, Self::IcmpError { .. })
    }

    /// Source and destination port; 0 if the protocol has none.
    pub fn ports(self) -> (u16, u16) {
        match self {
            Self::Tcp { src_port, dst_port, .. }
            | Self::Udp { src_port, dst_port }
            | Self::Sctp { src_port, dst_port }
            | Self::Reset { src_port, dst_port, .. } => (src_port, dst_port),
            Self::Icmp { .. } | Self::IcmpError { .. } => (0, 0),
        }
    }
}

/// A protocol number of the IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct IpProtocol(pub u8);

impl IpProtocol {
    /// ICMP.
    pub const ICMP: Self = Self(1);
    /// TCP.
    pub const TCP: Self = Self(6);
    /// UDP.
    pub const UDP: Self = Self(17);
    /// ICMPv6.
    pub const ICMPV6: Self = Self(58);
    /// SCTP.
    pub const SCTP: Self = Self(132);

    const NAMES: [(u8, &'static str); 29] = [
        (1, "icmp"),
        (2, "igmp"),
        (4, "ipencap"),
        (6, "tcp"),
        (8, "egp"),
        (9, "igp"),
        (17, "udp"),
        (33, "dccp"),
        (41, "ipv6"),
        (43, "ipv6-route"),
        (44, "ipv6-frag"),
        (46, "rsvp"),
        (47, "gre"),
        (50, "esp"),
        (51, "ah"),
        (58, "ipv6-icmp"),
        (59, "ipv6-nonxt"),
        (60, "ipv6-opts"),
        (88, "eigrp"),
        (89, "ospf"),
        (94, "ipip"),
        (103, "pim"),
        (108, "ipcomp"),
        (112, "vrrp"),
        (115, "l2tp"),
        (132, "sctp"),
        (135, "mobility-header"),
        (136, "udplite"),
        (137, "mpls-in-ip"),
    ];

    /// Returns the protocol that a rule's `-p` names.
    pub fn from_word(word: &str) -> Option<Self> {
        match &*word.to_ascii_lowercase() {
            "icmpv6" => return Some(Self::ICMPV6),
            "mh" | "ipv6-mh" => return Some(Self(135)),
            _ => {}
        }
        let named = Self::NAMES.iter().find(|(_, name)| name.eq_ignore_ascii_case(word));
        named.map(|(number, _)| *number).or_else(|| word.parse().ok()).map(Self)
    }
}

impl From<Protocol> for IpProtocol {
    fn from(protocol: Protocol) -> Self {
        match protocol {
            Protocol::Tcp => Self::TCP,
            Protocol::Udp => Self::UDP,
            Protocol::Sctp => Self::SCTP,
        }
    }
}

impl fmt::Display for IpProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Self::NAMES.iter().find(|(number, _)| *number == self.0) {
            Some((_, name)) => f.write_str(name),
            None => self.0.fmt(f),
        }
    }
}

fn unspecified(family: Family) -> IpAddr {
    match family {
        Family::V4 => Ipv4Addr::UNSPECIFIED.into(),
        Family::V6 => Ipv6Addr::UNSPECIFIED.into(),
    }
}

/// The address with all bits outside the mask cleared.
pub(crate) fn within(ip: IpAddr, mask: IpAddr) -> IpAddr {
    match (ip, mask) {
        (IpAddr::V4(ip), IpAddr::V4(mask)) => IpAddr::V4(ip & mask),
        (IpAddr::V6(ip), IpAddr::V6(mask)) => IpAddr::V6(ip & mask),
        _ => ip,
    }
}

/// The place where a packet enters the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Entry {
    /// From the network, through this interface.
    Interface(Text),
    /// From a process on the node. An unspecified source address is filled in by source address
    /// selection.
    Local,
}
