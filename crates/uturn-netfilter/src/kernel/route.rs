//! Route lookups, with the checks of a packet's addresses.

use std::net::IpAddr;

use uturn_model::{By, Family, IpNet, Origin, StepKind};

use super::MAX_BRANCHES;
use super::compile::Hook;
use super::fib::{Answer, PolicyQuery, Query, Undecided};
use super::walk::{OpenBranches, RouteOut, Walk};
use super::{DeviceSwitches, Kernel};
use crate::capture_gaps::CaptureGap;
use crate::packet::{DropReason, EndKind, Packet, QuestionSubject};
use crate::packet_facts::Facts;
use crate::policy::{PolicyRule, RuleAction};
use crate::state::{Interface, RouteEntry, RouteKind};

/// The walk continues, or ends.
pub(super) type Routed = Result<(), EndKind>;

impl Kernel {
    /// Routes an incoming packet to INPUT or FORWARD.
    pub(super) fn route_in(&self, walk: &mut Walk, open: &mut OpenBranches) -> Routed {
        if walk.from_here {
            // It was routed when it was sent.
            walk.oif = None;
            walk.enter(Hook::Input);
            return Ok(());
        }
        let (packet, iif) = (walk.packet, walk.iif.clone().unwrap_or_else(|| "".into()));
        let switches = self.switches(&iif);
        if let Some((reason, why)) = martian(&packet, &iif, switches) {
            return Err(walk.dropped(
                reason,
                why,
                By::kernel("checks of the addresses of packets that come in"),
            ));
        }
        if packet.dst.is_multicast() {
            let by = By::kernel("delivery to groups");
            walk.note_unknown("nobody models packets to a group", by);
            return Err(EndKind::Unsettled);
        }
        let query = Query {
            src: Some(packet.src),
            dst: packet.dst,
            iif: &iif,
            oif: None,
            mark: packet.mark,
            transport: Query::transport(&packet),
            from_here: false,
        };
        if self.is_taken_as_own(walk) {
            walk.oif = None;
            walk.enter(Hook::Input);
            return Ok(());
        }
        let (route, equals) = self.ask(walk, query, Some(open))?;
        let local =
            matches!(route.kind, RouteKind::Local | RouteKind::Broadcast | RouteKind::Anycast);
        let forwards = match packet.family() {
            Family::V4 => switches.forwards,
            Family::V6 => self.state.sysctls.ip_forward(Family::V6),
        };
        if !local {
            self.suppose_gap(CaptureGap::Routes, walk);
            self.suppose_gap(CaptureGap::Policy, walk);
        }
        let stated = self.state.sysctls.get(&format!("net.ipv4.conf.{iif}.forwarding")).is_some();
        let gap = CaptureGap::Forwarding(packet.family());
        if !local && !forwards && !stated && self.state.gaps.contains(&gap) {
            walk.suppose(gap.supposition());
        } else if !local && !forwards {
            let by = By::new(self.forward_switch(packet.family()), Origin::file("sysctl"));
            return Err(walk.dropped(
                DropReason::NotForwarding,
                "this node does not forward packets",
                by,
            ));
        }
        if packet.family() == Family::V4 {
            let oif = if local { None } else { route.dev.as_deref() };
            if let Some((reason, why, by)) = self.source_fault(walk, &iif, switches, oif) {
                return Err(walk.dropped(reason, why, by));
            }
            let strict = DeviceSwitches { rp_filter: 1, ..switches };
            if self.state.gaps.contains(&CaptureGap::ReversePath)
                && self.source_fault(walk, &iif, strict, oif).is_some()
            {
                walk.suppose(CaptureGap::ReversePath.supposition());
            }
        }
        if local {
            walk.note(
                StepKind::Route,
                format!("{} is an address of this node", packet.dst),
                self.fib.by(route),
            );
            walk.oif = None;
            walk.enter(Hook::Input);
            return Ok(());
        }
        if walk.proxied {
            let why = "a packet that was given to a proxy is not forwarded: no rule leads it here";
            return Err(walk.dropped(DropReason::Invalid, why, self.fib.by(route)));
        }
        self.branch_over_routes(walk, route, equals, open, |walk| {
            walk.oif = walk.route.as_ref().map(|way| way.dev.clone());
            walk.enter(Hook::Forward);
        });
        Ok(())
    }

    /// Routes a locally generated packet before its first rule.
    pub(super) fn route_out(&self, walk: &mut Walk, open: &mut OpenBranches) -> Routed {
        let packet = walk.packet;
        let src = Some(packet.src).filter(|src| !src.is_unspecified());
        if self.is_taken_as_own(walk) {
            walk.unrouted = false;
            self.take_as_own(walk);
            return Ok(());
        }
        let query = Query {
            src,
            dst: packet.dst,
            iif: "lo",
            oif: None,
            mark: packet.mark,
            transport: Query::transport(&packet),
            from_here: true,
        };
        let (route, equals) = self.ask(walk, query, Some(open))?;
        if !matches!(route.kind, RouteKind::Local) {
            self.suppose_gap(CaptureGap::Routes, walk);
            self.suppose_gap(CaptureGap::Policy, walk);
        }
        self.may_leave(walk, route)?;
        walk.unrouted = false;
        self.branch_over_routes(walk, route, equals, open, |walk| {
            let Some(way) = &walk.route else { return };
            if src.is_none() {
                let own = match way.local {
                    true => Some(route.src.unwrap_or(packet.dst)),
                    false => {
                        route.src.or_else(|| self.source_address(&way.dev, way.via, packet.dst))
                    }
                };
                if let Some(own) = own {
                    walk.packet.src = own;
                }
            }
            walk.oif = Some(way.dev.clone());
            walk.before = walk.packet;
        });
        Ok(())
    }

