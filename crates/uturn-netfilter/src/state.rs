//! What a node's kernel knows: the parts that decide where a packet goes.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;

use uturn_model::{IpNet, Origin, Text};

use crate::capture_gaps::CaptureGap;
use crate::ipset::Sets;
use crate::iptables::Ruleset;
use crate::ipvs::VirtualServers;
use crate::nft;
use crate::policy::PolicyRule;
use crate::sysctl::Sysctls;

/// Number of the routing table `local`.
pub const TABLE_LOCAL: u32 = 255;
/// Number of the routing table `main`.
pub const TABLE_MAIN: u32 = 254;
/// Number of the routing table `default`.
pub const TABLE_DEFAULT: u32 = 253;

/// All that is known of one node's kernel.
#[derive(Clone, Debug, Default)]
pub struct NodeState {
    /// Rules for IPv4.
    pub iptables: Ruleset,
    /// Rules for IPv6.
    pub ip6tables: Ruleset,
    /// Rules of nftables. Tables that `iptables-nft` keeps there count once: where the
    /// fields above have such a table, that is taken.
    pub nft: nft::Ruleset,
    /// Sets that rules ask.
    pub sets: Sets,
    /// Virtual servers of IPVS.
    pub ipvs: VirtualServers,
    /// Its interfaces, in the order of their numbers.
    pub interfaces: Vec<Interface>,
    /// Routes of all tables and both families. What the kernel adds to the table `local`
    /// for every address is added where it is missing.
    pub routes: Vec<RouteEntry>,
    /// Which table is asked when; empty means what a kernel starts with.
    pub rules: Vec<PolicyRule>,
    /// Switches.
    pub sysctls: Sysctls,
    /// What is not known of all this, where it is what a capture says.
    pub gaps: BTreeSet<CaptureGap>,
}

impl NodeState {
    /// Whether a table of nftables is walked as one: not if it is what `iptables-nft` keeps of
    /// a table that is known from `iptables-save`, which says more of it.
    pub fn is_walked(&self, table: &nft::Table) -> bool {
        let known = match table.family {
            nft::TableFamily::Ip => &self.iptables,
            nft::TableFamily::Ip6 => &self.ip6tables,
            _ => return true,
        };
        let built_in = |name: &str| {
            matches!(name, "PREROUTING" | "INPUT" | "FORWARD" | "OUTPUT" | "POSTROUTING")
        };
        let kept = table.chains.iter().all(|chain| chain.base.is_none() || built_in(&chain.name));
        let same = known.tables.iter().any(|one| one.kind.as_str() == &*table.name);
        !(kept && same)
    }
}

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its name.
    pub name: Text,
    /// Its addresses with the length of their prefix, in order.
    pub addresses: Vec<(IpAddr, u8)>,
    /// Whether it is up.
    pub up: bool,
}

/// A route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteEntry {
    /// Where it leads.
    pub dst: IpNet,
    /// The next hop; none when the destination is on the link.
    pub via: Option<IpAddr>,
    /// The interface it leaves through.
    pub dev: Option<Text>,
    /// The table it is in.
    pub table: u32,
    /// What it does.
    pub kind: RouteKind,
    /// The source address for packets made on the node.
    pub src: Option<IpAddr>,
    /// The lower, the better.
    pub metric: u32,
    /// Where it was written.
    pub origin: Origin,
}

impl RouteEntry {
    /// A route of the table `main`.
    pub fn unicast(dst: IpNet, via: Option<IpAddr>, dev: impl Into<Text>, origin: Origin) -> Self {
        let kind = RouteKind::Unicast;
        Self {
            dst,
            via,
            dev: Some(dev.into()),
            table: TABLE_MAIN,
            kind,
            src: None,
            metric: 0,
            origin,
        }
    }
}

impl fmt::Display for RouteEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.kind != RouteKind::Unicast {
            write!(f, "{} ", self.kind.word())?;
        }
        let full = self.dst.prefix_len() == self.dst.max_prefix_len();
        match self.dst.prefix_len() {
            0 => f.write_str("default")?,
            _ if full => write!(f, "{}", self.dst.addr())?,
            _ => write!(f, "{}", self.dst)?,
        }
        if let Some(via) = self.via {
            write!(f, " via {via}")?;
        }
        if let Some(dev) = &self.dev {
            write!(f, " dev {dev}")?;
        }
        match self.table {
            TABLE_MAIN => {}
            TABLE_LOCAL => f.write_str(" table local")?,
            TABLE_DEFAULT => f.write_str(" table default")?,
            other => write!(f, " table {other}")?,
        }
        if let Some(src) = self.src {
            write!(f, " src {src}")?;
        }
        if self.metric > 0 {
            write!(f, " metric {}", self.metric)?;
        }
        Ok(())
    }
}

/// What a route does with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RouteKind {
    /// Sends it on.
    Unicast,
    /// The destination is the node itself.
    Local,
    /// The destination is everybody on a link.
    Broadcast,
    /// The destination is one of several.
    Anycast,
    /// The destination is a group.
    Multicast,
    /// Drops it silently.
    Blackhole,
    /// Drops it and says that the host cannot be reached.
    Unreachable,
    /// Drops it and says that it is forbidden.
    Prohibit,
    /// Ends the look-up in this table.
    Throw,
}

impl RouteKind {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Unicast,
        Self::Local,
        Self::Broadcast,
        Self::Anycast,
        Self::Multicast,
        Self::Blackhole,
        Self::Unreachable,
        Self::Prohibit,
        Self::Throw,
    ];

    /// As `ip route` spells it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Unicast => "unicast",
            Self::Local => "local",
            Self::Broadcast => "broadcast",
            Self::Anycast => "anycast",
            Self::Multicast => "multicast",
            Self::Blackhole => "blackhole",
            Self::Unreachable => "unreachable",
            Self::Prohibit => "prohibit",
            Self::Throw => "throw",
        }
    }
}
