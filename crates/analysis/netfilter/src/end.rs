//! The ends of walks.

use std::fmt;
use std::net::IpAddr;

use uturn_model::{Assumption, Evidence, Family, Share, Step, Text};

use crate::connection::Connection;
use crate::packet::Packet;
use crate::question::Question;

/// One possible end of a walk.
#[derive(Clone, Debug, PartialEq)]
pub struct End {
    /// The probability of this end; the shares of all ends of a walk sum to 1.
    pub share: Share,
    /// The kind of the end.
    pub kind: EndKind,
    /// The packet as it leaves, is delivered or is dropped.
    pub packet: Packet,
    /// Whether it was for the node itself where it ended.
    pub is_for_node: bool,
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
    pub unknown: Vec<Evidence>,
    /// The questions on which the walk branched, each with the answer that this branch assumes.
    pub open_questions: Vec<(Question, bool)>,
    /// Assumptions made for state that is not known.
    pub supposed: Vec<Assumption>,
}

/// The way a packet ends.
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

/// The reason why a packet was dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DropReason {
    /// A rule drops it.
    Rule(Evidence),
    /// The policy of a base chain drops it.
    Policy(Evidence),
    /// The packet's source is one of the node's own addresses.
    LocalSource,
    /// The reverse path filter drops it: the route to its source uses another interface.
    ReversePathFilter,
    /// The packet's source is an address that no packet may have.
    MartianSource,
    /// The packet's destination is an address that no packet may have here.
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

    /// Type and code of the ICMP error that it sends; `None` for a reset.
    pub fn icmp(self) -> Option<(u8, u8)> {
        Some(match self {
            Self::IcmpNetUnreachable => (3, 0),
            Self::IcmpHostUnreachable => (3, 1),
            Self::IcmpProtoUnreachable => (3, 2),
            Self::IcmpPortUnreachable => (3, 3),
            Self::IcmpNetProhibited => (3, 9),
            Self::IcmpHostProhibited => (3, 10),
            Self::IcmpAdminProhibited => (3, 13),
            Self::Icmp6NoRoute => (1, 0),
            Self::Icmp6AdmProhibited => (1, 1),
            Self::Icmp6AddrUnreachable => (1, 3),
            Self::Icmp6PortUnreachable => (1, 4),
            Self::Icmp6PolicyFail => (1, 5),
            Self::Icmp6RejectRoute => (1, 6),
            Self::TcpReset => return None,
        })
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
