//! Routing tables and the policy rules that select them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::OnceLock;

use uturn_model::{Assumption, Evidence, Family, IpNet, Origin, Text};

use crate::capture_gaps::UNKNOWN_INTERFACE;
use crate::hash::{FastMap, FastSet};
use crate::packet::{IpProtocol, Packet};
use crate::packet_facts::{FactSubject, Facts, PacketFact};
use crate::policy::{PolicyRule, RuleAction, Suppress};
use crate::state::{NodeState, RouteEntry, RouteKind, TABLE_LOCAL};

/// The routing tables of both families.
#[derive(Debug)]
pub(super) struct Fib {
    routes: Vec<Known>,
    tables: FastMap<(Family, u32), Lengths>,
    rules: Vec<PolicyRule>,
    /// The addresses of all interfaces.
    addresses: FastSet<IpAddr>,
    /// Whether there are policy rules besides the defaults, so that the shortcut for checking a
    /// packet's source does not apply.
    pub(super) custom: bool,
}

/// The routes of a table by prefix length and network; routes to the same network by metric.
type Lengths = BTreeMap<u8, FastMap<IpAddr, Vec<usize>>>;

#[derive(Debug)]
struct Known {
    route: RouteEntry,
    evidence: OnceLock<(Evidence, Text)>,
}

/// A route lookup.
#[derive(Clone, Copy, Debug)]
pub(super) struct Query<'a> {
    pub(super) src: Option<IpAddr>,
    pub(super) dst: IpAddr,
    pub(super) iif: &'a str,
    pub(super) oif: Option<&'a str>,
    pub(super) mark: u32,
    /// The protocol and ports, if the kernel considers them in this lookup.
    pub(super) transport: Option<(IpProtocol, (u16, u16))>,
    /// Whether a local process may have sent the packet.
    pub(super) from_here: bool,
}

impl Query<'_> {
    /// The protocol and ports of a packet that policy rules can select by.
    pub(super) fn transport(packet: &Packet) -> Option<(IpProtocol, (u16, u16))> {
        Some((packet.protocol(), packet.transport.ports()))
    }
}

/// The treatment of policy rules whose selectors are not known to match in a lookup, and the
/// findings of the lookup about these rules.
#[derive(Debug)]
pub(super) struct PolicyQuery<'a, 'w> {
    pub(super) facts: &'w Facts,
    /// Rules that are assumed to match or not, by index.
    pub(super) taken: &'w [(usize, bool)],
    /// Whether to stop at a rule that is undecided.
    pub(super) stops: bool,
    /// Rules that were skipped.
    pub(super) skipped: Vec<&'a PolicyRule>,
    pub(super) supposed: Vec<Assumption>,
    /// The work of the lookup, as a number of rules: each rule, and the facts that it is compared
    /// with.
    pub(super) work: u64,
}

/// Comparing so many facts takes as long as evaluating a rule.
const FACTS_OF_A_RULE: usize = 8;

impl<'w> PolicyQuery<'_, 'w> {
    /// For lookups on which a walk does not branch: skips rules that are undecided.
    pub(super) fn without_branching(facts: &'w Facts) -> Self {
        let (skipped, supposed) = (Vec::new(), Vec::new());
        Self { facts, taken: &[], stops: false, skipped, supposed, work: 0 }
    }
}

/// The reason why it is undecided whether a policy rule matches.
#[derive(Clone, Copy, Debug)]
pub(super) enum Undecided {
    /// The match depends on this fact.
    Fact(PacketFact),
    /// The match depends on something that only this rule tests.
    Rule,
}

