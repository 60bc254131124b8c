//! Evaluates nftables expressions for a packet.

use std::net::IpAddr;

use uturn_model::{Assumption, Family};

use super::super::Kernel;
use super::super::compile::Hook;
use super::super::fib::{Answer, Query};
use super::super::interface_name::interface;
use super::super::matching::{state, tcp_flags};
use super::super::walk::{Tracking, Walk};
use super::encode::address;
use super::lookup::{Data, Given, Lookup};
use super::value::{End, Field, GeneratedNumber, Test, Value};
use crate::iptables::{AddrKind, CtState};
use crate::nft::{BinaryOp, Fib, FibResult, TupleDirection};
use crate::packet::IpProtocol;
use crate::state::RouteKind;

/// The reason why an expression has no value.
#[derive(Clone, Copy, Debug)]
pub(super) enum NoValue {
    /// The packet lacks the field: the rule ends (`NFT_BREAK`).
    Break,
    /// The expression is not modelled.
    Unknown,
    /// The value is a generated number that has not been chosen yet.
    GeneratedNumber(GeneratedNumber),
}

type Valued = Result<u128, NoValue>;

/// Outside the range of ports.
const NO_PORT: u128 = 1 << 100;

/// No key has more parts than this.
const MAX_PARTS: usize = 16;

/// A lookup key. Few keys have many parts.
pub(super) struct Key {
    few: [u128; FEW_PARTS],
    length: usize,
    /// All parts, if there are many.
    many: Vec<u128>,
}

const FEW_PARTS: usize = 3;

impl Key {
    fn new(length: usize) -> Self {
        let many = if length > FEW_PARTS { vec![0; length] } else { Vec::new() };
        Self { few: [0; FEW_PARTS], length, many }
    }

    pub(super) fn parts(&self) -> &[u128] {
        if self.many.is_empty() { &self.few[..self.length] } else { &self.many }
    }

    fn parts_mut(&mut self) -> &mut [u128] {
        if self.many.is_empty() { &mut self.few[..self.length] } else { &mut self.many }
    }
}

impl Kernel {
    /// Whether a condition holds.
    pub(super) fn holds(
        &self,
        left: &[Value],
        test: &Test,
        walk: &mut Walk,
    ) -> Result<bool, NoValue> {
        if let (Test::Within { not, first, last }, [single]) = (test, left) {
            let value = self.value(single, walk)?;
            return Ok((first..=last).contains(&&value) != *not);
        }
        match test {
            Test::Within { .. } => Err(NoValue::Unknown),
            Test::Bits { not, bits } => {
                let [single] = left else { return Err(NoValue::Unknown) };
                let (value, open) = match single {
                    Value::Field(Field::CtStatus) => status(walk).ok_or(NoValue::Break)?,
                    _ => (self.value(single, walk)?, 0),
                };
                match (value & bits != 0, open & bits != 0) {
                    (true, _) => Ok(!not),
                    (false, true) => Err(NoValue::Unknown),
                    (false, false) => Ok(*not),
                }
            }
            Test::In { not, set } => {
                let key = self.key(left, walk)?;
                let lookup = &self.nft.lookups[*set];
                if lookup.unmodelled {
                    return Err(NoValue::Unknown);
                }
                let found = find(lookup, *set, &key, walk).is_some();
                Ok(found != *not)
            }
        }
    }

    pub(super) fn key(&self, values: &[Value], walk: &mut Walk) -> Result<Key, NoValue> {
        if values.len() > MAX_PARTS {
            return Err(NoValue::Unknown);
        }
        let mut key = Key::new(values.len());
        // A part that ends the rule does so whatever the other parts are.
        let mut missing = None;
        for (value, place) in values.iter().zip(key.parts_mut()) {
            match self.value(value, walk) {
                Ok(number) => *place = number,
                Err(NoValue::Break) => return Err(NoValue::Break),
                Err(miss) => missing = Some(miss),
            }
        }
        missing.map_or(Ok(key), Err)
    }

