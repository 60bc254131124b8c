//! nftables expressions: what rules compare, look up and set.

use std::net::IpAddr;
use std::time::Duration;

use uturn_model::Text;

use super::{Counters, Statement};

/// An expression.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Expr {
    /// A number, printed in decimal or hexadecimal depending on the other operand.
    Number(u64),
    /// An address.
    Address(IpAddr),
    /// A symbolic value: `tcp`, `established`, `eth0`, `local`, `00:11:22:33:44:55`.
    Word(Text),
    /// `10.0.0.0/8`
    Prefix(IpAddr, u8),
    /// `80-90`
    Range(Box<(Expr, Expr)>),
    /// `*`: the catch-all element.
    Any,
    /// `established,related`: any of these flags.
    List(Vec<Expr>),
    /// `ip daddr . tcp dport`
    Concat(Vec<Expr>),
    /// `{ 80, 443 }`
    Set(Vec<Element>),
    /// `@name`
    SetRef(Text),
    /// A field of a header: protocol and field.
    Payload(&'static str, &'static str),
    /// `meta …`
    Meta(&'static str),
    /// `ct …`, of the connection or one of its directions.
    Ct(Option<TupleDirection>, &'static str),
    /// `fib …`
    Fib(Fib),
    /// `numgen inc|random mod … offset …`
    Numgen {
        /// Round robin (`inc`); otherwise random.
        inc: bool,
        /// The modulus.
        modulus: u64,
        /// The offset.
        offset: u64,
    },
    /// `jhash … mod …`; `symhash mod …` if it has no input expression.
    Hash {
        /// The input of the hash.
        over: Option<Box<Expr>>,
        /// The modulus.
        modulus: u64,
        /// The seed; `None` if the kernel picks one.
        seed: Option<u64>,
        /// The offset.
        offset: u64,
    },
    /// `meta mark & 0x4000`
    Binary(BinaryOp, Box<(Expr, Expr)>),
    /// `ip saddr map { … }`: key and map.
    Map(Box<(Expr, Expr)>),
    /// An expression that is not modelled, as written: `socket transparent`, `rt nexthop`.
    Other(Text),
}

/// An element of a set or map.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Element {
    /// The key.
    pub key: Expr,
    /// The data of a map element.
    pub data: Option<Data>,
    /// The timeout of the element.
    pub timeout: Option<Duration>,
    /// The time until it expires.
    pub expires: Option<Duration>,
    /// The packet and byte counter of the element.
    pub counter: Option<Counters>,
    /// Other stateful expressions of the element, such as a limit.
    pub statements: Vec<Statement>,
    /// The comment of the element.
    pub comment: Option<Text>,
}

impl Element {
    /// An element with a key only.
    pub fn new(key: Expr) -> Self {
        Self {
            key,
            data: None,
            timeout: None,
            expires: None,
            counter: None,
            statements: Vec::new(),
            comment: None,
        }
    }
}

/// The data of a map element.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Data {
    /// A verdict.
    Verdict(Verdict),
    /// A value.
    Value(Expr),
}

/// A verdict.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// Accepted by this base chain; later base chains still see the packet.
    Accept,
    /// Dropped.
    Drop,
    /// Continue with the next statement.
    Continue,
    /// Return to the calling chain.
    Return,
    /// Continue in a chain, and return here at its end.
    Jump(Text),
    /// Continue in a chain, and at its end return to this chain's caller.
    Goto(Text),
}

/// The relation between the operands of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Relation {
    /// Equal, or contained in the set, range or prefix.
    Eq,
    /// Not equal, or not contained.
    Ne,
    /// Any of the flags is set.
    Any,
    /// `!`: none of the flags is set.
    None,
    /// Less.
    Lt,
    /// Greater.
    Gt,
    /// At most.
    Le,
    /// At least.
    Ge,
}

impl Relation {
    pub(super) fn from_word(word: &str) -> Option<Self> {
        Some(match word {
            "==" => Self::Eq,
            "!=" => Self::Ne,
            "in" => Self::Any,
            "!" => Self::None,
            "<" => Self::Lt,
            ">" => Self::Gt,
            "<=" => Self::Le,
            ">=" => Self::Ge,
            _ => return None,
        })
    }
}

/// Bitwise operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is the operation of that name")]
pub enum BinaryOp {
    And,
    Or,
    Xor,
    ShiftLeft,
    ShiftRight,
}

impl BinaryOp {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::And => "&",
            Self::Or => "|",
            Self::Xor => "^",
            Self::ShiftLeft => "<<",
            Self::ShiftRight => ">>",
        }
    }

    pub(super) fn from_word(word: &str) -> Option<Self> {
        Some(match word {
            "&" | "and" => Self::And,
            "|" | "or" => Self::Or,
            "^" | "xor" => Self::Xor,
            "<<" | "lshift" => Self::ShiftLeft,
            ">>" | "rshift" => Self::ShiftRight,
            _ => return None,
        })
    }
}

/// A direction of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TupleDirection {
    /// The direction of the first packet.
    Original,
    /// The direction of replies.
    Reply,
}

impl TupleDirection {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Original => "original",
            Self::Reply => "reply",
        }
    }

    pub(super) fn from_word(word: &str) -> Option<Self> {
        [Self::Original, Self::Reply].into_iter().find(|direction| direction.as_str() == word)
    }
}

