//! Packets, where they enter a kernel and how they leave it.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use uturn_model::route::Leg;
use uturn_model::{By, Family, Protocol, Step, Supposition, Text};

use crate::ipvs::Forwarding;
use crate::packet_facts::{Facts, PacketFact};

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

    /// Its addresses and ports; port 0 if the protocol has none.
    pub fn leg(&self) -> Leg {
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
        };
        Self { src: self.dst, dst: self.src, transport, mark: 0 }
    }

    /// Its address family.
    pub fn family(&self) -> Family {
        Family::of(self.dst)
    }

    /// The protocol number of its payload.
    pub fn protocol(&self) -> IpProtocol {
        match (self.transport, self.family()) {
            (Transport::Tcp { .. }, _) => IpProtocol::TCP,
            (Transport::Udp { .. }, _) => IpProtocol::UDP,
            (Transport::Sctp { .. }, _) => IpProtocol::SCTP,
            (Transport::Icmp { .. }, Family::V4) => IpProtocol::ICMP,
            (Transport::Icmp { .. }, Family::V6) => IpProtocol::ICMPV6,
        }
    }

    pub(crate) fn set_src(&mut self, src: SocketAddr) {
        self.src = src.ip();
        match &mut self.transport {
            Transport::Tcp { src_port, .. }
            | Transport::Udp { src_port, .. }
            | Transport::Sctp { src_port, .. } => *src_port = src.port(),
            Transport::Icmp { .. } => {}
        }
    }

    pub(crate) fn set_dst(&mut self, dst: SocketAddr) {
        self.dst = dst.ip();
        match &mut self.transport {
            Transport::Tcp { dst_port, .. }
            | Transport::Udp { dst_port, .. }
            | Transport::Sctp { dst_port, .. } => *dst_port = dst.port(),
            Transport::Icmp { .. } => {}
        }
    }
}

impl Transport {
    /// Source and destination port; 0 if the protocol has none.
    pub fn ports(self) -> (u16, u16) {
        match self {
            Self::Tcp { src_port, dst_port, .. }
            | Self::Udp { src_port, dst_port }
            | Self::Sctp { src_port, dst_port } => (src_port, dst_port),
            Self::Icmp { .. } => (0, 0),
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

/// The address with all bits outside the mask cleared.
pub(crate) fn within(ip: IpAddr, mask: IpAddr) -> IpAddr {
    match (ip, mask) {
        (IpAddr::V4(ip), IpAddr::V4(mask)) => IpAddr::V4(ip & mask),
        (IpAddr::V6(ip), IpAddr::V6(mask)) => IpAddr::V6(ip & mask),
        _ => ip,
    }
}

/// Where a packet enters the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Entry {
    /// From the network, through this interface.
    Interface(Text),
    /// From a process on the node. An unspecified source address is filled in by source address
    /// selection.
    Local,
}

/// A conntrack entry: the addresses of the first packet before any translation, and those that a
/// reply to it will carry.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Connection {
    /// The protocol.
    pub protocol: IpProtocol,
    /// The tuple of the first packet, before any translation.
    pub original: Leg,
    /// The tuple of the reply, before any translation.
    pub reply: Leg,
    /// The connection mark.
    pub mark: u32,
    /// The IPVS scheduling decision, if IPVS handled the connection.
    pub scheduled: Option<Scheduled>,
}

/// What IPVS records about a connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Scheduled {
    /// The client's address, as IPVS saw it.
    pub client: SocketAddr,
    /// The virtual server's address that the client called.
    pub address: SocketAddr,
    /// The real server.
    pub real: SocketAddr,
    /// How packets are forwarded to the real server.
    pub method: Forwarding,
    /// Whether conntrack also has an entry for it: `net.ipv4.vs.conntrack`.
    pub tracked: bool,
}

impl Connection {
    /// An entry for a packet that no rule translates.
    pub fn untranslated(packet: &Packet) -> Self {
        let (original, reply) = (packet.leg(), packet.reply().leg());
        Self { protocol: packet.protocol(), original, reply, mark: 0, scheduled: None }
    }

    /// Whether the source was translated (SNAT or MASQUERADE).
    pub fn source_translated(&self) -> bool {
        self.original.src != self.reply.dst
    }

    /// Whether a rule translated the destination (DNAT). IPVS does not count.
    pub fn destination_translated(&self) -> bool {
        let given = self.scheduled.as_ref().map_or(self.reply.src, |scheduled| scheduled.address);
        self.original.dst != given
    }

