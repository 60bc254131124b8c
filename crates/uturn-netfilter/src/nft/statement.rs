//! What rules do: statements.

use std::time::Duration;

use uturn_model::Text;

use super::{Counters, Data, Expr, Relation, Verdict};

/// A statement of a rule: a condition or an act.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Statement {
    /// A comparison; the rule ends where it does not hold.
    Match {
        /// What the packet has.
        left: Expr,
        /// How it is compared.
        relation: Relation,
        /// With what.
        right: Expr,
    },
    /// What happens to the packet.
    Verdict(Verdict),
    /// A look-up of what happens: key and map. The rule ends where the map has nothing.
    Vmap(Expr, Expr),
    /// `meta mark set …`: what is set, and to what.
    Set(Expr, Expr),
    /// Counts; without numbers where the text has none.
    Counter(Option<Counters>),
    /// An object of the table, by kind and name: `counter name "x"`, `ct helper set "x"`.
    Named(Text, Text),
    /// Holds as long as packets come no faster.
    Limit(Limit),
    /// Holds up to an amount.
    Quota(Quota),
    /// Translates an address.
    Nat(Nat),
    /// Refuses.
    Reject(Reject),
    /// Writes to the log.
    Log(Log),
    /// Hands the packet to a program.
    Queue(Queue),
    /// Keeps connection tracking away.
    Notrack,
    /// Hands the packet to a socket of the node.
    Tproxy(Tproxy),
    /// Changes a set.
    Update(SetUpdate),
    /// Puts the connection into a flowtable.
    Flow(Text),
    /// An extension of iptables: `match`, `target` or `watcher`, and its name. What it was
    /// told is not in the dump.
    Xt(Text, Text),
    /// What this model has no word for, as written.
    Unknown(Text),
}

/// `limit rate …`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Holds when it is exceeded.
    pub over: bool,
    /// How many.
    pub rate: u64,
    /// Of what: none for packets, else `bytes`, `kbytes` or `mbytes`.
    pub unit: Option<Text>,
    /// In which time: `second`, `minute`, `hour`, `day` or `week`.
    pub per: Text,
    /// How many more at once; the usual 5 packets or none of the bytes is not printed.
    pub burst: Option<(u64, Option<Text>)>,
}

/// `quota …`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Holds when it is exceeded.
    pub over: bool,
    /// The amount and its unit.
    pub amount: (u64, Text),
    /// How much of it is used up.
    pub used: Option<(u64, Text)>,
}

/// A translation of an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nat {
    /// Which.
    pub kind: NatKind,
    /// `ip` or `ip6`, in a table for both.
    pub family: Option<Text>,
    /// `prefix`: the network is exchanged and the rest of the address stays.
    pub prefix: bool,
    /// The new address, or addresses.
    pub address: Option<Expr>,
    /// The new port, or ports.
    pub port: Option<Expr>,
    /// `random`, `fully-random`, `persistent`.
    pub flags: Vec<Text>,
}

/// Kinds of translation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is the statement of that name")]
pub enum NatKind {
    Dnat,
    Snat,
    Masquerade,
    Redirect,
}

impl NatKind {
    /// As nft spells it.
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
            .find(|one| one.as_str() == word)
    }
}

/// `reject with …`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reject {
    /// By which protocol.
    pub kind: RejectKind,
    /// Its code, such as `port-unreachable`; empty for a reset.
    pub code: Text,
}

/// By what a packet is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is the protocol of that name")]
pub enum RejectKind {
    Icmp,
    Icmpv6,
    /// ICMP or ICMPv6, as the packet is.
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
            .find(|one| one.as_str() == word)
    }
}

/// `log …`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// What the line begins with.
    pub prefix: Option<Text>,
    /// Numbers: `group`, `snaplen`, `queue-threshold`, in this order.
    pub numbers: [Option<u64>; 3],
    /// `level`; the usual `warn` is not printed.
    pub level: Option<Text>,
    /// `flags`
    pub flags: Vec<Text>,
}

/// `queue …`
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Queue {
    /// Which.
    pub to: Option<Expr>,
    /// `bypass`, `fanout`.
    pub flags: Vec<Text>,
}

/// `tproxy …`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tproxy {
    /// `ip` or `ip6`, in a table for both.
    pub family: Option<Text>,
    /// The socket's address.
    pub address: Option<Expr>,
    /// The socket's port.
    pub port: Option<Expr>,
}

/// `add @set { … }`
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetUpdate {
    /// How.
    pub op: SetOp,
    /// The set's name.
    pub set: Text,
    /// The element.
    pub key: Expr,
    /// What a map gives for it.
    pub data: Option<Data>,
    /// How long it stays.
    pub timeout: Option<Duration>,
    /// Conditions and counters of the element.
    pub statements: Vec<Statement>,
}

/// How a set is changed.
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
        [Self::Add, Self::Update, Self::Delete].into_iter().find(|one| one.as_str() == word)
    }
}
