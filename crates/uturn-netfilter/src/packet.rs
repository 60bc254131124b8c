//! Packets, where they enter a kernel and how they leave it.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use uturn_model::route::Leg;
use uturn_model::{By, Family, Protocol, Step, Supposition, Text};

use crate::ipvs::Forwarding;
use crate::packet_facts::{Facts, PacketFact};

/// A packet, as far as rules look at it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Packet {
    /// From.
    pub src: IpAddr,
    /// To.
    pub dst: IpAddr,
    /// What it carries.
    pub transport: Transport,
    /// The kernel's mark on it; lost when it leaves the node.
    pub mark: u32,
}

/// What a packet carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the fields are the protocols' own")]
pub enum Transport {
    /// TCP. Neither flag set means a later packet, which carries an acknowledgement.
    Tcp { src_port: u16, dst_port: u16, syn: bool, ack: bool },
    /// UDP.
    Udp { src_port: u16, dst_port: u16 },
    /// SCTP.
    Sctp { src_port: u16, dst_port: u16 },
    /// ICMP or, in an IPv6 packet, ICMPv6.
    Icmp { kind: u8, code: u8 },
}

impl Packet {
    /// The first packet of a TCP connection.
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

    /// Its addresses and ports; port 0 where it has none.
    pub fn leg(&self) -> Leg {
        let (src_port, dst_port) = self.transport.ports();
        Leg { src: SocketAddr::new(self.src, src_port), dst: SocketAddr::new(self.dst, dst_port) }
    }

    /// The same with other addresses and ports.
    #[must_use]
    pub fn with_leg(mut self, leg: Leg) -> Self {
        self.set_src(leg.src);
        self.set_dst(leg.dst);
        self
    }

    /// The answer to it, without a mark.
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

    /// Its family.
    pub fn family(&self) -> Family {
        Family::of(self.dst)
    }

    /// The number of the protocol it carries.
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
    /// Source and destination port; 0 where it has none.
    pub fn ports(self) -> (u16, u16) {
        match self {
            Self::Tcp { src_port, dst_port, .. }
            | Self::Udp { src_port, dst_port }
            | Self::Sctp { src_port, dst_port } => (src_port, dst_port),
            Self::Icmp { .. } => (0, 0),
        }
    }
}

/// A protocol by its number in the IP header.
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

    /// The protocol that a rule's `-p` names.
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

/// An address without the bits outside a mask.
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
    /// From outside, through this interface.
    Interface(Text),
    /// From a process on the node. An unspecified source address is filled in as the
    /// kernel would.
    Local,
}

/// What connection tracking remembers: the first packet's addresses as it came, and what
/// an answer to it will carry.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Connection {
    /// The protocol.
    pub protocol: IpProtocol,
    /// The first packet, before any translation.
    pub original: Leg,
    /// An answer, before any translation.
    pub reply: Leg,
    /// The connection's own mark.
    pub mark: u32,
    /// Where IPVS sent it, if it did.
    pub scheduled: Option<Scheduled>,
}

/// What IPVS remembers of a connection.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Scheduled {
    /// The client, as IPVS saw it.
    pub client: SocketAddr,
    /// The virtual server's address, as the client asked for it.
    pub address: SocketAddr,
    /// The real server.
    pub real: SocketAddr,
    /// How packets get there.
    pub method: Forwarding,
    /// Whether connection tracking remembers it too: `net.ipv4.vs.conntrack`.
    pub tracked: bool,
}

impl Connection {
    /// A connection that nothing translated.
    pub fn untranslated(packet: &Packet) -> Self {
        let (original, reply) = (packet.leg(), packet.reply().leg());
        Self { protocol: packet.protocol(), original, reply, mark: 0, scheduled: None }
    }

    /// Whether its source was translated.
    pub fn source_translated(&self) -> bool {
        self.original.src != self.reply.dst
    }

    /// Whether its destination was translated by a rule; what IPVS does is none.
    pub fn destination_translated(&self) -> bool {
        let given = self.scheduled.as_ref().map_or(self.reply.src, |one| one.address);
        self.original.dst != given
    }

    /// Whether connection tracking knows it, and not IPVS alone.
    pub(crate) fn is_tracked(&self) -> bool {
        self.scheduled.as_ref().is_none_or(|one| one.tracked)
    }
}