/// The result of a lookup.
#[derive(Clone, Copy, Debug)]
pub(super) enum Answer<'a> {
    /// A route, and the number of routes with the same rank.
    Route(&'a RouteEntry, usize),
    /// A policy rule ends the lookup.
    Rule(&'a PolicyRule),
    /// No table has a route.
    Nothing,
    /// It is undecided whether a rule matches: its index, the rule, and why.
    Undecided(usize, &'a PolicyRule, Undecided),
}

impl Fib {
    pub(super) fn new(state: &NodeState) -> Self {
        let rules = if state.rules.is_empty() {
            PolicyRule::defaults()
        } else {
            let mut rules = state.rules.clone();
            rules.sort_by_key(|rule| rule.priority);
            rules
        };
        let mut fib = Self {
            routes: Vec::new(),
            tables: FastMap::default(),
            custom: !rules.iter().all(PolicyRule::is_usual),
            rules,
            addresses: FastSet::default(),
        };
        for route in &state.routes {
            fib.add(route.clone());
        }
        for interface in &state.interfaces {
            for (ip, _) in &interface.addresses {
                fib.addresses.insert(*ip);
                fib.add_local(*ip, &interface.name);
                if ip.is_loopback() && ip.is_ipv4() {
                    fib.add_loopback(&interface.name);
                }
            }
        }
        let bound = |route: &RouteEntry| {
            let is_host_route = route.dst.prefix_len() == route.dst.max_prefix_len();
            fib.addresses.contains(&route.dst.addr())
                || (!is_host_route && fib.addresses.iter().any(|ip| route.dst.contains(ip)))
        };
        let own = |known: &Known| known.route.kind != RouteKind::Local || bound(&known.route);
        fib.custom = fib.custom || !fib.routes.iter().all(own);
        fib
    }

    fn add(&mut self, route: RouteEntry) {
        let family = Family::of(route.dst.addr());
        let lengths = self.tables.entry((family, route.table)).or_default();
        let networks = lengths.entry(route.dst.prefix_len()).or_default();
        let list = networks.entry(route.dst.network()).or_default();
        let at = list.partition_point(|at| self.routes[*at].route.metric <= route.metric);
        list.insert(at, self.routes.len());
        self.routes.push(Known { route, evidence: OnceLock::new() });
    }

    /// Adds the `local` route that the kernel creates for an interface address.
    fn add_local(&mut self, ip: IpAddr, device: &Text) {
        let found = self.find(Family::of(ip), TABLE_LOCAL, ip, None).map(|(route, _)| route);
        if found.is_some_and(|route| route.kind == RouteKind::Local) {
            return;
        }
        self.add(RouteEntry {
            dst: IpNet::from(ip),
            via: None,
            dev: Some(device.clone()),
            table: TABLE_LOCAL,
            kind: RouteKind::Local,
            src: Some(ip),
            metric: 0,
            origin: Origin::Kernel,
        });
    }

    /// Adds the `local` route for 127.0.0.0/8.
    fn add_loopback(&mut self, device: &Text) {
        let net: IpNet = "127.0.0.0/8".parse().expect("a constant range");
        let all = IpAddr::from([127, 255, 255, 254]);
        if self.find(Family::V4, TABLE_LOCAL, all, None).is_some() {
            return;
        }
        let mut route = RouteEntry::unicast(net, None, device.clone(), Origin::Kernel);
        (route.table, route.kind) = (TABLE_LOCAL, RouteKind::Local);
        self.add(route);
    }

    /// Looks up a route, following the policy rules in order.
    pub(super) fn look_up<'a>(
        &'a self,
        query: Query<'_>,
        policy_query: &mut PolicyQuery<'a, '_>,
    ) -> Answer<'a> {
        let family = Family::of(query.dst);
        let mut at = 0;
        while let Some(rule) = self.rules.get(at) {
            let place = at;
            at += 1;
            policy_query.work += 1;
            if rule.more.users.is_some() || rule.more.class.is_some() {
                policy_query.work += (policy_query.facts.len() / FACTS_OF_A_RULE) as u64;
            }
            if !rule.concerns(family) {
                continue;
            }
            match applies(rule, query, policy_query.facts) {
                Ok(true) => {}
                Ok(false) => continue,
                Err(open) => match policy_query.taken.iter().find(|(taken, _)| *taken == place) {
                    Some((_, true)) => {}
                    Some((_, false)) => continue,
                    None if policy_query.stops => return Answer::Undecided(place, rule, open),
                    None => {
                        policy_query.skipped.push(rule);
                        continue;
                    }
                },
            }
            match &rule.action {
                RuleAction::Lookup(table) => {
                    match self.find(family, *table, query.dst, query.oif) {
                        Some((RouteEntry { kind: RouteKind::Throw, .. }, _)) | None => {}
                        Some((route, _)) if suppresses(&rule.suppress, route, policy_query) => {}
                        Some((route, equals)) => return Answer::Route(route, equals),
                    }
                }
                // Only forward jumps: the kernel accepts no others.
                RuleAction::Goto(to) => {
                    let target =
                        self.rules[at..].iter().position(|candidate| candidate.priority == *to);
                    at += target.unwrap_or(0);
                    policy_query.work += target.unwrap_or(0) as u64;
                }
                RuleAction::Nop => {}
                RuleAction::Vrf => policy_query.supposed.push(no_vrf()),
                RuleAction::Unknown(_) => policy_query.skipped.push(rule),
                RuleAction::Unreachable | RuleAction::Prohibit | RuleAction::Blackhole => {
                    return Answer::Rule(rule);
                }
            }
        }
        Answer::Nothing
    }

    /// The best route of a table, and the number of other routes with the same rank.
    fn find(
        &self,
        family: Family,
        table: u32,
        dst: IpAddr,
        oif: Option<&str>,
    ) -> Option<(&RouteEntry, usize)> {
        for (length, networks) in self.tables.get(&(family, table))?.iter().rev() {
            let network = IpNet::new(dst, *length).ok()?.network();
            let Some(list) = networks.get(&network) else { continue };
            let mut fitting = list
                .iter()
                .map(|at| &self.routes[*at].route)
                .filter(|route| oif.is_none_or(|oif| route.dev.as_deref() == Some(oif)));
            if let Some(best) = fitting.next() {
                let unicast = best.kind == RouteKind::Unicast;
                let equal = |route: &&RouteEntry| {
                    unicast && route.metric == best.metric && route.kind == best.kind
                };
                return Some((best, fitting.filter(equal).count()));
            }
        }
        None
    }

    /// The routes with the same rank as `best`, without `best`.
    pub(super) fn equals<'a>(&'a self, best: &RouteEntry) -> Vec<&'a RouteEntry> {
        let all = self.beside(best).map(|known| &known.route);
        all.filter(|route| {
            !std::ptr::eq(*route, best) && (route.metric, route.kind) == (best.metric, best.kind)
        })
        .collect()
    }

    /// The routes of the same table to the same network.
    fn beside(&self, route: &RouteEntry) -> impl Iterator<Item = &Known> {
        let (dst, table) = (route.dst, route.table);
        let lengths = self.tables.get(&(Family::of(dst.addr()), table));
        let networks = lengths.and_then(|lengths| lengths.get(&dst.prefix_len()));
        let list = networks.and_then(|networks| networks.get(&dst.network()));
        list.into_iter().flatten().map(|at| &self.routes[*at])
    }

    /// Whether an interface has this address.
    pub(super) fn has_address(&self, ip: IpAddr) -> bool {
        self.addresses.contains(&ip)
    }

    /// The route of the table `local` for an address.
    pub(super) fn local(&self, ip: IpAddr) -> Option<&RouteEntry> {
        self.find(Family::of(ip), TABLE_LOCAL, ip, None).map(|(route, _)| route)
    }

    /// A route as evidence, with its direction: `through eth0, next 10.0.0.1`.
    pub(super) fn evidence(&self, route: &RouteEntry) -> Cow<'_, (Evidence, Text)> {
        let make = || (of_route(route), through(route));
        match self.beside(route).find(|known| std::ptr::eq(&known.route, route)) {
            Some(known) => Cow::Borrowed(known.evidence.get_or_init(make)),
            None => Cow::Owned(make()),
        }
    }

    /// A route as evidence.
    pub(super) fn by(&self, route: &RouteEntry) -> Evidence {
        self.evidence(route).0.clone()
    }
}