    /// Whether conntrack has an entry for it, rather than IPVS alone.
    pub(crate) fn is_tracked(&self) -> bool {
        self.scheduled.as_ref().is_none_or(|scheduled| scheduled.tracked)
    }
}

/// One possible end of a walk.
#[derive(Clone, Debug, PartialEq)]
pub struct End {
    /// The probability of this end; the shares of all ends of a walk sum to 1.
    pub share: f64,
    /// How it ends.
    pub kind: EndKind,
    /// The packet as it leaves, is delivered or is dropped.
    pub packet: Packet,
    /// The outgoing interface.
    pub out: Option<Text>,
    /// The next hop, unless the destination is on the link.
    pub next_hop: Option<IpAddr>,
    /// The conntrack entry after the walk; for a rejected packet, the entry at the time.
    pub connection: Option<Connection>,
    /// Whether a retransmission may end differently: random rules decided, and because the packet
    /// was dropped, no conntrack entry records the decision.
    pub redrawn_on_retry: bool,
    /// The steps of the walk, in order.
    pub steps: Vec<Step>,
    /// The rules on this branch that are not modelled. If there are any, the share is an even
    /// split rather than a probability.
    pub unknown: Vec<By>,
    /// The questions on which the walk branched, each with the answer that this branch assumes.
    pub open_questions: Vec<(Question, bool)>,
    /// Assumptions made for state that is not known.
    pub supposed: Vec<Supposition>,
}

/// A yes-or-no question that a walk could not answer and branched on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The rule that asks; if several rules ask the same about the sender, the first of them.
    pub by: By,
    /// What is asked.
    pub about: QuestionSubject,
}

impl Question {
    /// Whether both ask the same, so that an answer to one answers the other.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self.about, other.about) {
            (QuestionSubject::Sender(fact), QuestionSubject::Sender(other)) => fact == other,
            (QuestionSubject::Sender(_), _) | (_, QuestionSubject::Sender(_)) => false,
            _ => self.by.rule == other.by.rule,
        }
    }

    /// The assumed answer in words: `the sender's user is 1337`, `rule -A … matches`.
    pub fn describe(&self, holds: bool) -> String {
        let does = match (self.about, holds) {
            (QuestionSubject::Sender(fact), _) => return fact.describe(holds),
            (QuestionSubject::Match, true) => "matches",
            (QuestionSubject::Match, false) => "does not match",
            (QuestionSubject::Pass, true) => "lets it pass",
            (QuestionSubject::Pass, false) => "keeps it",
            (QuestionSubject::Own, true) => return format!("{} is one of this node", self.by.rule),
            (QuestionSubject::Own, false) => {
                return format!("{} is none of this node", self.by.rule);
            }
            (QuestionSubject::Out, true) => return format!("it leaves through {}", self.by.rule),
            (QuestionSubject::Out, false) => {
                return format!("it does not leave through {}", self.by.rule);
            }
        };
        format!("rule {} {does}", self.by)
    }
}

/// What a question is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuestionSubject {
    /// Whether the rule matches.
    Match,
    /// Whether the rule's target lets the packet pass or keeps it.
    Pass,
    /// Whether a fact about the sender holds.
    Sender(PacketFact),
    /// Whether an address belongs to the node, if the capture has no addresses.
    Own,
    /// Whether the packet leaves through an interface, if the capture has no routes.
    Out,
}

/// Assumptions given to a walk: for rules that are not modelled, by their text, whether they
/// match or let packets pass; and facts about the sender.
#[derive(Clone, Debug, Default)]
pub struct Assumptions {
    rules: Rc<[(Text, bool)]>,
    facts: Facts,
}

impl Assumptions {
    /// The answer assumed for a rule.
    pub fn of_rule(&self, by: &By) -> Option<bool> {
        self.rules.iter().find(|(rule, _)| *rule == by.rule).map(|(_, holds)| *holds)
    }

    /// The answer assumed for a question.
    pub fn answer(&self, question: &Question) -> Option<bool> {
        match question.about {
            QuestionSubject::Sender(fact) => self.facts.answer(fact),
            _ => self.of_rule(&question.by),
        }
    }