/// A `fib` expression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Fib {
    /// Looks up the source address; otherwise the destination.
    pub saddr: bool,
    /// With the packet's mark.
    pub mark: bool,
    /// Restricted to the incoming interface.
    pub iif: bool,
    /// Restricted to the outgoing interface.
    pub oif: bool,
    /// The requested result.
    pub result: FibResult,
}

/// The result of a `fib` expression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is the result of that name")]
pub enum FibResult {
    #[default]
    Type,
    Oif,
    Oifname,
}

/// Whether the value of an expression is a set of flags.
pub(super) fn has_flags(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::Ct(None, "state" | "status" | "label" | "event") | Expr::Payload("tcp", "flags")
    )
}

/// The keys of `meta`.
pub(super) const META: [&str; 41] = [
    "length",
    "nfproto",
    "l4proto",
    "protocol",
    "priority",
    "mark",
    "iif",
    "iifname",
    "iiftype",
    "oif",
    "oifname",
    "oiftype",
    "skuid",
    "skgid",
    "nftrace",
    "rtclassid",
    "secmark",
    "ibriport",
    "ibrname",
    "obriport",
    "obrname",
    "pkttype",
    "cpu",
    "iifgroup",
    "oifgroup",
    "cgroup",
    "random",
    "ipsec",
    "secpath",
    "iifkind",
    "oifkind",
    "ibrpvid",
    "ibrvproto",
    "time",
    "day",
    "hour",
    "sdif",
    "sdifname",
    "broute",
    "bri_iifname",
    "bri_oifname",
];

/// The keys of [`META`] that may be written without `meta`.
pub(super) const BARE_META: [&str; 17] = [
    "iif",
    "iifname",
    "iiftype",
    "oif",
    "oifname",
    "oiftype",
    "skuid",
    "skgid",
    "nftrace",
    "mark",
    "rtclassid",
    "iifgroup",
    "oifgroup",
    "cgroup",
    "ibrname",
    "obrname",
    "pkttype",
];

/// The keys of [`META`] that nft prints without `meta`.
pub(super) const PRINTED_BARE: [&str; 8] =
    ["iif", "iifname", "iiftype", "oif", "oifname", "oiftype", "iifgroup", "oifgroup"];

/// The keys of `ct`.
pub(super) const CT: [&str; 29] = [
    "state",
    "direction",
    "status",
    "mark",
    "secmark",
    "expiration",
    "helper",
    "label",
    "l3proto",
    "protocol",
    "saddr",
    "daddr",
    "proto-src",
    "proto-dst",
    "packets",
    "bytes",
    "avgpkt",
    "zone",
    "event",
    "id",
    "ip saddr",
    "ip daddr",
    "ip6 saddr",
    "ip6 daddr",
    "timeout",
    "expectation",
    "count",
    "src",
    "dst",
];

/// Header fields by protocol.
pub(super) const PAYLOAD: [(&str, &[&str]); 19] = [
    (
        "ip",
        &[
            "saddr",
            "daddr",
            "protocol",
            "version",
            "hdrlength",
            "dscp",
            "ecn",
            "length",
            "id",
            "frag-off",
            "ttl",
            "checksum",
        ],
    ),
    (
        "ip6",
        &["saddr", "daddr", "nexthdr", "version", "dscp", "ecn", "flowlabel", "length", "hoplimit"],
    ),
    (
        "tcp",
        &[
            "sport", "dport", "flags", "sequence", "ackseq", "doff", "reserved", "window",
            "checksum", "urgptr",
        ],
    ),
    ("udp", &["sport", "dport", "length", "checksum"]),
    ("th", &["sport", "dport"]),
    ("sctp", &["sport", "dport", "vtag", "checksum"]),
    ("dccp", &["sport", "dport", "type"]),
    ("udplite", &["sport", "dport", "checksum", "csumcov"]),
    ("icmp", &["type", "code", "checksum", "id", "sequence", "gateway", "mtu"]),
    (
        "icmpv6",
        &[
            "type",
            "code",
            "checksum",
            "parameter-problem",
            "packet-too-big",
            "id",
            "sequence",
            "max-delay",
            "taddr",
            "daddr",
        ],
    ),
    ("igmp", &["type", "checksum", "mrt", "group"]),
    ("ether", &["saddr", "daddr", "type"]),
    ("vlan", &["id", "dei", "pcp", "cfi", "type"]),
    (
        "arp",
        &[
            "htype",
            "ptype",
            "hlen",
            "plen",
            "operation",
            "saddr ip",
            "daddr ip",
            "saddr ether",
            "daddr ether",
        ],
    ),
    ("ah", &["nexthdr", "hdrlength", "reserved", "spi", "sequence"]),
    ("esp", &["spi", "sequence"]),
    ("comp", &["nexthdr", "flags", "cpi"]),
    ("gre", &["flags", "version", "protocol"]),
    ("geneve", &["vni", "type"]),
];

/// The element of `all` that equals `word`.
pub(super) fn known(all: &[&'static str], word: &str) -> Option<&'static str> {
    all.iter().find(|candidate| **candidate == word).copied()
}

/// A header field by protocol and name.
pub(super) fn payload(protocol: &str, field: &str) -> Option<Expr> {
    let (protocol, fields) = PAYLOAD.iter().find(|(name, _)| *name == protocol)?;
    Some(Expr::Payload(protocol, known(fields, field)?))
}
