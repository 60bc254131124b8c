//! The catalogue of matches and targets, and how a walk treats each.
//!
//! `docs/rules.md` contains the same list; a test compares the two, and each entry with a walk.

/// The way a walk treats a match or target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Treatment {
    /// Evaluated as the kernel would, from the packet, its connection and the node.
    Modelled,
    /// Evaluated for some packets; for others the walk branches, for this reason.
    Partly(&'static str),
    /// The walk branches, for this reason: each branch has half the share and names the rule.
    BothWays(&'static str),
    /// Has no effect on a packet's path.
    NoEffect,
}

use Treatment::{BothWays, Modelled, NoEffect, Partly};

/// Matches by name. A walk branches on any other match.
pub const MATCHES: &[(&str, Treatment)] = &[
    ("addrtype", Modelled),
    ("bpf", BothWays("a program looks at the packet's bytes")),
    ("cgroup", Partly("which process sends it is not known")),
    ("comment", NoEffect),
    ("connbytes", BothWays("how much the connection has carried is not known")),
    ("connlabel", BothWays("the connection's labels are not known")),
    ("connlimit", BothWays("how many connections there are is not known")),
    ("connmark", Modelled),
    ("conntrack", Partly("whether the connection is ASSURED, or when it expires, is not known")),
    ("cpu", BothWays("which processor handles it is not known")),
    ("devgroup", BothWays("the groups of interfaces are not known")),
    ("dscp", BothWays("the class that its sender gave it is not known")),
    ("ecn", BothWays("its bits for congestion are not known")),
    ("hashlimit", BothWays("how fast such packets come is not known")),
    ("helper", BothWays("the connection's helper is not known")),
    ("hl", BothWays("how many hops it has left is not known")),
    ("icmp", Modelled),
    ("icmp6", Modelled),
    ("iprange", Modelled),
    ("ipvs", Modelled),
    ("length", Partly("its length is not known")),
    ("limit", BothWays("how fast such packets come is not known")),
    ("mac", Partly("the hardware address of its sender is not known")),
    ("mark", Modelled),
    ("multiport", Modelled),
    ("nfacct", NoEffect),
    ("owner", Partly("which process sends it is not known")),
    ("physdev", Partly("the port of the bridge it comes through is not known")),
    ("pkttype", Partly("how its frame was addressed is not known")),
    ("policy", Modelled),
    ("quota", BothWays("how much of the quota is left is not known")),
    ("realm", BothWays("the realms of routes are not known")),
    ("recent", Modelled),
    ("rpfilter", Modelled),
    ("sctp", Modelled),
    (
        "set",
        Partly(
            "what the set holds is not captured, or not known of the packet, as a hardware address is",
        ),
    ),
    ("socket", BothWays("the sockets of the node are not known")),
    ("state", Modelled),
    ("statistic", Modelled),
    ("string", BothWays("what it carries is not known")),
    ("tcp", Modelled),
    ("tcpmss", BothWays("the segment size it offers is not known")),
    ("time", BothWays("when it comes is not known")),
    ("tos", BothWays("the class that its sender gave it is not known")),
    ("ttl", BothWays("how many hops it has left is not known")),
    ("u32", BothWays("all of its bytes are not known")),
    ("udp", Modelled),
];

/// Targets by name. A walk branches on any other target: it has no effect, or it keeps the
/// packet.
pub const TARGETS: &[(&str, Treatment)] = &[
    ("ACCEPT", Modelled),
    ("AUDIT", NoEffect),
    ("CHECKSUM", NoEffect),
    ("CLASSIFY", NoEffect),
    ("CLUSTERIP", BothWays("another node may be the one to answer")),
    ("CONNMARK", Modelled),
    ("CONNSECMARK", NoEffect),
    ("CT", Modelled),
    ("DNAT", Modelled),
    ("DROP", Modelled),
    ("DSCP", NoEffect),
    ("ECN", NoEffect),
    ("HL", NoEffect),
    ("HMARK", BothWays("the mark is a hash")),
    ("IDLETIMER", NoEffect),
    ("LED", NoEffect),
    ("LOG", NoEffect),
    ("MARK", Modelled),
    ("MASQUERADE", Modelled),
    ("NETMAP", Modelled),
    ("NFLOG", NoEffect),
    ("NFQUEUE", BothWays("a program decides")),
    ("NOTRACK", Modelled),
    ("QUEUE", BothWays("a program decides")),
    ("RATEEST", NoEffect),
    ("REDIRECT", Modelled),
    ("REJECT", Modelled),
    ("RETURN", Modelled),
    ("SECMARK", NoEffect),
    ("SET", Modelled),
    ("SNAT", Modelled),
    ("SYNPROXY", BothWays("it answers in the server's name")),
    ("TARPIT", BothWays("it holds the connection")),
    ("TCPMSS", NoEffect),
    ("TCPOPTSTRIP", NoEffect),
    ("TEE", NoEffect),
    ("TOS", NoEffect),
    ("TPROXY", Modelled),
    ("TRACE", NoEffect),
    ("TTL", NoEffect),
    ("ULOG", NoEffect),
];

/// Returns how a walk treats a match.
pub fn of_match(name: &str) -> Treatment {
    find(MATCHES, name)
}

/// Returns how a walk treats a target.
pub fn of_target(name: &str) -> Treatment {
    find(TARGETS, name)
}

fn find(all: &[(&str, Treatment)], name: &str) -> Treatment {
    let found = all.binary_search_by(|(known, _)| (*known).cmp(name));
    found.map_or(BothWays("not modelled"), |at| all[at].1)
}

impl Treatment {
    /// Returns why a walk branches on the match or target, if it does.
    pub fn reason(self) -> Option<&'static str> {
        match self {
            Partly(why) | BothWays(why) => Some(why),
            Modelled | NoEffect => None,
        }
    }
}
