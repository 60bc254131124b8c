//! What a rule can ask of a packet beyond its addresses.

use std::net::IpAddr;

use uturn_model::Text;

use super::{Addresses, Not};
use crate::ipvs::Forwarding;
use crate::packet::IpProtocol;

/// One `-m`. Rules come by the hundred thousand, so what is large and rare is boxed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Match {
    /// `comment`: asks nothing.
    Comment(Text),
    /// `tcp`
    Tcp(Tcp),
    /// `udp`
    Udp(Udp),
    /// `sctp`, its ports only.
    Sctp(Udp),
    /// `icmp` or `icmp6`
    Icmp(Icmp),
    /// `multiport`
    Multiport(Box<Multiport>),
    /// `conntrack`
    Conntrack(Box<Conntrack>),
    /// `state`
    State(Box<Not<Vec<CtState>>>),
    /// `addrtype`
    AddrType(Box<AddrType>),
    /// `mark`
    Mark(MarkMatch),
    /// `connmark`
    Connmark(MarkMatch),
    /// `statistic`
    Statistic(Statistic),
    /// `recent`
    Recent(Box<Recent>),
    /// `nfacct`: counts in a named object.
    Nfacct(Text),
    /// `iprange`
    Iprange(Box<Iprange>),
    /// `set`
    Set(Box<SetMatch>),
    /// `ipvs`
    Ipvs(Box<IpvsMatch>),
    /// `rpfilter`
    Rpfilter(Rpfilter),
    /// One that is kept as it was written.
    Other(Box<Extension>),
}

/// A match or target kept as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extension {
    /// Its name.
    pub name: Text,
    /// Its options and their values, each a word.
    pub words: Vec<Text>,
}

/// Ports from the first to the last; one port when they are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortRange {
    /// The first.
    pub first: u16,
    /// The last.
    pub last: u16,
}

impl PortRange {
    /// One port.
    pub fn one(port: u16) -> Self {
        Self { first: port, last: port }
    }

    pub(crate) fn contains(&self, port: u16) -> bool {
        (self.first..=self.last).contains(&port)
    }
}

/// `-m tcp`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tcp {
    /// `--sport`
    pub sport: Option<Not<PortRange>>,
    /// `--dport`
    pub dport: Option<Not<PortRange>>,
    /// `--tcp-flags`: those that are looked at, and those of them that must be set, as
    /// the bits of the header.
    pub flags: Option<Not<(u8, u8)>>,
}

/// `-m udp`, and the ports of `-m sctp`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Udp {
    /// `--sport`
    pub sport: Option<Not<PortRange>>,
    /// `--dport`
    pub dport: Option<Not<PortRange>>,
}

/// `-m icmp` and `-m icmp6`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Icmp {
    /// Whether it is ICMPv6.
    pub v6: bool,
    /// The kind, and a code where one is named; none means any.
    pub kind: Option<Not<(u8, Option<u8>)>>,
}

/// `-m multiport`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Multiport {
    /// Which port is looked at.
    pub side: PortSide,
    /// The ports.
    pub ports: Not<Vec<PortRange>>,
}

/// Which of a packet's ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PortSide {
    /// `--sports`
    Source,
    /// `--dports`
    Destination,
    /// `--ports`
    Either,
}

/// `-m conntrack`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conntrack {
    /// `--ctstate`
    pub states: Option<Not<Vec<CtState>>>,
    /// `--ctstatus`; empty means `NONE`.
    pub status: Option<Not<Vec<CtStatus>>>,
    /// `--ctdir`
    pub direction: Option<CtDirection>,
    /// `--ctproto`
    pub protocol: Option<Not<IpProtocol>>,
    /// `--ctorigsrc`
    pub original_src: Option<Not<Addresses>>,
    /// `--ctorigdst`
    pub original_dst: Option<Not<Addresses>>,
    /// `--ctreplsrc`
    pub reply_src: Option<Not<Addresses>>,
    /// `--ctrepldst`
    pub reply_dst: Option<Not<Addresses>>,
    /// `--ctorigsrcport`
    pub original_src_port: Option<Not<PortRange>>,
    /// `--ctorigdstport`
    pub original_dst_port: Option<Not<PortRange>>,
    /// `--ctreplsrcport`
    pub reply_src_port: Option<Not<PortRange>>,
    /// `--ctrepldstport`
    pub reply_dst_port: Option<Not<PortRange>>,
}

/// A state of a connection, as rules see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is the state of that name")]
pub enum CtState {
    Invalid,
    New,
    Related,
    Established,
    Untracked,
    Snat,
    Dnat,
}

impl CtState {
    /// All of them, in the order in which they are printed.
    pub const ALL: [(Self, &'static str); 7] = [
        (Self::Invalid, "INVALID"),
        (Self::New, "NEW"),
        (Self::Related, "RELATED"),
        (Self::Established, "ESTABLISHED"),
        (Self::Untracked, "UNTRACKED"),
        (Self::Snat, "SNAT"),
        (Self::Dnat, "DNAT"),
    ];
}

/// What connection tracking knows of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is the status of that name")]
pub enum CtStatus {
    Expected,
    SeenReply,
    Assured,
    Confirmed,
}

impl CtStatus {
    /// All of them, in the order in which they are printed.
    pub const ALL: [(Self, &'static str); 4] = [
        (Self::Expected, "EXPECTED"),
        (Self::SeenReply, "SEEN_REPLY"),
        (Self::Assured, "ASSURED"),
        (Self::Confirmed, "CONFIRMED"),
    ];
}

/// Direction of a packet in its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CtDirection {
    /// As the first packet went.
    Original,
    /// The other way.
    Reply,
}

/// `-m addrtype`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AddrType {
    /// `--src-type`
    pub src: Option<Not<Vec<AddrKind>>>,
    /// `--dst-type`
    pub dst: Option<Not<Vec<AddrKind>>>,
    /// `--limit-iface-in`, `--limit-iface-out`
    pub limit: Option<LimitInterface>,
}

