//! Finds the rules of a long chain that can match a packet, for iptables and nftables.

use std::net::IpAddr;

use crate::hash::FastMap;
use crate::iptables::{Addresses, Match, Not, PortRange, PortSide, Rule};
use crate::packet::{IpProtocol, Packet};

/// Chains with fewer indexable rules are evaluated from top to bottom.
const INDEX_FROM: usize = 12;

/// A rule that matches more ports than this is not indexed by port.
const MAX_PORTS: usize = 32;

/// The rules of a chain by what a matching packet must have. Each rule is in exactly one list;
/// every list is in order.
#[derive(Debug, Default)]
pub(super) struct Index {
    /// Rules for one port of one address.
    by_endpoint: FastMap<(u128, IpProtocol, u16), Vec<u32>>,
    by_destination: Nets,
    by_port: FastMap<(IpProtocol, u16), Vec<u32>>,
    by_source: Nets,
    /// Rules without a key.
    rest: Vec<u32>,
}

/// The most selective condition of a rule. A network is given by its prefix length and its bits
/// as a number.
pub(super) enum Key {
    /// The bits of an address, and ports there.
    Endpoint(u128, IpProtocol, Vec<PortRange>),
    Destination(u8, u128),
    Ports(IpProtocol, Vec<PortRange>),
    Source(u8, u128),
    /// Any packet may match.
    None,
    /// The rule affects no packet.
    Inert,
}

impl Index {
    /// Returns `None` if an index would not pay off.
    pub(super) fn new<R>(rules: &[R], key: impl Fn(&R) -> Key) -> Option<Self> {
        if rules.len() < INDEX_FROM {
            return None;
        }
        let mut index = Self::default();
        // Ranges may overlap.
        let add = |list: &mut Vec<u32>, at: u32| {
            if list.last() != Some(&at) {
                list.push(at);
            }
        };
        for (rule, at) in rules.iter().zip(0u32..) {
            match key(rule) {
                Key::Endpoint(bits, protocol, ranges) => {
                    for port in numbers(&ranges) {
                        add(index.by_endpoint.entry((bits, protocol, port)).or_default(), at);
                    }
                }
                Key::Destination(length, bits) => index.by_destination.add(length, bits, at),
                Key::Source(length, bits) => index.by_source.add(length, bits, at),
                Key::Ports(protocol, ranges) => {
                    for port in numbers(&ranges) {
                        add(index.by_port.entry((protocol, port)).or_default(), at);
                    }
                }
                Key::None => index.rest.push(at),
                Key::Inert => {}
            }
        }
        (rules.len() - index.rest.len() >= INDEX_FROM).then_some(index)
    }

    /// The index of the first rule at or after `from` that can match.
    pub(super) fn next(&self, from: usize, packet: &Packet) -> Option<usize> {
        let from = from as u32;
        let first = |list: &[u32]| list.get(list.partition_point(|at| *at < from)).copied();
        let rest = first(&self.rest);
        if rest == Some(from) {
            return Some(from as usize);
        }
        let (protocol, port) = (packet.protocol(), packet.transport.ports().1);
        let on_port =
            if self.by_port.is_empty() { None } else { self.by_port.get(&(protocol, port)) };
        let at_endpoint = if self.by_endpoint.is_empty() {
            None
        } else {
            self.by_endpoint.get(&(bits(packet.dst), protocol, port))
        };
        let nets = self.by_destination.lists(packet.dst).chain(self.by_source.lists(packet.src));
        let ports = on_port.into_iter().chain(at_endpoint).map(Vec::as_slice);
        let keyed = nets.chain(ports).filter_map(first).min();
        keyed.into_iter().chain(rest).min().map(|at| at as usize)
    }
}

/// Networks of one family by prefix length.
#[derive(Debug, Default)]
struct Nets(Vec<(u8, FastMap<u128, Vec<u32>>)>);

impl Nets {
    fn add(&mut self, length: u8, bits: u128, at: u32) {
        let place = match self.0.iter().position(|(known, _)| *known == length) {
            Some(place) => place,
            None => {
                self.0.push((length, FastMap::default()));
                self.0.len() - 1
            }
        };
        self.0[place].1.entry(bits).or_default().push(at);
    }

    /// The rule lists of all networks that contain the address.
    fn lists(&self, ip: IpAddr) -> impl Iterator<Item = &[u32]> {
        let lengths = self.0.iter();
        lengths.filter_map(move |(length, nets)| nets.get(&network(ip, *length)).map(Vec::as_slice))
    }
}

/// All ports of some ranges.
fn numbers(ranges: &[PortRange]) -> impl Iterator<Item = u16> {
    ranges.iter().flat_map(|range| range.first..=range.last)
}

/// All bits of an address.
fn bits(ip: IpAddr) -> u128 {
    network(ip, u8::MAX)
}

/// The network bits of an address.
fn network(ip: IpAddr, length: u8) -> u128 {
    let (bits, width) = match ip {
        IpAddr::V4(ip) => (u128::from(ip.to_bits()), 32),
        IpAddr::V6(ip) => (ip.to_bits(), 128),
    };
    let rest = u32::from(width - length.min(width));
    bits.checked_shr(rest).unwrap_or(0)
}

/// Whether the ranges are few enough to index a rule by port.
pub(super) fn are_few(ranges: &[PortRange]) -> bool {
    let counts = ranges.iter().map(|range| usize::from(range.last - range.first) + 1);
    counts.sum::<usize>() <= MAX_PORTS
}

/// The index key of an iptables rule.
pub(super) fn key(rule: &Rule) -> Key {
    let net = |some: Option<Not<Addresses>>| match some {
        Some(Not { not: false, value: Addresses::Net(net) }) if net.prefix_len() > 0 => Some(net),
        _ => None,
    };
    let (dst, src) = (net(rule.dst), net(rule.src));
    let destination = |net: ipnet::IpNet| {
        Key::Destination(net.prefix_len(), network(net.addr(), net.prefix_len()))
    };
    let host = dst.filter(|net| net.prefix_len() == net.max_prefix_len());
    let ports = rule.matches.iter().find_map(|item| ports(rule, item));
    match (host, ports.filter(|(_, ranges)| are_few(ranges))) {
        (Some(host), Some((protocol, ranges))) => {
            return Key::Endpoint(bits(host.addr()), protocol, ranges);
        }
        (Some(host), None) => return destination(host),
        (None, Some((protocol, ranges))) => return Key::Ports(protocol, ranges),
        (None, None) => {}
    }
    match (dst, src) {
        (Some(dst), _) => destination(dst),
        (None, Some(src)) => Key::Source(src.prefix_len(), network(src.addr(), src.prefix_len())),
        (None, None) => Key::None,
    }
}

/// The destination ports that a match requires.
fn ports(rule: &Rule, item: &Match) -> Option<(IpProtocol, Vec<PortRange>)> {
    let single = |protocol, wanted: Option<Not<PortRange>>| match wanted {
        Some(Not { not: false, value }) => Some((protocol, vec![value])),
        _ => None,
    };
    match item {
        Match::Tcp(tcp) => single(IpProtocol::TCP, tcp.dport),
        Match::Udp(udp) => single(IpProtocol::UDP, udp.dport),
        Match::Sctp(sctp) => single(IpProtocol::SCTP, sctp.dport),
        Match::Multiport(many) if many.side == PortSide::Destination && !many.ports.not => {
            match rule.protocol {
                Some(Not { not: false, value }) => Some((value, many.ports.value.clone())),
                _ => None,
            }
        }
        _ => None,
    }
}
