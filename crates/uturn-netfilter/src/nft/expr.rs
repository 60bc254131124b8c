//! What rules compare, look up and set: expressions.

use std::net::IpAddr;
use std::time::Duration;

use uturn_model::Text;

use super::{Counters, Statement};

/// An expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Expr {
    /// A number, decimal or hexadecimal: the printer knows from the other side which.
    Number(u64),
    /// An address.
    Address(IpAddr),
    /// A name of a value: `tcp`, `established`, `eth0`, `local`, `00:11:22:33:44:55`.
    Word(Text),
    /// `10.0.0.0/8`
    Prefix(IpAddr, u8),
    /// `80-90`
    Range(Box<(Expr, Expr)>),
    /// `*`: what no other element holds.
    Any,
    /// `established,related`: flags, any of them.
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
    /// `ct …`, of the connection or of one of its directions.
    Ct(Option<TupleDirection>, &'static str),
    /// `fib …`
    Fib(Fib),
    /// `numgen inc|random mod … offset …`
    Numgen {
        /// In turn; else at random.
        inc: bool,
        /// How many numbers.
        modulus: u64,
        /// The first.
        offset: u64,
    },
    /// `jhash … mod …`, or `symhash mod …` when it is over nothing that is named.
    Hash {
        /// What it is over.
        over: Option<Box<Expr>>,
        /// How many numbers.
        modulus: u64,
        /// Its seed; none when the kernel picks one.
        seed: Option<u64>,
        /// The first number.
        offset: u64,
    },
    /// `meta mark & 0x4000`
    Binary(BinaryOp, Box<(Expr, Expr)>),
    /// `ip saddr map { … }`: key and map.
    Map(Box<(Expr, Expr)>),
    /// Something that nobody models, as written: `socket transparent`, `rt nexthop`.
    Other(Text),
}

/// An element of a set or map.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Element {
    /// What is looked up.
    pub key: Expr,
    /// What a map gives for it.
    pub data: Option<Data>,
    /// How long it stays.
    pub timeout: Option<Duration>,
    /// How long it still stays.
    pub expires: Option<Duration>,
    /// Packets and bytes that met it.
    pub counter: Option<Counters>,
    /// Other things that it keeps, such as a limit.
    pub statements: Vec<Statement>,
    /// Its comment.
    pub comment: Option<Text>,
}

impl Element {
    /// An element that is only a key.
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

/// What a map gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Data {
    /// What happens to the packet.
    Verdict(Verdict),
    /// A value.
    Value(Expr),
}

/// What happens to a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It passes this base chain; later ones still see it.
    Accept,
    /// It is thrown away.
    Drop,
    /// On with what comes next in the rule.
    Continue,
    /// Back to the chain that jumped here.
    Return,
    /// On in a chain, and back here at its end.
    Jump(Text),
    /// On in a chain, and at its end back to where this one would return to.
    Goto(Text),
}

/// How two sides are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Relation {
    /// The same, or in the set, range or prefix.
    Eq,
    /// Not that.
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

/// Arithmetic on bits.
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
    /// That of its first packet.
    Original,
    /// That of the answers.
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
        [Self::Original, Self::Reply].into_iter().find(|one| one.as_str() == word)
    }
}

/// What the routing tables say of an address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Fib {
    /// Asks for the source; else for the destination.
    pub saddr: bool,
    /// With the packet's mark.
    pub mark: bool,
    /// On the interface that it came in through.
    pub iif: bool,
    /// On the interface that it leaves through.
    pub oif: bool,
    /// What is wanted.
    pub result: FibResult,
}

/// What is wanted of a route.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "each is the result of that name")]
pub enum FibResult {
    #[default]
    Type,
    Oif,
    Oifname,
}

/// The value of an expression that compares by flags.
pub(super) fn has_flags(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::Ct(None, "state" | "status" | "label" | "event") | Expr::Payload("tcp", "flags")
    )
}

/// The words after `meta`.
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

/// Those of [`META`] that are also written without `meta`.
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

/// Those of [`META`] that nft prints without `meta`.
pub(super) const PRINTED_BARE: [&str; 8] =
    ["iif", "iifname", "iiftype", "oif", "oifname", "oiftype", "iifgroup", "oifgroup"];

/// The words after `ct`.
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

/// Fields of headers.
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

/// The one of `all` that equals `word`.
pub(super) fn known(all: &[&'static str], word: &str) -> Option<&'static str> {
    all.iter().find(|one| **one == word).copied()
}

/// A field of a header by its words.
pub(super) fn payload(protocol: &str, field: &str) -> Option<Expr> {
    let (protocol, fields) = PAYLOAD.iter().find(|(one, _)| *one == protocol)?;
    Some(Expr::Payload(protocol, known(fields, field)?))
}