    pub(super) fn value(&self, value: &Value, walk: &mut Walk) -> Valued {
        match value {
            Value::Const(number) => Ok(*number),
            Value::Field(field) => self.field(*field, walk),
            Value::Binary(op, sides) => {
                let (left, right) = (self.value(&sides.0, walk)?, self.value(&sides.1, walk)?);
                Ok(match op {
                    BinaryOp::And => left & right,
                    BinaryOp::Or => left | right,
                    BinaryOp::Xor => left ^ right,
                    // Shifted values have 32 bits.
                    BinaryOp::ShiftLeft => {
                        left.checked_shl(right as u32).unwrap_or(0) & u128::from(u32::MAX)
                    }
                    BinaryOp::ShiftRight => left.checked_shr(right as u32).unwrap_or(0),
                })
            }
            Value::Map { key, map } => {
                let key = self.key(key, walk)?;
                let lookup = &self.nft.lookups[*map];
                if lookup.unmodelled {
                    return Err(NoValue::Unknown);
                }
                match find(lookup, *map, &key, walk).map(|given| &given.data) {
                    Some(Data::Value(parts)) => match &**parts {
                        [(first, last)] if first == last => Ok(*first),
                        _ => Err(NoValue::Unknown),
                    },
                    Some(_) => Err(NoValue::Unknown),
                    None => Err(NoValue::Break),
                }
            }
            Value::GeneratedNumber(turn) => {
                walk.nft.generated.ok_or(NoValue::GeneratedNumber(*turn))
            }
            Value::Unknown => Err(NoValue::Unknown),
        }
    }

    fn field(&self, field: Field, walk: &Walk) -> Valued {
        let packet = &walk.packet;
        let is_v6 = packet.family() == Family::V6;
        let only = |there: bool, value: u128| if there { Ok(value) } else { Err(NoValue::Break) };
        let protocol = packet.protocol();
        let port = |wanted: Option<u8>, port: u16| match wanted {
            Some(wanted) => only(protocol == IpProtocol(wanted), u128::from(port)),
            None if packet.transport.icmp().is_some() => Ok(NO_PORT),
            None => Ok(u128::from(port)),
        };
        let connection = || walk.tracking.connection().ok_or(NoValue::Break);
        match field {
            Field::Source { v6 } => only(v6 == is_v6, address(packet.src)),
            Field::Destination { v6 } => only(v6 == is_v6, address(packet.dst)),
            Field::SourcePort(wanted) => port(wanted, packet.transport.ports().0),
            Field::DestinationPort(wanted) => port(wanted, packet.transport.ports().1),
            Field::Protocol { v6 } => only(v6.is_none_or(|v6| v6 == is_v6), u128::from(protocol.0)),
            Field::Version { v6 } => only(v6 == is_v6, if v6 { 6 } else { 4 }),
            Field::TcpFlags => {
                only(protocol == IpProtocol::TCP, u128::from(tcp_flags(packet.transport)))
            }
            Field::IcmpType { v6 } | Field::IcmpCode { v6 } => match packet.transport.icmp() {
                Some((kind, code)) if v6 == is_v6 => {
                    let is_type = matches!(field, Field::IcmpType { .. });
                    Ok(u128::from(if is_type { kind } else { code }))
                }
                _ => Err(NoValue::Break),
            },
            Field::Nfproto => Ok(if is_v6 { 10 } else { 2 }),
            Field::EtherType => Ok(if is_v6 { 0x86dd } else { 0x800 }),
            Field::Mark => Ok(u128::from(packet.mark)),
            Field::InInterface => Ok(interface_of(walk.iif.as_deref())),
            Field::OutInterface if walk.out_is_unknown() => {
                match walk.notes.capture_assumptions.name() {
                    Some(name) => Ok(interface_of(Some(name))),
                    None => Err(NoValue::Unknown),
                }
            }
            Field::OutInterface => Ok(interface_of(walk.oif.as_deref())),
            Field::CtState => Ok(match state(walk) {
                CtState::Established => 2,
                CtState::Related => 4,
                CtState::New => 8,
                CtState::Untracked => 64,
                _ => 1,
            }),
            Field::CtStatus => match status(walk).ok_or(NoValue::Break)? {
                (value, 0) => Ok(value),
                _ => Err(NoValue::Unknown),
            },
            Field::CtDirection => {
                connection()?;
                Ok(u128::from(matches!(walk.tracking, Tracking::Known { reply: true, .. })))
            }
            Field::CtMark => Ok(u128::from(connection()?.mark)),
            Field::CtFamily => connection().map(|_| if is_v6 { 10 } else { 2 }),
            Field::CtProtocol => Ok(u128::from(connection()?.protocol.0)),
            Field::Ct(direction, end) => {
                let connection = connection()?;
                let leg = match direction {
                    TupleDirection::Original => connection.original,
                    TupleDirection::Reply => connection.reply,
                };
                let of = |wanted: Option<bool>, ip: IpAddr| {
                    only(wanted.is_none_or(|v6| v6 == ip.is_ipv6()), address(ip))
                };
                match end {
                    End::Source(v6) => of(v6, leg.src.ip()),
                    End::Destination(v6) => of(v6, leg.dst.ip()),
                    End::SourcePort => Ok(u128::from(leg.src.port())),
                    End::DestinationPort => Ok(u128::from(leg.dst.port())),
                }
            }
            Field::Fib(fib) => self.fib_result(fib, walk),
        }
    }

