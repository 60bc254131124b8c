//! Source addresses: the checks of an incoming packet, and the selection for an outgoing one.

use std::net::IpAddr;

use uturn_model::{Evidence, Family, IpNet};

use super::fib::{Answer, PolicyQuery, Query};
use super::walk::Walk;
use super::{DeviceSwitches, Kernel};
use crate::end::DropReason;
use crate::packet::Packet;
use crate::packet_facts::Facts;
use crate::state::{Interface, RouteEntry, RouteKind};

impl Kernel {
    /// The check that the source of an IPv4 packet fails, if any; `oif` is the interface that the
    /// packet would leave through.
    pub(super) fn source_fault(
        &self,
        walk: &Walk,
        iif: &str,
        switches: DeviceSwitches,
        oif: Option<&str>,
    ) -> Option<(DropReason, String, Evidence)> {
        let src = walk.packet.src;
        if self.knows_no_route() {
            return None;
        }
        let local_source = || {
            let why = format!("its source {src} is an address of this node itself");
            let by = Evidence::sysctl(format!("net.ipv4.conf.{iif}.accept_local"), "0");
            Some((DropReason::LocalSource, why, by))
        };
        if switches.rp_filter == 0 {
            if switches.accept_local {
                return None;
            }
            if !self.fib.custom {
                return if self.fib.has_address(src) { local_source() } else { None };
            }
        }
        let strict = || {
            let why = format!("the way back to {src} is not through {iif}");
            let name = format!("net.ipv4.conf.{iif}.rp_filter");
            Some((
                DropReason::ReversePathFilter,
                why,
                Evidence::sysctl(name, switches.rp_filter.to_string()),
            ))
        };
        let mark = if switches.src_valid_mark { walk.packet.mark } else { 0 };
        let back = Query {
            src: Some(walk.packet.dst),
            dst: src,
            iif: oif.unwrap_or("lo"),
            oif: None,
            mark,
            transport: Query::transport(&walk.packet.reply()),
            from_here: false,
        };
        let interface = self.interface(iif);
        match self.look_up_without_branching(walk, &walk.notes.facts, back) {
            Answer::Route(route, _) if route.kind == RouteKind::Local => {
                if !switches.accept_local {
                    return local_source();
                }
                let here = route.dev.as_deref() == Some(iif) || iif == "lo";
                if here || switches.rp_filter != 1 { None } else { strict() }
            }
            Answer::Route(route, equals) if route.kind == RouteKind::Unicast => {
                let others = if equals > 0 { self.fib.equals(route) } else { Vec::new() };
                let here = std::iter::once(route)
                    .chain(others)
                    .any(|route| route.dev.as_deref() == Some(iif));
                let bare = interface.is_some_and(|interface| {
                    interface.addresses.iter().all(|(ip, _)| ip.is_ipv6())
                });
                match switches.rp_filter {
                    _ if here => None,
                    // An interface without an address skips the lookup; only an enabled filter
                    // drops.
                    0 => None,
                    1 => strict(),
                    _ if bare => strict(),
                    _ => None,
                }
            }
            Answer::Route(
                RouteEntry {
                    kind: RouteKind::Broadcast | RouteKind::Anycast | RouteKind::Multicast,
                    ..
                },
                _,
            ) => {
                let why = format!("no packet comes from the address {src}");
                Some((
                    DropReason::MartianSource,
                    why,
                    Evidence::kernel("checks of the source of packets that come in"),
                ))
            }
            Answer::Route(..) | Answer::Rule(_) | Answer::Nothing if switches.rp_filter > 0 => {
                strict()
            }
            Answer::Route(..) | Answer::Rule(_) | Answer::Nothing | Answer::Undecided(..) => None,
        }
    }

    /// The route from a packet's destination back to its source, and whether it or one of equal
    /// rank uses an interface.
    pub(super) fn way_back(
        &self,
        walk: &Walk,
        mark: u32,
    ) -> Option<(&RouteEntry, impl Fn(&str) -> bool)> {
        let packet = &walk.packet;
        let src = Some(packet.dst).filter(|ip| !ip.is_multicast());
        let (transport, from_here) = (None, false);
        let query =
            Query { src, dst: packet.src, iif: "lo", oif: None, mark, transport, from_here };
        let answer = self.look_up_without_branching(walk, &Facts::default(), query);
        let Answer::Route(route, equals) = answer else { return None };
        let mut all = if equals > 0 { self.fib.equals(route) } else { Vec::new() };
        all.push(route);
        Some((route, move |device: &str| {
            all.iter().any(|route| route.dev.as_deref() == Some(device))
        }))
    }