fn through(route: &RouteEntry) -> Text {
    let dev = route.dev.as_deref().unwrap_or("");
    if dev == UNKNOWN_INTERFACE {
        return "through an interface that nothing names".into();
    }
    match route.via {
        None => format!("through {dev}").into(),
        Some(via) => format!("through {dev}, next {via}").into(),
    }
}

fn of_route(route: &RouteEntry) -> Evidence {
    if route.dev.as_deref() == Some(UNKNOWN_INTERFACE) {
        return Evidence::not_captured("routes of the node");
    }
    Evidence::Route { route: route.to_string().into(), origin: route.origin.clone() }
}

/// Whether a rule matches; `Err` says why that is undecided.
fn applies(rule: &PolicyRule, query: Query<'_>, facts: &Facts) -> Result<bool, Undecided> {
    let within = |net: &Option<IpNet>, ip: Option<IpAddr>| {
        net.is_none_or(|net| ip.is_some_and(|ip| net.contains(&ip)))
    };
    // Unlike in `-m mark`, value bits outside the mask are ignored.
    let marked = rule.mark.is_none_or(|(value, mask)| (query.mark ^ value) & mask == 0);
    let more = &rule.more;
    let (protocol, ports) = match query.transport {
        Some((protocol, ports)) => (Some(protocol), ports),
        None => (None, (0, 0)),
    };
    // For IPv4, a source that is still to be selected is 0.0.0.0.
    let still = (query.dst.is_ipv4() && query.from_here).then_some(Ipv4Addr::UNSPECIFIED.into());
    let known = within(&rule.from, query.src.or(still))
        && within(&rule.to, Some(query.dst))
        && rule.iif.as_deref().is_none_or(|iif| iif == query.iif)
        && rule.oif.as_deref().is_none_or(|oif| query.oif == Some(oif))
        && marked
        && more.protocol.is_none_or(|wanted| protocol == Some(wanted))
        && more.sport.is_none_or(|wanted| wanted.contains(ports.0))
        && more.dport.is_none_or(|wanted| wanted.contains(ports.1));
    if !known {
        return Ok(rule.invert);
    }
    let mut open = None;
    if let Some((first, last)) = more.users {
        let fact = PacketFact { subject: FactSubject::User, first, last };
        // Packets that no process sends count as sent by root.
        let from_no_process = !query.from_here
            || facts.answer(PacketFact::exactly(FactSubject::Socket, 1)) == Some(false);
        match if from_no_process { Some(first == 0) } else { facts.answer(fact) } {
            Some(true) => {}
            Some(false) => return Ok(rule.invert),
            None => open = Some(Undecided::Fact(fact)),
        }
    }
    if let Some(class) = more.class {
        let fact = PacketFact::exactly(FactSubject::Class, class.into());
        match facts.answer(fact) {
            Some(true) => {}
            Some(false) => return Ok(rule.invert),
            None => open = open.or(Some(Undecided::Fact(fact))),
        }
    }
    if more.tunnel.is_some_and(|tunnel| tunnel != 0) {
        // Locally generated packets came through no tunnel.
        if query.iif == "lo" {
            return Ok(rule.invert);
        }
        open = open.or(Some(Undecided::Rule));
    }
    open.map_or(Ok(!rule.invert), Err)
}

/// Whether a rule suppresses the route found in its table.
fn suppresses(
    suppress: &Suppress,
    route: &RouteEntry,
    policy_query: &mut PolicyQuery<'_, '_>,
) -> bool {
    // A route that ends the lookup is never suppressed.
    let ends =
        matches!(route.kind, RouteKind::Blackhole | RouteKind::Unreachable | RouteKind::Prohibit);
    if ends {
        return false;
    }
    if suppress.prefix_length.is_some_and(|length| route.dst.prefix_len() <= length) {
        return true;
    }
    if let Some(group) = &suppress.group {
        policy_query.supposed.push(Assumption {
            subject: format!("interfaces of group {group}").into(),
            assumed: "there are none".into(),
            because: "the groups of interfaces are not known".into(),
            settle: "ip -d link on the node".into(),
        });
    }
    false
}

fn no_vrf() -> Assumption {
    Assumption {
        subject: "virtual routers (VRF)".into(),
        assumed: "no interface belongs to one".into(),
        because: "a rule for them stays once there was one".into(),
        settle: "ip link show type vrf on the node".into(),
    }
}
