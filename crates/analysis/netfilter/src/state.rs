//! The state of a node's kernel that decides where a packet goes.

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

/// The state of one node's kernel.
#[derive(Clone, Debug, Default)]
pub struct NodeState {
    /// The IPv4 rules.
    pub iptables: Ruleset,
    /// The IPv6 rules.
    pub ip6tables: Ruleset,
    /// The nftables rules. A table that `iptables-nft` maintains is ignored if the fields above
    /// already contain it.
    pub nft: nft::Ruleset,
    /// The IP sets that rules match against.
    pub sets: Sets,
    /// The IPVS virtual servers.
    pub ipvs: VirtualServers,
    /// The interfaces, by index.
    pub interfaces: Vec<Interface>,
    /// Which of the interfaces are bridges; `None` if that is not known.
    pub bridges: Option<BTreeSet<Text>>,
    /// The routes of all tables and both families. Missing entries of the table `local`, which
    /// the kernel adds for each address, are filled in.
    pub routes: Vec<RouteEntry>,
    /// The policy routing rules; empty means the default rules.
    pub rules: Vec<PolicyRule>,
    /// The sysctls.
    pub sysctls: Sysctls,
    /// The gaps of the capture; empty if the state was not captured.
    pub gaps: BTreeSet<CaptureGap>,
}

impl NodeState {
    /// Whether a walk evaluates an nftables table. A table that `iptables-nft` maintains is
    /// skipped if `iptables-save` output for it is present, which is more complete.
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
        let same = known.tables.iter().any(|known_table| known_table.kind.as_str() == &*table.name);
        !(kept && same)
    }

    /// The number of its entries: rules, chains, members of sets, virtual and real servers, addresses
    /// and routes. The memory that a kernel takes grows with it.
    pub fn entries(&self) -> usize {
        let of_rules = |rules: &Ruleset| -> usize {
            let chains = rules.tables.iter().flat_map(|table| &table.chains);
            chains.map(|chain| 1 + chain.rules.len()).sum()
        };
        let of_nft = |table: &nft::Table| -> usize {
            let rules = table.chains.iter().map(|chain| 1 + chain.rules.len()).sum::<usize>();
            rules + table.sets.iter().map(|set| 1 + set.elements.len()).sum::<usize>()
        };
        of_rules(&self.iptables)
            + of_rules(&self.ip6tables)
            + self.nft.tables.iter().map(of_nft).sum::<usize>()
            + self.sets.0.iter().map(|set| 1 + set.entries.len()).sum::<usize>()
            + self.ipvs.0.iter().map(|server| 1 + server.servers.len()).sum::<usize>()
            + self.interfaces.iter().map(|card| 1 + card.addresses.len()).sum::<usize>()
            + self.routes.len()
            + self.rules.len()
    }
}

/// A network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The name of the interface.
    pub name: Text,
    /// The addresses of the interface with their prefix lengths, in order.
    pub addresses: Vec<(IpAddr, u8)>,
    /// Whether it is up.
    pub up: bool,
}

/// A route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteEntry {
    /// The destination prefix.
    pub dst: IpNet,
    /// The next hop; `None` if the destination is on the link.
    pub via: Option<IpAddr>,
    /// The outgoing interface.
    pub dev: Option<Text>,
    /// The routing table that contains it.
    pub table: u32,
    /// The type of the route.
    pub kind: RouteKind,
    /// The preferred source address of locally generated packets.
    pub src: Option<IpAddr>,
    /// Lower metrics are preferred.
    pub metric: u32,
    /// The place where the route was written.
    pub origin: Origin,
}

impl RouteEntry {
    /// A unicast route of the table `main`.
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

/// The type of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RouteKind {
    /// Forwards the packet.
    Unicast,
    /// The destination is the node itself.
    Local,
    /// The destination is a broadcast address.
    Broadcast,
    /// The destination is an anycast address.
    Anycast,
    /// The destination is a multicast group.
    Multicast,
    /// Drops the packet silently.
    Blackhole,
    /// Drops the packet with a host-unreachable error.
    Unreachable,
    /// Drops the packet with a prohibited error.
    Prohibit,
    /// Ends the lookup in this table; the next policy rule continues.
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

    /// The name that `ip route` uses.
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