    /// The result of a `fib` expression.
    fn fib_result(&self, fib: Fib, walk: &Walk) -> Valued {
        let packet = &walk.packet;
        let (ip, other) =
            if fib.saddr { (packet.src, packet.dst) } else { (packet.dst, packet.src) };
        let device = match (fib.iif, fib.oif) {
            (true, _) => Some(walk.iif.as_deref().unwrap_or("")),
            (false, true) => Some(walk.oif.as_deref().unwrap_or("")),
            (false, false) => None,
        };
        if fib.result == FibResult::Type {
            return Ok(match self.kind_for(ip, device, walk) {
                AddrKind::Unicast => 1,
                AddrKind::Local => 2,
                AddrKind::Broadcast => 3,
                AddrKind::Anycast => 4,
                AddrKind::Multicast => 5,
                AddrKind::Blackhole => 6,
                AddrKind::Unreachable => 7,
                AddrKind::Prohibit => 8,
                _ => return Err(NoValue::Unknown),
            });
        }
        let iif = walk.iif.as_deref().unwrap_or("");
        // Locally generated packets need no route back. Older kernels check that in PREROUTING
        // only.
        if matches!(walk.hook, Hook::Prerouting | Hook::Input) && iif == "lo" {
            return Ok(interface_of(Some("lo")));
        }
        let query = Query {
            src: Some(other),
            dst: ip,
            iif: "lo",
            oif: device.filter(|_| ip.is_ipv6()),
            mark: if fib.mark { packet.mark } else { 0 },
            transport: None,
            from_here: false,
        };
        match self.look_up_without_branching(walk, &walk.notes.facts, query) {
            Answer::Route(route, _) if route.kind == RouteKind::Local => Ok(0),
            Answer::Route(route, equals) => {
                let others = if equals > 0 { self.fib.equals(route) } else { Vec::new() };
                let mut all = std::iter::once(route).chain(others);
                match device {
                    None => Ok(interface_of(route.dev.as_deref())),
                    Some(wanted) if all.any(|route| route.dev.as_deref() == Some(wanted)) => {
                        Ok(interface_of(Some(wanted)))
                    }
                    Some(_) => Ok(0),
                }
            }
            Answer::Rule(_) | Answer::Nothing | Answer::Undecided(..) => Ok(0),
        }
    }
}

fn interface_of(name: Option<&str>) -> u128 {
    name.map_or(0, |name| interface(name).0)
}

/// The bits of the conntrack status that are set, and those that may be set.
fn status(walk: &Walk) -> Option<(u128, u128)> {
    let connection = walk.tracking.connection()?;
    let translated = u128::from(connection.source_translated()) * 16
        + u128::from(connection.destination_translated()) * 32;
    Some(match walk.tracking {
        Tracking::New { confirmed: false, .. } => (translated, 0),
        ref tracking if !tracking.has_seen_reply() => (translated | 8, 0),
        // Whether the entry is ASSURED depends on earlier packets.
        _ => (translated | 2 | 8, 4),
    })
}

/// Looks up a key; also finds elements that this walk has added.
pub(super) fn find<'k>(
    lookup: &'k Lookup,
    number: usize,
    key: &Key,
    walk: &mut Walk,
) -> Option<&'k Given> {
    static ADDED: Given = Given { data: Data::Nothing, comment: None };
    let found = lookup.find(key.parts());
    if found.is_some() || !lookup.changes {
        return found;
    }
    if walk.notes.added.iter().any(|(set, parts)| *set == number && **parts == *key.parts()) {
        return Some(&ADDED);
    }
    let name = lookup.name.as_deref().unwrap_or("");
    walk.assume(Assumption {
        subject: format!("the set {name}").into(),
        assumed: "what is asked for is not in it, as in the dump".into(),
        because: "rules put elements into it and time takes them out".into(),
        settle: format!("nft list set of {name} at the time of the packet").into(),
    });
    None
}
