//! Compiled nftables rules: all values are numbers.

use std::net::IpAddr;

use uturn_model::Text;

use crate::nft::{BinaryOp, Expr, Fib, FibResult, NatKind, RejectKind, TupleDirection};
use crate::packet_facts::PacketFact;

/// A step of a rule.
#[derive(Clone, Debug)]
pub(super) enum Op {
    /// Ends the rule if it does not hold. The number identifies the condition if its answer is
    /// unknown.
    Test {
        left: Vec<Value>,
        test: Test,
        number: u32,
    },
    /// A condition that is not modelled.
    UnknownCondition(u32),
    /// A limit on rates, connections or amounts: whether it holds while it is exceeded.
    Limit {
        number: u32,
        over: bool,
    },
    /// A condition on the sending process.
    Sender {
        fact: PacketFact,
        not: bool,
    },
    Verdict(Verdict),
    Vmap {
        key: Vec<Value>,
        map: usize,
        number: u32,
    },
    Mark(Value),
    CtMark(Value),
    /// Rewrites an address or port of the packet.
    Header {
        field: Field,
        value: Value,
    },
    Nat(Nat),
    Reject(RejectKind, Text),
    Notrack,
    /// Adds an element to a set.
    Add {
        set: usize,
        key: Vec<Value>,
    },
    Flow(Text),
    /// TPROXY.
    Proxy {
        v6: Option<bool>,
        port: Option<u16>,
    },
    /// An action that is not modelled.
    UnknownAction(u32, Text),
}

impl Op {
    /// Whether it changes nothing and only ends the rule where it does not hold.
    pub(super) fn is_condition(&self) -> bool {
        matches!(
            self,
            Self::Test { .. }
                | Self::UnknownCondition(_)
                | Self::Limit { .. }
                | Self::Sender { .. }
        )
    }
}

/// A condition on a value.
#[derive(Clone, Debug)]
pub(super) enum Test {
    /// In the range, or not.
    Within { not: bool, first: u128, last: u128 },
    /// Any of the bits is set, or none.
    Bits { not: bool, bits: u128 },
    /// In the set, or not.
    In { not: bool, set: usize },
}

/// A value read from a packet.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Const(u128),
    Field(Field),
    Binary(BinaryOp, Box<(Value, Value)>),
    /// A part of the data of a map element.
    Map {
        key: Vec<Value>,
        map: usize,
    },
    /// A generated number.
    GeneratedNumber(GeneratedNumber),
    /// A value that is not modelled.
    Unknown,
}

/// A number that changes from packet to packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct GeneratedNumber {
    pub(super) modulus: u64,
    pub(super) offset: u64,
    /// Whether it is a hash of the packet, which is not computed.
    pub(super) hashed: bool,
    /// Whether it goes up by one at each visit.
    pub(super) counts: bool,
}

/// A field of a packet or of its metadata.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    /// Only in packets of this family.
    Source {
        v6: bool,
    },
    Destination {
        v6: bool,
    },
    /// Only in packets of this protocol; `None` for any.
    SourcePort(Option<u8>),
    DestinationPort(Option<u8>),
    /// The protocol; if read from the header of one family, only in packets of that family.
    Protocol {
        v6: Option<bool>,
    },
    Version {
        v6: bool,
    },
    TcpFlags,
    IcmpType {
        v6: bool,
    },
    IcmpCode {
        v6: bool,
    },
    Nfproto,
    EtherType,
    Mark,
    InInterface,
    OutInterface,
    CtState,
    CtStatus,
    CtDirection,
    CtMark,
    CtFamily,
    CtProtocol,
    Ct(TupleDirection, End),
    Fib(Fib),
}

/// An end of a connection. For an address, the family that the connection must have, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Source(Option<bool>),
    Destination(Option<bool>),
    SourcePort,
    DestinationPort,
}

/// The types of values that are modelled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Number,
    /// A port number or service name.
    Port,
    Address,
    Protocol,
    Interface,
    CtState,
    CtStatus,
    CtDirection,
    Route,
    FibInterface,
    Family,
    Ether,
    TcpFlags,
    Icmp {
        v6: bool,
    },
    IcmpCode,
    Unknown,
}

/// A NAT statement.
#[derive(Clone, Debug)]
pub(super) struct Nat {
    pub(super) kind: NatKind,
    /// Only in packets of this family.
    pub(super) v6: Option<bool>,
    pub(super) prefix: bool,
    pub(super) address: NatAddress,
    pub(super) port: Option<(u16, u16)>,
    pub(super) random: bool,
}

#[derive(Clone, Debug)]
pub(super) enum NatAddress {
    None,
    Range(IpAddr, IpAddr),
    Map { key: Vec<Value>, map: usize },
    Unknown,
}

/// A verdict; chains are given by index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Accept,
    Drop,
    Continue,
    Return,
    Jump(usize),
    Goto(usize),
}

