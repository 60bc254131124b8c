//! Encodes constants of rules as numbers.

use std::net::IpAddr;

use super::super::interface_name::interface;
use super::value::Type;
use crate::nft::Expr;
use crate::packet::IpProtocol;
use crate::port_names;

/// A value as its first and last number; `None` if it is not modelled.
pub(super) fn encode(kind: Type, expr: &Expr) -> Option<(u128, u128)> {
    if kind == Type::Unknown {
        return None;
    }
    let exact = |number: u128| Some((number, number));
    match expr {
        Expr::Number(number) if kind == Type::Interface => {
            // An interface index; only 0 (none) is known.
            (*number == 0).then_some((0, 0))
        }
        Expr::Number(number) if kind == Type::FibInterface => (*number == 0).then_some((0, 0)),
        Expr::Number(number) => exact(u128::from(*number)),
        Expr::Address(ip) => exact(address(*ip)),
        Expr::Prefix(ip, length) => prefix(*ip, *length),
        Expr::Range(ends) => {
            let (first, last) = (encode(kind, &ends.0)?, encode(kind, &ends.1)?);
            Some((first.0, last.1))
        }
        Expr::List(all) => {
            let mut bits = 0;
            for each in all {
                bits |= encode(kind, each)?.0;
            }
            exact(bits)
        }
        Expr::Word(word) => by_word(kind, word),
        _ => None,
    }
}

fn by_word(kind: Type, word: &str) -> Option<(u128, u128)> {
    let of = |all: &[(&str, u128)]| {
        all.iter().find(|(name, _)| *name == word).map(|(_, number)| (*number, *number))
    };
    match kind {
        Type::Interface => Some(interface(word)),
        Type::FibInterface => match word {
            "missing" => Some((0, 0)),
            "exists" => Some((1, u128::MAX)),
            _ => Some(interface(word)),
        },
        Type::Protocol => {
            let number = u128::from(IpProtocol::from_word(word)?.0);
            Some((number, number))
        }
        Type::CtState => {
            of(&[("invalid", 1), ("established", 2), ("related", 4), ("new", 8), ("untracked", 64)])
        }
        Type::CtStatus => of(&[
            ("expected", 1),
            ("seen-reply", 2),
            ("assured", 4),
            ("confirmed", 8),
            ("snat", 16),
            ("dnat", 32),
            ("dying", 512),
        ]),
        Type::CtDirection => of(&[("original", 0), ("reply", 1)]),
        Type::Route => of(&[
            ("unspec", 0),
            ("unicast", 1),
            ("local", 2),
            ("broadcast", 3),
            ("anycast", 4),
            ("multicast", 5),
            ("blackhole", 6),
            ("unreachable", 7),
            ("prohibit", 8),
        ]),
        Type::Port => port_names::port(word).map(|port| (u128::from(port), u128::from(port))),
        Type::Family => of(&[("ipv4", 2), ("ipv6", 10)]),
        Type::Ether => of(&[("ip", 0x800), ("ip6", 0x86dd), ("arp", 0x806), ("vlan", 0x8100)]),
        Type::TcpFlags => of(&[
            ("fin", 1),
            ("syn", 2),
            ("rst", 4),
            ("psh", 8),
            ("ack", 16),
            ("urg", 32),
            ("ecn", 64),
            ("cwr", 128),
        ]),
        Type::Icmp { v6: false } => of(&[
            ("echo-reply", 0),
            ("destination-unreachable", 3),
            ("source-quench", 4),
            ("redirect", 5),
            ("echo-request", 8),
            ("router-advertisement", 9),
            ("router-solicitation", 10),
            ("time-exceeded", 11),
            ("parameter-problem", 12),
            ("timestamp-request", 13),
            ("timestamp-reply", 14),
            ("info-request", 15),
            ("info-reply", 16),
            ("address-mask-request", 17),
            ("address-mask-reply", 18),
        ]),
        Type::Icmp { v6: true } => of(&[
            ("destination-unreachable", 1),
            ("packet-too-big", 2),
            ("time-exceeded", 3),
            ("parameter-problem", 4),
            ("echo-request", 128),
            ("echo-reply", 129),
            ("mld-listener-query", 130),
            ("mld-listener-report", 131),
            ("mld-listener-done", 132),
            ("mld-listener-reduction", 132),
            ("nd-router-solicit", 133),
            ("nd-router-advert", 134),
            ("nd-neighbor-solicit", 135),
            ("nd-neighbor-advert", 136),
            ("nd-redirect", 137),
            ("router-renumbering", 138),
            ("ind-neighbor-solicit", 141),
            ("ind-neighbor-advert", 142),
            ("mld2-listener-report", 143),
        ]),
        Type::Number | Type::Address | Type::IcmpCode | Type::Unknown => None,
    }
}

pub(super) fn address(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => u128::from(ip.to_bits()),
        IpAddr::V6(ip) => ip.to_bits(),
    }
}

fn prefix(ip: IpAddr, length: u8) -> Option<(u128, u128)> {
    let bits = if ip.is_ipv4() { 32u32 } else { 128 };
    let host = bits.checked_sub(u32::from(length))?;
    let mask = if host == 128 { u128::MAX } else { (1u128 << host) - 1 };
    let first = address(ip) & !mask;
    Some((first, first | mask))
}

/// The type of one part of a named set's key or data.
pub(super) fn type_of(name: &str) -> Type {
    match name {
        "ipv4_addr" | "ipv6_addr" => Type::Address,
        "inet_proto" => Type::Protocol,
        "inet_service" => Type::Port,
        "mark" | "integer" | "uid" | "gid" => Type::Number,
        "ifname" | "iface_index" => Type::Interface,
        "ct_state" => Type::CtState,
        "ct_status" => Type::CtStatus,
        "ct_dir" => Type::CtDirection,
        "nf_proto" => Type::Family,
        "ether_type" => Type::Ether,
        "tcp_flag" => Type::TcpFlags,
        "icmp_type" => Type::Icmp { v6: false },
        "icmpv6_type" => Type::Icmp { v6: true },
        "fib_addrtype" => Type::Route,
        _ => Type::Unknown,
    }
}
