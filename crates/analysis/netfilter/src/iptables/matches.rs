//! The matches of iptables rules.

use std::net::IpAddr;

use uturn_model::Text;

use super::{Addresses, Not};
use crate::ipvs::Forwarding;
use crate::packet::IpProtocol;

/// A match (`-m`). Dumps have hundreds of thousands of rules, so large and rare variants are
/// boxed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Match {
    /// `comment`: matches every packet.
    Comment(Text),
    /// `tcp`
    Tcp(Tcp),
    /// `udp`
    Udp(Udp),
    /// `sctp`, ports only.
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
    /// `nfacct`: counts in a named object, and matches every packet.
    Nfacct(Text),
    /// `iprange`
    Iprange(Box<Iprange>),
    /// `set`
    Set(Box<SetMatch>),
    /// `ipvs`
    Ipvs(Box<IpvsMatch>),
    /// `rpfilter`
    Rpfilter(Rpfilter),
    /// An unmodelled match, as written.
    Other(Box<Extension>),
}

/// An unmodelled match or target, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extension {
    /// The name of the match or target.
    pub name: Text,
    /// The options and their values, one word each.
    pub words: Vec<Text>,
}

/// A range of ports, from `first` to `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortRange {
    /// The first.
    pub first: u16,
    /// The last.
    pub last: u16,
}

impl PortRange {
    /// The range of a single port.
    pub fn single(port: u16) -> Self {
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
    /// `--tcp-flags`: the mask, and the flags that must be set, as header bits.
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
    /// The type, and a code if given; `None` means any.
    pub kind: Option<Not<(u8, Option<u8>)>>,
}

/// `-m multiport`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Multiport {
    /// Which port is compared.
    pub side: PortSide,
    /// The ports.
    pub ports: Not<Vec<PortRange>>,
}

/// Which of a packet's ports is compared.
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

/// A conntrack state, as rules match it.
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

/// A conntrack status bit.
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

/// The direction of a packet in its connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CtDirection {
    /// The direction of the first packet.
    Original,
    /// The direction of replies.
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

/// Restricts the address type to one interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LimitInterface {
    /// The incoming interface.
    In,
    /// The outgoing interface.
    Out,
}

/// The type of an address on this node.
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

/// `-m mark` and `-m connmark`: the mark under the mask equals the value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MarkMatch {
    /// Whether the match is negated.
    pub not: bool,
    /// The value.
    pub value: u32,
    /// The mask.
    pub mask: u32,
}

/// `-m statistic`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// `--mode random`
    Random(Not<Probability>),
    /// `--mode nth`: one packet of `every`, the first after `packet` others.
    Nth {
        /// Whether the match is negated.
        not: bool,
        /// The period.
        every: u32,
        /// The offset within the period.
        packet: u32,
    },
}

/// A probability as the kernel stores it: in steps of 2⁻³¹.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Probability(u32);

impl Probability {
    const ONE: f64 = 2_147_483_648.0;

    /// The nearest value to a probability from 0 to 1; `None` outside that range.
    pub fn new(odds: f64) -> Option<Self> {
        (0.0..=1.0).contains(&odds).then(|| Self((odds * Self::ONE).round() as u32))
    }

    /// The probability as a number from 0 to 1.
    pub fn odds(self) -> f64 {
        f64::from(self.0) / Self::ONE
    }
}

/// `-m recent`: a list of addresses that rules update and match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recent {
    /// The operation, and whether it is negated.
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

/// The operation of `-m recent`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RecentAction {
    /// Adds the address to the list.
    Set,
    /// Matches if the address is on the list.
    Check,
    /// Matches, and updates the timestamp.
    Update,
    /// Removes the address from the list.
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

/// `-m set`: whether addresses and ports of the packet are in an IP set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetMatch {
    /// The set's name, and whether the match is negated.
    pub set: Not<Text>,
    /// Which end of the packet is compared, for each part of the set's entries.
    pub directions: Vec<SetDirection>,
    /// `--return-nomatch`: matches only `nomatch` entries.
    pub return_nomatch: bool,
    /// `! --update-counters`
    pub keep_counters: bool,
    /// `! --update-subcounters`
    pub keep_subcounters: bool,
}

/// The end of a packet that `-m set` compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SetDirection {
    /// The source, or the incoming interface.
    Source,
    /// The destination, or the outgoing interface.
    Destination,
}

/// `-m ipvs`: how IPVS treated the packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IpvsMatch {
    /// `--ipvs`: whether IPVS handled the packet; false if negated.
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

/// `-m rpfilter`: whether the route back to the source uses the incoming interface.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rpfilter {
    /// `--loose`: any interface.
    pub loose: bool,
    /// `--validmark`: the route lookup considers the packet's mark.
    pub valid_mark: bool,
    /// `--accept-local`: accepts the node's own addresses.
    pub accept_local: bool,
    /// `--invert`: matches packets that fail the check.
    pub invert: bool,
}