/// The value that an expression reads, and its type.
pub(super) fn typed(expr: &Expr) -> (Value, Type) {
    let (field, kind) = match expr {
        Expr::Payload(protocol, field) => match header(protocol, field) {
            Some(found) => found,
            None => return (Value::Unknown, Type::Unknown),
        },
        Expr::Meta(key) => match *key {
            "l4proto" => (Field::Protocol { v6: None }, Type::Protocol),
            "nfproto" => (Field::Nfproto, Type::Family),
            "protocol" => (Field::EtherType, Type::Ether),
            "mark" => (Field::Mark, Type::Number),
            "iif" | "iifname" => (Field::InInterface, Type::Interface),
            "oif" | "oifname" => (Field::OutInterface, Type::Interface),
            _ => return (Value::Unknown, Type::Unknown),
        },
        Expr::Ct(None, key) => match *key {
            "state" => (Field::CtState, Type::CtState),
            "status" => (Field::CtStatus, Type::CtStatus),
            "direction" => (Field::CtDirection, Type::CtDirection),
            "mark" => (Field::CtMark, Type::Number),
            "l3proto" => (Field::CtFamily, Type::Family),
            "protocol" => (Field::CtProtocol, Type::Protocol),
            _ => return (Value::Unknown, Type::Unknown),
        },
        Expr::Ct(Some(direction), key) => match *key {
            "saddr" => (Field::Ct(*direction, End::Source(None)), Type::Address),
            "daddr" => (Field::Ct(*direction, End::Destination(None)), Type::Address),
            "ip saddr" => (Field::Ct(*direction, End::Source(Some(false))), Type::Address),
            "ip daddr" => (Field::Ct(*direction, End::Destination(Some(false))), Type::Address),
            "ip6 saddr" => (Field::Ct(*direction, End::Source(Some(true))), Type::Address),
            "ip6 daddr" => (Field::Ct(*direction, End::Destination(Some(true))), Type::Address),
            "proto-src" => (Field::Ct(*direction, End::SourcePort), Type::Port),
            "proto-dst" => (Field::Ct(*direction, End::DestinationPort), Type::Port),
            "l3proto" => (Field::CtFamily, Type::Family),
            "protocol" => (Field::CtProtocol, Type::Protocol),
            _ => return (Value::Unknown, Type::Unknown),
        },
        Expr::Fib(fib) => match fib.result {
            FibResult::Type => (Field::Fib(*fib), Type::Route),
            FibResult::Oif | FibResult::Oifname => (Field::Fib(*fib), Type::FibInterface),
        },
        Expr::Numgen { inc, modulus, offset } => {
            let (modulus, offset) = (*modulus, *offset);
            let turn = GeneratedNumber { modulus, offset, hashed: false, counts: *inc };
            return (Value::GeneratedNumber(turn), Type::Number);
        }
        Expr::Hash { modulus, offset, .. } => {
            let (modulus, offset) = (*modulus, *offset);
            let turn = GeneratedNumber { modulus, offset, hashed: true, counts: false };
            return (Value::GeneratedNumber(turn), Type::Number);
        }
        // The value is computed elsewhere; the type is that of the left side.
        Expr::Binary(_, sides) => return (Value::Unknown, typed(&sides.0).1),
        _ => return (Value::Unknown, Type::Unknown),
    };
    (Value::Field(field), kind)
}

fn header(protocol: &str, field: &str) -> Option<(Field, Type)> {
    let port = match protocol {
        "tcp" => Some(Some(6)),
        "udp" => Some(Some(17)),
        "dccp" => Some(Some(33)),
        "sctp" => Some(Some(132)),
        "udplite" => Some(Some(136)),
        "th" => Some(None),
        _ => None,
    };
    Some(match (protocol, field) {
        ("ip", "saddr") => (Field::Source { v6: false }, Type::Address),
        ("ip", "daddr") => (Field::Destination { v6: false }, Type::Address),
        ("ip6", "saddr") => (Field::Source { v6: true }, Type::Address),
        ("ip6", "daddr") => (Field::Destination { v6: true }, Type::Address),
        ("ip", "protocol") => (Field::Protocol { v6: Some(false) }, Type::Protocol),
        ("ip6", "nexthdr") => (Field::Protocol { v6: Some(true) }, Type::Protocol),
        ("ip", "version") => (Field::Version { v6: false }, Type::Number),
        ("ip6", "version") => (Field::Version { v6: true }, Type::Number),
        (_, "sport") if port.is_some() => (Field::SourcePort(port?), Type::Port),
        (_, "dport") if port.is_some() => (Field::DestinationPort(port?), Type::Port),
        ("tcp", "flags") => (Field::TcpFlags, Type::TcpFlags),
        ("icmp", "type") => (Field::IcmpType { v6: false }, Type::Icmp { v6: false }),
        ("icmpv6", "type") => (Field::IcmpType { v6: true }, Type::Icmp { v6: true }),
        ("icmp", "code") => (Field::IcmpCode { v6: false }, Type::IcmpCode),
        ("icmpv6", "code") => (Field::IcmpCode { v6: true }, Type::IcmpCode),
        _ => return None,
    })
}