    /// Reroutes a locally generated packet after a rule changed it. Rules of OUTPUT still see the
    /// interface of the first route.
    pub(super) fn route_again(&self, walk: &mut Walk, open: &mut OpenBranches) -> Routed {
        let packet = walk.packet;
        let query = Query {
            src: Some(packet.src),
            dst: packet.dst,
            iif: "lo",
            oif: None,
            mark: packet.mark,
            transport: Query::transport(&packet),
            from_here: true,
        };
        if self.is_taken_as_own(walk) {
            self.take_as_own(walk);
            return Ok(());
        }
        let before = open.len();
        let asked = self.ask(walk, query, Some(open));
        for other in &mut open[before..] {
            other.reroutes = true;
        }
        let (route, equals) = asked?;
        self.may_leave(walk, route)?;
        let stage = walk.stage;
        // The copy continues after this stage, as the walk itself will.
        self.branch_over_routes(walk, route, equals, open, |walk| walk.stage = stage + 1);
        walk.stage = stage;
        Ok(())
    }

    /// Drops a packet from 127.0.0.0/8 that would leave the node, unless `route_localnet` is set.
    fn may_leave(&self, walk: &mut Walk, route: &RouteEntry) -> Routed {
        let src = walk.packet.src;
        let dev = route.dev.as_deref().unwrap_or("");
        let stays = dev == "lo" || route.kind != RouteKind::Unicast;
        if !(src.is_ipv4() && src.is_loopback()) || stays || self.switches(dev).route_localnet {
            return Ok(());
        }
        let why = format!("a packet from {src} may not leave the node");
        let by = By::new(format!("net.ipv4.conf.{dev}.route_localnet = 0"), Origin::file("sysctl"));
        Err(walk.dropped(DropReason::MartianSource, why, by))
    }

    /// Assigns the route to the walk; branches take the routes of equal rank.
    pub(super) fn branch_over_routes(
        &self,
        walk: &mut Walk,
        route: &RouteEntry,
        equals: usize,
        open: &mut OpenBranches,
        then: impl Fn(&mut Walk),
    ) {
        if equals > 0 {
            let others = self.fib.equals(route);
            walk.share /= (others.len() + 1) as f64;
            for other in others {
                let mut copy = walk.fork();
                self.take(&mut copy, other);
                then(&mut copy);
                open.push(copy);
            }
        }
        self.take(walk, route);
        then(walk);
    }

    pub(super) fn take(&self, walk: &mut Walk, route: &RouteEntry) {
        let local =
            matches!(route.kind, RouteKind::Local | RouteKind::Broadcast | RouteKind::Anycast);
        let dev = if local { "lo".into() } else { route.dev.clone().unwrap_or_else(|| "".into()) };
        let evidence = self.fib.evidence(route);
        let (by, through) = &*evidence;
        let mut why = String::with_capacity(64);
        if local {
            push_ip(&mut why, walk.packet.dst);
            why.push_str(" is an address of this node");
        } else {
            why.push_str("to ");
            push_ip(&mut why, walk.packet.dst);
            why.push(' ');
            why.push_str(through);
        }
        walk.capture_assumptions.forget_out();
        walk.route = Some(RouteOut { dev, via: route.via.filter(|_| !local), local });
        walk.note(StepKind::Route, why.as_str(), by.clone());
    }

