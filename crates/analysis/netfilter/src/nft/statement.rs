//! nftables statements: conditions and actions of rules.

use std::time::Duration;

use uturn_model::Text;

use super::{Counters, Data, Expr, Relation, Verdict};

/// A statement of a rule: a condition or an action.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Statement {
    /// A comparison; ends the rule if it does not hold.
    Match {
        /// The left operand, read from the packet.
        left: Expr,
        /// The relation.
        relation: Relation,
        /// The right operand.
        right: Expr,
    },
    /// A verdict.
    Verdict(Verdict),
    /// `vmap`: key and verdict map. Ends the rule if the map has no such element.
    Vmap(Expr, Expr),
    /// `meta mark set …`: the target and the value.
    Set(Expr, Expr),
    /// A counter; `None` if the text has no values.
    Counter(Option<Counters>),
    /// A reference to a named object, by kind and name: `counter name "x"`, `ct helper set "x"`.
    Named(Text, Text),
    /// A rate limit; holds while the rate is not exceeded.
    Limit(Limit),
    /// A quota; holds until it is used up.
    Quota(Quota),
    /// NAT.
    Nat(Nat),
    /// Rejects the packet.
    Reject(Reject),
    /// Logs the packet.
    Log(Log),
    /// Passes the packet to a userspace program.
    Queue(Queue),
    /// Disables connection tracking for the packet.
    Notrack,
    /// Assigns the packet to a local socket.
    Tproxy(Tproxy),
    /// Adds an element to a set, or deletes it.
    Update(SetUpdate),
    /// Adds the connection to a flowtable.
    Flow(Text),
    /// An iptables extension: `match`, `target` or `watcher`, and its name. The dump lacks its
    /// options.
    Xt(Text, Text),
    /// A statement that is not modelled, as written.
    Unknown(Text),
}

/// `limit rate …`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Limit {
    /// Inverted: holds while the rate is exceeded.
    pub over: bool,
    /// The rate.
    pub rate: u64,
    /// The unit: `None` for packets, else `bytes`, `kbytes` or `mbytes`.
    pub unit: Option<Text>,
    /// The period: `second`, `minute`, `hour`, `day` or `week`.
    pub per: Text,
    /// The burst; the default of 5 packets or 0 bytes is not printed.
    pub burst: Option<(u64, Option<Text>)>,
}

/// `quota …`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Quota {
    /// Inverted: holds once the quota is used up.
    pub over: bool,
    /// The amount and its unit.
    pub amount: (u64, Text),
    /// The amount already used.
    pub used: Option<(u64, Text)>,
}

/// A NAT statement.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Nat {
    /// The kind of translation.
    pub kind: NatKind,
    /// `ip` or `ip6`, in a table of family `inet`.
    pub family: Option<Text>,
    /// `prefix`: replaces the network and keeps the host bits.
    pub prefix: bool,
    /// The new address or addresses.
    pub address: Option<Expr>,
    /// The new port or ports.
    pub port: Option<Expr>,
    /// `random`, `fully-random`, `persistent`.
    pub flags: Vec<Text>,
}

/// The kinds of NAT statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is the statement of that name")]
pub enum NatKind {
    Dnat,
    Snat,
    Masquerade,
    Redirect,
}

impl NatKind {
    /// The name that nft uses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Dnat => "dnat",
            Self::Snat => "snat",
            Self::Masquerade => "masquerade",
            Self::Redirect => "redirect",
        }
    }

    pub(super) fn from_word(word: &str) -> Option<Self> {
        [Self::Dnat, Self::Snat, Self::Masquerade, Self::Redirect]
            .into_iter()
            .find(|kind| kind.as_str() == word)
    }
}

/// `reject with …`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Reject {
    /// The kind of reply.
    pub kind: RejectKind,
    /// The ICMP code, such as `port-unreachable`; empty for a TCP reset.
    pub code: Text,
}

/// The kind of reply that a reject sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is the protocol of that name")]
pub enum RejectKind {
    Icmp,
    Icmpv6,
    /// ICMP or ICMPv6, depending on the packet.
    Icmpx,
    TcpReset,
}

impl RejectKind {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Icmp => "icmp",
            Self::Icmpv6 => "icmpv6",
            Self::Icmpx => "icmpx",
            Self::TcpReset => "tcp reset",
        }
    }

    pub(super) fn from_word(word: &str) -> Option<Self> {
        [Self::Icmp, Self::Icmpv6, Self::Icmpx, Self::TcpReset]
            .into_iter()
            .find(|kind| kind.as_str() == word)
    }
}

/// `log …`
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Log {
    /// The prefix of the log line.
    pub prefix: Option<Text>,
    /// Numbers: `group`, `snaplen`, `queue-threshold`, in this order.
    pub numbers: [Option<u64>; 3],
    /// `level`; the default `warn` is not printed.
    pub level: Option<Text>,
    /// `flags`
    pub flags: Vec<Text>,
}

/// `queue …`
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Queue {
    /// The queue number or numbers.
    pub to: Option<Expr>,
    /// `bypass`, `fanout`.
    pub flags: Vec<Text>,
}

/// `tproxy …`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Tproxy {
    /// `ip` or `ip6`, in a table of family `inet`.
    pub family: Option<Text>,
    /// The socket's address.
    pub address: Option<Expr>,
    /// The socket's port.
    pub port: Option<Expr>,
}

/// `add @set { … }`
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SetUpdate {
    /// The operation.
    pub op: SetOp,
    /// The set's name.
    pub set: Text,
    /// The element.
    pub key: Expr,
    /// The data, for a map.
    pub data: Option<Data>,
    /// The element's timeout.
    pub timeout: Option<Duration>,
    /// Stateful expressions of the element.
    pub statements: Vec<Statement>,
}

/// The operation of a set update.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is the word of that name")]
pub enum SetOp {
    Add,
    Update,
    Delete,
}

impl SetOp {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }

    pub(super) fn from_word(word: &str) -> Option<Self> {
        [Self::Add, Self::Update, Self::Delete].into_iter().find(|op| op.as_str() == word)
    }
}
