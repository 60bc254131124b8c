//! What rules are made of, made ready: values are numbers.

use std::net::IpAddr;

use uturn_model::Text;

use crate::nft::{BinaryOp, Expr, Fib, FibResult, NatKind, RejectKind, TupleDirection};
use crate::packet_facts::PacketFact;

/// A step of a rule.
#[derive(Clone, Debug)]
pub(super) enum Op {
    /// The rule ends where it does not hold. The number stands for the condition where
    /// nobody models it.
    Test {
        left: Vec<Value>,
        test: Test,
        number: u32,
    },
    /// A condition that nobody models.
    UnknownCondition(u32),
    /// A condition on who sends the packet.
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
    /// An address or port of the packet itself.
    Header {
        field: Field,
        value: Value,
    },
    Nat(Nat),
    Reject(RejectKind, Text),
    Notrack,
    /// Something is put into a set.
    Add {
        set: usize,
        key: Vec<Value>,
    },
    Flow(Text),
    /// To the socket of a proxy.
    Proxy {
        v6: Option<bool>,
        port: Option<u16>,
    },
    /// An act that nobody models.
    UnknownAction(u32, Text),
}

/// A condition on a value.
#[derive(Clone, Debug)]
pub(super) enum Test {
    /// Within the bounds, or not.
    Within { not: bool, first: u128, last: u128 },
    /// Some of the bits are set, or none.
    Bits { not: bool, bits: u128 },
    /// In the set, or not.
    In { not: bool, set: usize },
}

/// What a packet has.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Const(u128),
    Field(Field),
    Binary(BinaryOp, Box<(Value, Value)>),
    /// A part of what a map gives.
    Map {
        key: Vec<Value>,
        map: usize,
    },
    /// A number of several.
    GeneratedNumber(GeneratedNumber),
    /// One that nobody models.
    Unknown,
}

/// A number that changes from packet to packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct GeneratedNumber {
    pub(super) modulus: u64,
    pub(super) offset: u64,
    /// It hangs on the packet in a way that nobody works out.
    pub(super) hashed: bool,
}

/// Things to read from a packet or what is known of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    /// In a packet of this family only.
    Source {
        v6: bool,
    },
    Destination {
        v6: bool,
    },
    /// In a packet of this protocol only; none for any.
    SourcePort(Option<u8>),
    DestinationPort(Option<u8>),
    /// The protocol; in the header of one family, in packets of that only.
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

/// An end of a connection. Of an address the family is named where it has to be that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Source(Option<bool>),
    Destination(Option<bool>),
    SourcePort,
    DestinationPort,
}

/// Types of values, as far as their words are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Type {
    Number,
    /// A number, or the name of a service.
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

/// A translation.
#[derive(Clone, Debug)]
pub(super) struct Nat {
    pub(super) kind: NatKind,
    /// In packets of this family only.
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

/// What happens to a packet; chains by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Accept,
    Drop,
    Continue,
    Return,
    Jump(usize),
    Goto(usize),
}

/// What an expression reads, and of which type it is.
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
        Expr::Numgen { modulus, offset, .. } => {
            let turn = GeneratedNumber { modulus: *modulus, offset: *offset, hashed: false };
            return (Value::GeneratedNumber(turn), Type::Number);
        }
        Expr::Hash { modulus, offset, .. } => {
            let turn = GeneratedNumber { modulus: *modulus, offset: *offset, hashed: true };
            return (Value::GeneratedNumber(turn), Type::Number);
        }
        // The value is made elsewhere; the type is that of the left side.
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