    /// Looks up a route; `Err` says why there is none.
    pub(super) fn ask<'a>(
        &'a self,
        walk: &mut Walk,
        query: Query<'_>,
        mut open: Option<&mut OpenBranches>,
    ) -> Result<(&'a RouteEntry, usize), EndKind> {
        let dst = query.dst;
        let answer = loop {
            let stops = open.as_ref().is_some_and(|open| open.len() < MAX_BRANCHES);
            let mut policy_query = PolicyQuery {
                stops,
                taken: &walk.policy_answers,
                ..PolicyQuery::without_branching(&walk.facts)
            };
            let answer = self.fib.look_up(query, &mut policy_query);
            let PolicyQuery { skipped, supposed, .. } = policy_query;
            if let (Answer::Undecided(place, rule, about), Some(open)) = (answer, &mut open) {
                part(walk, (place, rule, about), open);
                continue;
            }
            for rule in skipped {
                walk.note_unknown("nobody models this routing rule: passed over", of_policy(rule));
            }
            for supposition in supposed {
                walk.suppose(supposition);
            }
            break answer;
        };
        let (reason, why, by) = match answer {
            Answer::Route(route, equals) => match route.kind {
                RouteKind::Blackhole => (
                    DropReason::Blackhole,
                    format!("packets to {dst} are thrown away"),
                    self.fib.by(route),
                ),
                RouteKind::Unreachable => (
                    DropReason::Unreachable,
                    format!("{dst} is set to be unreachable"),
                    self.fib.by(route),
                ),
                RouteKind::Prohibit => {
                    (DropReason::Prohibited, format!("{dst} is forbidden"), self.fib.by(route))
                }
                _ => return Ok((route, equals)),
            },
            Answer::Rule(rule) => {
                let by = of_policy(rule);
                match rule.action {
                    RuleAction::Prohibit => {
                        (DropReason::Prohibited, format!("{dst} is forbidden"), by)
                    }
                    RuleAction::Blackhole => {
                        (DropReason::Blackhole, format!("packets to {dst} are thrown away"), by)
                    }
                    // Unlike an unreachable route, an unreachable policy rule reports the network
                    // as unreachable.
                    _ => (DropReason::NoRoute, format!("{dst} is set to be unreachable"), by),
                }
            }
            Answer::Nothing | Answer::Undecided(..) => (
                DropReason::NoRoute,
                format!("no route leads to {dst}"),
                By::kernel("routing tables"),
            ),
        };
        Err(walk.dropped(reason, why, by))
    }

    /// The check that the source of an IPv4 packet fails, if any; `oif` is the interface that the
    /// packet would leave through.
    fn source_fault(
        &self,
        walk: &Walk,
        iif: &str,
        switches: DeviceSwitches,
        oif: Option<&str>,
    ) -> Option<(DropReason, String, By)> {
        let src = walk.packet.src;
        if self.knows_no_route() {
            return None;
        }
        let local_source = || {
            let why = format!("its source {src} is an address of this node itself");
            let by =
                By::new(format!("net.ipv4.conf.{iif}.accept_local = 0"), Origin::file("sysctl"));
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
            let by = format!("net.ipv4.conf.{iif}.rp_filter = {}", switches.rp_filter);
            Some((DropReason::ReversePathFilter, why, By::new(by, Origin::file("sysctl"))))
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
        match self.fib.look_up(back, &mut PolicyQuery::without_branching(&walk.facts)) {
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
                    By::kernel("checks of the source of packets that come in"),
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
        packet: Packet,
        mark: u32,
    ) -> Option<(&RouteEntry, impl Fn(&str) -> bool)> {
        let src = Some(packet.dst).filter(|ip| !ip.is_multicast());
        let (transport, from_here) = (None, false);
        let query =
            Query { src, dst: packet.src, iif: "lo", oif: None, mark, transport, from_here };
        let facts = Facts::default();
        let Answer::Route(route, equals) =
            self.fib.look_up(query, &mut PolicyQuery::without_branching(&facts))
        else {
            return None;
        };
        let mut all = if equals > 0 { self.fib.equals(route) } else { Vec::new() };
        all.push(route);
        Some((route, move |device: &str| {
            all.iter().any(|route| route.dev.as_deref() == Some(device))
        }))
    }

    fn forward_switch(&self, family: Family) -> &'static str {
        match family {
            Family::V4 => "net.ipv4.ip_forward = 0",
            Family::V6 => "net.ipv6.conf.all.forwarding = 0",
        }
    }

    fn interface(&self, name: &str) -> Option<&Interface> {
        self.state.interfaces.iter().find(|interface| &*interface.name == name)
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

/// Branches on a policy rule that is undecided: a copy is routed as if the rule did not match.
fn part(
    walk: &mut Walk,
    (place, rule, about): (usize, &PolicyRule, Undecided),
    open: &mut OpenBranches,
) {
    let mut other = walk.fork();
    for (way, met) in [(&mut *walk, true), (&mut *other, false)] {
        way.share /= 2.0;
        let applies = if met { "as if it applied" } else { "as if it did not apply" };
        let (doubt, holds, why) = match about {
            Undecided::Fact(fact) => {
                let holds = met != rule.invert;
                way.facts.add(fact, holds);
                match fact.subject.is_sender() {
                    true => (QuestionSubject::Sender(fact), holds, fact.describe(holds)),
                    false => (QuestionSubject::Match, met, format!("{fact}: {applies}")),
                }
            }
            Undecided::Rule => {
                way.policy_answers.push((place, met));
                (
                    QuestionSubject::Match,
                    met,
                    format!("the tunnel it came through is not known: {applies}"),
                )
            }
        };
        way.note_branch(doubt, holds, why, of_policy(rule));
    }
    open.push(other);
}

/// A policy rule as evidence.
fn of_policy(rule: &PolicyRule) -> By {
    By::new(rule.to_string(), rule.origin.clone())
}

/// Why an incoming packet's addresses are martian, if they are.
fn martian(packet: &Packet, iif: &str, switches: DeviceSwitches) -> Option<(DropReason, String)> {
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
fn own(interface: &Interface, family: Family) -> impl Iterator<Item = (IpAddr, u8)> + '_ {
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
fn push_ip(text: &mut String, ip: IpAddr) {
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