/// One way a packet can end.
#[derive(Clone, Debug, PartialEq)]
pub struct End {
    /// Its odds; the shares of all ends of a walk add up to 1.
    pub share: f64,
    /// How it ends.
    pub kind: EndKind,
    /// The packet as it leaves, arrives or dies.
    pub packet: Packet,
    /// The interface it leaves through.
    pub out: Option<Text>,
    /// The next hop, where it does not go straight to its destination.
    pub next_hop: Option<IpAddr>,
    /// What connection tracking now remembers of it, or knows while it is refused.
    pub connection: Option<Connection>,
    /// Rules threw dice on its way, and as it was dropped nobody remembers how they fell: the
    /// same packet, sent again, may end otherwise.
    pub redrawn_on_retry: bool,
    /// What happened, in order.
    pub steps: Vec<Step>,
    /// Rules on this way that nobody models. Where there are any, the share is no more
    /// than an even split.
    pub unknown: Vec<By>,
    /// Of these, what was followed both ways, and whether it holds on this one.
    pub open_questions: Vec<(Question, bool)>,
    /// What nothing said and was taken for true.
    pub supposed: Vec<Supposition>,
}

/// What a rule does that nobody models: one of two things.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The rule; of several that ask the same of the sender, the first on the way.
    pub by: By,
    /// Which two.
    pub about: QuestionSubject,
}

impl Question {
    /// Whether the other is the same: an answer to one answers it.
    pub fn is_same(&self, other: &Self) -> bool {
        match (self.about, other.about) {
            (QuestionSubject::Sender(fact), QuestionSubject::Sender(other)) => fact == other,
            (QuestionSubject::Sender(_), _) | (_, QuestionSubject::Sender(_)) => false,
            _ => self.by.rule == other.by.rule,
        }
    }

    /// In which case it holds, or does not: `the sender's user is 1337`, `rule -A … matches`.
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

/// What is not known of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuestionSubject {
    /// Whether it matches.
    Match,
    /// Whether it lets a packet pass that it matches, or keeps it.
    Pass,
    /// Whether this holds of who sends the packet.
    Sender(PacketFact),
    /// Whether an address is the node's own, where a capture does not say.
    Own,
    /// Whether the packet leaves through an interface, where no route says.
    Out,
}

/// What is taken for true: of rules that are not modelled, by how each is written, whether it
/// matches or lets packets pass; and of who sends a packet.
#[derive(Clone, Debug, Default)]
pub struct Assumptions {
    rules: Rc<[(Text, bool)]>,
    facts: Facts,
}

impl Assumptions {
    /// What is taken for true of the rule.
    pub fn of_rule(&self, by: &By) -> Option<bool> {
        self.rules.iter().find(|(rule, _)| *rule == by.rule).map(|(_, holds)| *holds)
    }

    /// What is taken for true of what is asked.
    pub fn answer(&self, question: &Question) -> Option<bool> {
        match question.about {
            QuestionSubject::Sender(fact) => self.facts.answer(fact),
            _ => self.of_rule(&question.by),
        }
    }

    /// The same, and an answer to one more question.
    #[must_use]
    pub fn with_answer(&self, question: &Question, holds: bool) -> Self {
        if let QuestionSubject::Sender(fact) = question.about {
            return self.with_fact(fact, holds);
        }
        let more = [(question.by.rule.clone(), holds)];
        let rules = self.rules.iter().cloned().chain(more).collect();
        Self { rules, facts: self.facts.clone() }
    }

    /// The same, and one more that is known of who sends the packet.
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
    /// Handed to a process of the node.
    Local,
    /// Left the node.
    Forward,
    /// Thrown away.
    Drop(DropReason),
    /// Refused, with an answer to the sender.
    Reject(RejectWith),
    /// Not followed to its end: too many rules that nobody models (or too many rules).
    Unsettled,
}

/// Why a packet was thrown away.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// A rule says so.
    Rule(By),
    /// A chain's policy says so.
    Policy(By),
    /// Its source is an address of the node itself.
    LocalSource,
    /// The way back to its source is not where it came from.
    ReversePathFilter,
    /// Its source is no address a packet may come from.
    MartianSource,
    /// Its destination is no address a packet may go to from there.
    MartianDestination,
    /// No route leads there. Who forwards also answers that the network is unreachable.
    NoRoute,
    /// A route says that it is unreachable, which is also answered.
    Unreachable,
    /// A route says that it is forbidden, which is also answered.
    Prohibited,
    /// A route says to drop it silently.
    Blackhole,
    /// The node does not forward.
    NotForwarding,
    /// It makes no sense where it stands.
    Invalid,
}

/// How a packet is refused.
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

    /// What a rule that says nothing else does.
    pub fn default_for(family: Family) -> Self {
        match family {
            Family::V4 => Self::IcmpPortUnreachable,
            Family::V6 => Self::Icmp6PortUnreachable,
        }
    }

    /// As iptables spells it.
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