    /// Looks up a route as a rule or a check does that does not branch on it, and counts the work.
    pub(super) fn look_up_without_branching(
        &self,
        walk: &Walk,
        facts: &Facts,
        query: Query<'_>,
    ) -> Answer<'_> {
        let mut policy_query = PolicyQuery::without_branching(facts);
        let answer = self.fib.look_up(query, &mut policy_query);
        walk.note_lookup(policy_query.work);
        answer
    }

    /// The first address of an interface.
    pub(super) fn first_address(&self, device: &str, family: Family) -> Option<IpAddr> {
        own(self.interface(device)?, family).next().map(|(ip, _)| ip)
    }

    /// Source address selection for `dst` on `device`: for IPv4, an address in the network of the
    /// next hop; for IPv6, the one with the longest common prefix.
    pub(super) fn source_address(
        &self,
        device: &str,
        via: Option<IpAddr>,
        dst: IpAddr,
    ) -> Option<IpAddr> {
        let family = Family::of(dst);
        let peer = via.filter(|_| family == Family::V4).unwrap_or(dst);
        let interface = self.interface(device);
        let usable = |(ip, _): &(IpAddr, u8)| !ip.is_loopback();
        let here =
            || interface.into_iter().flat_map(|interface| own(interface, family)).filter(usable);
        let beside = |(ip, length): &(IpAddr, u8)| {
            IpNet::new(*ip, *length).is_ok_and(|net| net.contains(&peer))
        };
        let elsewhere = || {
            let all = self.state.interfaces.iter().flat_map(|interface| own(interface, family));
            all.filter(usable)
        };
        let found = match family {
            Family::V4 => {
                here().find(beside).or_else(|| here().next()).or_else(|| elsewhere().next())
            }
            Family::V6 => {
                let link = |ip: &IpAddr| matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
                let near = link(&peer);
                let common = |(ip, _): &(IpAddr, u8)| shared_bits(*ip, peer);
                let fits = |(ip, _): &(IpAddr, u8)| link(ip) == near;
                let best = here().filter(fits).rev_max_by_key(common);
                best.or_else(|| elsewhere().filter(fits).rev_max_by_key(common))
                    .or_else(|| here().next())
            }
        };
        found.map(|(ip, _)| ip)
    }
}

/// Returns why an incoming packet's addresses are martian, if they are.
pub(super) fn martian(
    packet: &Packet,
    iif: &str,
    switches: DeviceSwitches,
) -> Option<(DropReason, String)> {
    let (src, dst) = (packet.src, packet.dst);
    let source = |what: &str| {
        Some((DropReason::MartianSource, format!("no packet comes from {what} {src}")))
    };
    match (src, dst) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let localnet = iif == "lo" || switches.route_localnet;
            if from.is_multicast() || from.is_broadcast() || from.octets()[0] == 0 {
                return source("the address");
            }
            if to.octets()[0] == 0 || (to.is_loopback() && !localnet) {
                let why = format!("packets to {to} do not come in through {iif}");
                return Some((DropReason::MartianDestination, why));
            }
            if from.is_loopback() && !localnet { source("the loopback address") } else { None }
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            if from.is_multicast() || (from.is_loopback() && iif != "lo") {
                return source("the address");
            }
            (to.is_loopback() && iif != "lo").then(|| {
                let why = format!("packets to {to} do not come in through {iif}");
                (DropReason::MartianDestination, why)
            })
        }
        _ => Some((DropReason::Invalid, "its addresses are of two families".into())),
    }
}

/// The primary addresses of an interface that can be a source address. An address in the network
/// of an earlier one is secondary.
pub(super) fn own(
    interface: &Interface,
    family: Family,
) -> impl Iterator<Item = (IpAddr, u8)> + '_ {
    let all = interface.addresses.iter().enumerate();
    all.filter(move |(at, (ip, length))| {
        let net = IpNet::new(*ip, *length).map(|net| net.trunc());
        let same = |(other, l): &(IpAddr, u8)| IpNet::new(*other, *l).map(|net| net.trunc()) == net;
        let secondary = ip.is_ipv4() && interface.addresses[..*at].iter().any(same);
        Family::of(*ip) == family && !secondary
    })
    .map(|(_, address)| *address)
}

/// Equivalent to `Display` without its overhead; every branch of a walk builds such texts.
pub(super) fn push_ip(text: &mut String, ip: IpAddr) {
    let IpAddr::V4(ip) = ip else {
        text.push_str(&ip.to_string());
        return;
    };
    for (at, byte) in ip.octets().into_iter().enumerate() {
        if at > 0 {
            text.push('.');
        }
        for (unit, from) in [(100, 100), (10, 10), (1, 0)] {
            if byte >= from {
                text.push(char::from(b'0' + byte / unit % 10));
            }
        }
    }
}

fn shared_bits(a: IpAddr, b: IpAddr) -> u32 {
    match (a, b) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
        (IpAddr::V6(a), IpAddr::V6(b)) => (a.to_bits() ^ b.to_bits()).leading_zeros(),
        _ => 0,
    }
}

/// Returns the first maximum, where the standard `max_by_key` returns the last.
trait FirstMax: Iterator + Sized {
    fn rev_max_by_key<K: Ord>(self, key: impl Fn(&Self::Item) -> K) -> Option<Self::Item> {
        self.reduce(|best, item| if key(&item) > key(&best) { item } else { best })
    }
}

impl<I: Iterator> FirstMax for I {}