/// Only addresses of one interface count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LimitInterface {
    /// The one the packet came in through.
    In,
    /// The one it leaves through.
    Out,
}

/// What an address is to this node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is the type of that name")]
pub enum AddrKind {
    Unspec,
    Unicast,
    Local,
    Broadcast,
    Anycast,
    Multicast,
    Blackhole,
    Unreachable,
    Prohibit,
    Throw,
}

impl AddrKind {
    /// All of them, in the order in which they are printed.
    pub const ALL: [(Self, &'static str); 10] = [
        (Self::Unspec, "UNSPEC"),
        (Self::Unicast, "UNICAST"),
        (Self::Local, "LOCAL"),
        (Self::Broadcast, "BROADCAST"),
        (Self::Anycast, "ANYCAST"),
        (Self::Multicast, "MULTICAST"),
        (Self::Blackhole, "BLACKHOLE"),
        (Self::Unreachable, "UNREACHABLE"),
        (Self::Prohibit, "PROHIBIT"),
        (Self::Throw, "THROW"),
    ];
}

/// `-m mark` and `-m connmark`: the mark under the mask is the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkMatch {
    /// Whether it must not be.
    pub not: bool,
    /// The value.
    pub value: u32,
    /// Which bits count.
    pub mask: u32,
}

/// `-m statistic`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// `--mode random`
    Random(Not<Probability>),
    /// `--mode nth`: one packet of `every`, the first after `packet` others.
    Nth {
        /// Whether all others are meant.
        not: bool,
        /// Of how many.
        every: u32,
        /// Which one.
        packet: u32,
    },
}

/// Odds as the kernel keeps them: in steps of 2⁻³¹.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Probability(u32);

impl Probability {
    const ONE: f64 = 2_147_483_648.0;

    /// The odds nearest to a number from 0 to 1.
    pub fn new(odds: f64) -> Option<Self> {
        (0.0..=1.0).contains(&odds).then(|| Self((odds * Self::ONE).round() as u32))
    }

    /// As a number from 0 to 1.
    pub fn odds(self) -> f64 {
        f64::from(self.0) / Self::ONE
    }
}

/// `-m recent`: a list of addresses that rules fill and ask.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recent {
    /// What it does, and whether the opposite is meant.
    pub action: Not<RecentAction>,
    /// `--seconds`
    pub seconds: Option<u32>,
    /// `--reap`
    pub reap: bool,
    /// `--hitcount`
    pub hitcount: Option<u32>,
    /// `--rttl`
    pub rttl: bool,
    /// `--name`
    pub name: Text,
    /// `--mask`
    pub mask: Option<IpAddr>,
    /// `--rdest` instead of `--rsource`
    pub rdest: bool,
}

/// What `-m recent` does with the packet's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecentAction {
    /// Puts it on the list.
    Set,
    /// Asks whether it is on the list.
    Check,
    /// Asks, and notes the time.
    Update,
    /// Takes it off the list.
    Remove,
}

/// `-m iprange`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Iprange {
    /// `--src-range`
    pub src: Option<Not<(IpAddr, IpAddr)>>,
    /// `--dst-range`
    pub dst: Option<Not<(IpAddr, IpAddr)>>,
}

/// `-m set`: whether addresses and ports of the packet are in a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetMatch {
    /// The set's name, and whether the packet must not be in it.
    pub set: Not<Text>,
    /// Which end of the packet is looked at, for each part of the set's entries.
    pub directions: Vec<SetDirection>,
    /// `--return-nomatch`: entries that are exceptions match, all others do not.
    pub return_nomatch: bool,
    /// `! --update-counters`
    pub keep_counters: bool,
    /// `! --update-subcounters`
    pub keep_subcounters: bool,
}

/// Which end of a packet `-m set` looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SetDirection {
    /// Its source, or where it came in.
    Source,
    /// Its destination, or where it leaves.
    Destination,
}

/// `-m ipvs`: what IPVS did with the packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IpvsMatch {
    /// `--ipvs`: it was handled at all; the value is the opposite of `!`.
    pub handled: Option<bool>,
    /// `--vproto`
    pub protocol: Option<Not<IpProtocol>>,
    /// `--vaddr`
    pub address: Option<Not<Addresses>>,
    /// `--vport`
    pub port: Option<Not<u16>>,
    /// `--vdir`
    pub direction: Option<CtDirection>,
    /// `--vmethod`
    pub method: Option<Not<Forwarding>>,
    /// `--vportctl`
    pub control_port: Option<Not<u16>>,
}

/// `-m rpfilter`: whether the route back to the source leads to where the packet came in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rpfilter {
    /// `--loose`: through any interface.
    pub loose: bool,
    /// `--validmark`: the packet's mark counts for the way back.
    pub valid_mark: bool,
    /// `--accept-local`: the node's own addresses are fine.
    pub accept_local: bool,
    /// `--invert`: packets that fail match.
    pub invert: bool,
}