    /// Adds the answer to a question.
    #[must_use]
    pub fn with_answer(&self, question: &Question, holds: bool) -> Self {
        if let QuestionSubject::Sender(fact) = question.about {
            return self.with_fact(fact, holds);
        }
        let more = [(question.by.rule.clone(), holds)];
        let rules = self.rules.iter().cloned().chain(more).collect();
        Self { rules, facts: self.facts.clone() }
    }

    /// Adds a fact about the sender.
    #[must_use]
    pub fn with_fact(&self, fact: PacketFact, holds: bool) -> Self {
        let mut facts = self.facts.clone();
        facts.add(fact, holds);
        Self { rules: Rc::clone(&self.rules), facts }
    }

    pub(crate) fn facts(&self) -> &Facts {
        &self.facts
    }
}

/// How a packet ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EndKind {
    /// Delivered to a local process.
    Local,
    /// Left the node.
    Forward,
    /// Dropped silently, or with an ICMP error for routing failures.
    Drop(DropReason),
    /// Rejected, with a reply to the sender.
    Reject(RejectWith),
    /// Abandoned: too many branches, or too many rules evaluated.
    Unsettled,
}

/// Why a packet was dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// A rule drops it.
    Rule(By),
    /// The policy of a base chain drops it.
    Policy(By),
    /// Its source is one of the node's own addresses.
    LocalSource,
    /// The reverse path filter drops it: the route to its source uses another interface.
    ReversePathFilter,
    /// Its source is an address that no packet may have.
    MartianSource,
    /// Its destination is an address that no packet may have here.
    MartianDestination,
    /// No route matches. A forwarding node also sends a network-unreachable error.
    NoRoute,
    /// The route is `unreachable`; an ICMP error is sent.
    Unreachable,
    /// The route is `prohibit`; an ICMP error is sent.
    Prohibited,
    /// The route is `blackhole`.
    Blackhole,
    /// The node does not forward.
    NotForwarding,
    /// The packet is invalid in its position.
    Invalid,
}

/// The reply that a REJECT sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is the option of that name")]
pub enum RejectWith {
    IcmpNetUnreachable,
    IcmpHostUnreachable,
    IcmpProtoUnreachable,
    IcmpPortUnreachable,
    IcmpNetProhibited,
    IcmpHostProhibited,
    IcmpAdminProhibited,
    Icmp6NoRoute,
    Icmp6AdmProhibited,
    Icmp6AddrUnreachable,
    Icmp6PortUnreachable,
    Icmp6PolicyFail,
    Icmp6RejectRoute,
    TcpReset,
}

impl RejectWith {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::IcmpNetUnreachable,
        Self::IcmpHostUnreachable,
        Self::IcmpProtoUnreachable,
        Self::IcmpPortUnreachable,
        Self::IcmpNetProhibited,
        Self::IcmpHostProhibited,
        Self::IcmpAdminProhibited,
        Self::Icmp6NoRoute,
        Self::Icmp6AdmProhibited,
        Self::Icmp6AddrUnreachable,
        Self::Icmp6PortUnreachable,
        Self::Icmp6PolicyFail,
        Self::Icmp6RejectRoute,
        Self::TcpReset,
    ];

    /// The reply of a REJECT rule without options.
    pub fn default_for(family: Family) -> Self {
        match family {
            Family::V4 => Self::IcmpPortUnreachable,
            Family::V6 => Self::Icmp6PortUnreachable,
        }
    }

    /// The name that iptables uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::IcmpNetUnreachable => "icmp-net-unreachable",
            Self::IcmpHostUnreachable => "icmp-host-unreachable",
            Self::IcmpProtoUnreachable => "icmp-proto-unreachable",
            Self::IcmpPortUnreachable => "icmp-port-unreachable",
            Self::IcmpNetProhibited => "icmp-net-prohibited",
            Self::IcmpHostProhibited => "icmp-host-prohibited",
            Self::IcmpAdminProhibited => "icmp-admin-prohibited",
            Self::Icmp6NoRoute => "icmp6-no-route",
            Self::Icmp6AdmProhibited => "icmp6-adm-prohibited",
            Self::Icmp6AddrUnreachable => "icmp6-addr-unreachable",
            Self::Icmp6PortUnreachable => "icmp6-port-unreachable",
            Self::Icmp6PolicyFail => "icmp6-policy-fail",
            Self::Icmp6RejectRoute => "icmp6-reject-route",
            Self::TcpReset => "tcp-reset",
        }
    }
}

impl fmt::Display for RejectWith {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}
