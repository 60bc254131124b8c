//! Route lookups, with the checks of a packet's addresses.

use std::net::IpAddr;

use uturn_model::{Assumption, Evidence, Family, StepKind};

use super::compile::Hook;
use super::fib::{Answer, PolicyQuery, Query, Undecided};
use super::merge::TOO_MUCH;
use super::source::{martian, push_ip};
use super::walk::{OpenBranches, RouteOut, Walk};
use super::{DeviceSwitches, Kernel};
use crate::capture_gaps::CaptureGap;
use crate::end::{DropReason, EndKind};
use crate::policy::{PolicyRule, RuleAction};
use crate::question::QuestionSubject;
use crate::state::{Interface, RouteEntry, RouteKind};

/// The walk continues, or ends.
pub(super) type Routed = Result<(), EndKind>;

impl Kernel {
    /// Routes an incoming packet to INPUT or FORWARD.
    pub(super) fn route_in(&self, walk: &mut Walk, open: &mut OpenBranches) -> Routed {
        if walk.from_here {
            // The packet was routed when it was sent.
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
                Evidence::kernel("checks of the addresses of packets that come in"),
            ));
        }
        if packet.dst.is_multicast() {
            let by = Evidence::kernel("delivery to groups");
            walk.note_unknown("multicast packets are not modelled", by);
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
            walk.assume(gap.assumption());
        } else if !local && !forwards {
            let by = Evidence::sysctl(self.forward_switch(packet.family()), "0");
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
                walk.assume(CaptureGap::ReversePath.assumption());
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
        self.has_own_source(walk)?;
        walk.unrouted = false;
        self.branch_over_routes(walk, route, equals, open, |walk| {
            let Some(way) = &walk.route else { return };
            walk.oif = Some(way.dev.clone());
            if src.is_none() {
                let own = if way.local {
                    Some(route.src.unwrap_or(packet.dst))
                } else {
                    route.src.or_else(|| self.source_address(&way.dev, way.via, packet.dst))
                };
                match own {
                    Some(own) => walk.packet.src = own,
                    None if walk.packet.transport.is_error() => walk.assume(unknown_source()),
                    None => {}
                }
            }
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
        for other in open.since(before) {
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
        let by = Evidence::sysctl(format!("net.ipv4.conf.{dev}.route_localnet"), "0");
        Err(walk.dropped(DropReason::MartianSource, why, by))
    }

    /// Ends an IPv4 ICMP error whose source is not an address of the node: the kernel finds no
    /// route for it. A TCP reset may come from any address.
    fn has_own_source(&self, walk: &mut Walk) -> Routed {
        let src = walk.packet.src;
        let is_checked = walk.packet.transport.is_error() && src.is_ipv4() && !src.is_unspecified();
        if !is_checked
            || self.is_own(src)
            || self.state.gaps.contains(&CaptureGap::Addresses)
            || walk.notes.capture_assumptions.is_own(src).is_some()
        {
            return Ok(());
        }
        let why = format!("no ICMP error is sent from {src}, which is not an address of this node");
        Err(walk.dropped(DropReason::NoRoute, why, Evidence::kernel("the source of ICMP errors")))
    }

    /// Gives a packet that is refused before it is routed the route that its refusal takes. The
    /// refusal comes from the address that was called if that route is local (IPv4), or if the
    /// address is the node's own (IPv6).
    pub(super) fn route_refusal(&self, walk: &mut Walk) {
        let packet = walk.packet;
        let local = match packet.family() {
            Family::V4 => {
                let query = Query {
                    src: None,
                    dst: packet.src,
                    iif: "lo",
                    oif: None,
                    mark: 0,
                    transport: None,
                    from_here: true,
                };
                let answer = self.look_up_without_branching(walk, &walk.notes.facts, query);
                matches!(answer, Answer::Route(route, _) if route.kind == RouteKind::Local)
            }
            Family::V6 => self.is_own(packet.dst),
        };
        walk.route = Some(RouteOut { dev: "lo".into(), via: None, local });
    }

    /// Whether an address is the node's own: an interface has it, or the table `local`.
    fn is_own(&self, ip: IpAddr) -> bool {
        let local = || self.fib.local(ip).is_some_and(|route| route.kind == RouteKind::Local);
        self.fib.has_address(ip) || local()
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
            walk.share = walk.share.split(others.len() + 1);
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
        walk.forget_out();
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
            let stops = open.is_some();
            let mut policy_query = PolicyQuery {
                stops,
                taken: &walk.notes.policy_answers,
                ..PolicyQuery::without_branching(&walk.notes.facts)
            };
            let answer = self.fib.look_up(query, &mut policy_query);
            let PolicyQuery { skipped, supposed, work, .. } = policy_query;
            let may_go_on = open.as_mut().is_none_or(|open| open.count_lookup(walk, work));
            if let (Answer::Undecided(place, rule, about), Some(open)) = (answer, &mut open) {
                if !may_go_on || open.is_full(0) {
                    walk.note_unknown(TOO_MUCH, of_policy(rule));
                    return Err(EndKind::Unsettled);
                }
                part(walk, (place, rule, about), open);
                continue;
            }
            for rule in skipped {
                walk.note_unknown("this routing rule is not modelled: skipped", of_policy(rule));
            }
            for assumption in supposed {
                walk.assume(assumption);
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
                Evidence::kernel("routing tables"),
            ),
        };
        Err(walk.dropped(reason, why, by))
    }

    fn forward_switch(&self, family: Family) -> &'static str {
        match family {
            Family::V4 => "net.ipv4.ip_forward",
            Family::V6 => "net.ipv6.conf.all.forwarding",
        }
    }

    pub(super) fn interface(&self, name: &str) -> Option<&Interface> {
        self.state.interfaces.iter().find(|interface| &*interface.name == name)
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
        way.share = way.share.split(2);
        let applies = if met { "as if it applied" } else { "as if it did not apply" };
        let (doubt, holds, why) = match about {
            Undecided::Fact(fact) => {
                let holds = met != rule.invert;
                way.notes.facts.add(fact, holds);
                if fact.subject.is_sender() {
                    (QuestionSubject::Sender(fact), holds, fact.describe(holds))
                } else {
                    (QuestionSubject::Match, met, format!("{fact}: {applies}"))
                }
            }
            Undecided::Rule => {
                way.notes.policy_answers.push((place, met));
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

/// The assumption for an ICMP error of a node whose addresses are not known.
fn unknown_source() -> Assumption {
    Assumption {
        subject: "the address that an ICMP error comes from".into(),
        assumed: "one of the node that no rule names".into(),
        because: "the capture has neither addr nor route".into(),
        settle: "capture ip addr as addr".into(),
    }
}

/// A policy rule as evidence.
fn of_policy(rule: &PolicyRule) -> Evidence {
    Evidence::Route { route: rule.to_string().into(), origin: rule.origin.clone() }
}
