//! Routing tables and the policy that picks them.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::OnceLock;

use uturn_model::{By, DerivedFrom, Family, IpNet, Origin, Supposition, Text};

use crate::fact::{Fact, Facts, Subject};
use crate::gaps::UNSEEN;
use crate::hash::{FastMap, FastSet};
use crate::packet::{IpProtocol, Packet};
use crate::policy::{PolicyRule, RuleAction, Suppress};
use crate::state::{NodeState, RouteEntry, RouteKind, TABLE_LOCAL};

/// All tables of both families.
#[derive(Debug)]
pub(super) struct Fib {
    routes: Vec<Known>,
    tables: FastMap<(Family, u32), Lengths>,
    rules: Vec<PolicyRule>,
    /// The addresses of the interfaces.
    addresses: FastSet<IpAddr>,
    /// Whether the short check of a packet's source is not enough.
    pub(super) custom: bool,
}

/// A table's routes by length of prefix and network; those to one network by metric.
type Lengths = BTreeMap<u8, FastMap<IpAddr, Vec<usize>>>;

#[derive(Debug)]
struct Known {
    route: RouteEntry,
    said: OnceLock<(By, Text)>,
}

/// What is asked of the tables.
#[derive(Clone, Copy, Debug)]
pub(super) struct Query<'a> {
    pub(super) src: Option<IpAddr>,
    pub(super) dst: IpAddr,
    pub(super) iif: &'a str,
    pub(super) oif: Option<&'a str>,
    pub(super) mark: u32,
    /// Its protocol and ports, where the kernel looks at them for this look-up.
    pub(super) transport: Option<(IpProtocol, (u16, u16))>,
    /// Whether a process of the node may have sent it.
    pub(super) from_here: bool,
}

impl Query<'_> {
    /// What is looked at of a packet's protocol.
    pub(super) fn transport(packet: &Packet) -> Option<(IpProtocol, (u16, u16))> {
        Some((packet.protocol(), packet.transport.ports()))
    }
}

/// What is taken for true where rules ask what is not known, and what they ask besides.
#[derive(Debug)]
pub(super) struct Asking<'a, 'w> {
    pub(super) facts: &'w Facts,
    /// Rules of which it was taken that they apply, or not, by their places.
    pub(super) taken: &'w [(usize, bool)],
    /// Whether to stop at a rule that asks something else.
    pub(super) stops: bool,
    /// Rules that were passed over.
    pub(super) passed_over: Vec<&'a PolicyRule>,
    pub(super) supposed: Vec<Supposition>,
}

impl<'w> Asking<'_, 'w> {
    /// Where no question can be asked, rules that ask what is not known are passed over.
    pub(super) fn in_passing(facts: &'w Facts) -> Self {
        let (passed_over, supposed) = (Vec::new(), Vec::new());
        Self { facts, taken: &[], stops: false, passed_over, supposed }
    }
}

/// What a rule asks that is not known.
#[derive(Clone, Copy, Debug)]
pub(super) enum Open {
    /// This.
    Fact(Fact),
    /// Something of its own.
    Rule,
}

/// What the tables say.
#[derive(Clone, Copy, Debug)]
pub(super) enum Answer<'a> {
    /// A route, and how many of equal rank there are.
    Route(&'a RouteEntry, usize),
    /// A policy rule ends it.
    Rule(&'a PolicyRule),
    /// No table knows the destination.
    Nothing,
    /// Whether a rule applies is not known: its place, and what it asks.
    Open(usize, &'a PolicyRule, Open),
}

impl Fib {
    pub(super) fn new(state: &NodeState) -> Self {
        let rules = match state.rules.is_empty() {
            true => PolicyRule::defaults(),
            false => {
                let mut rules = state.rules.clone();
                rules.sort_by_key(|rule| rule.priority);
                rules
            }
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
            let one = route.dst.prefix_len() == route.dst.max_prefix_len();
            fib.addresses.contains(&route.dst.addr())
                || (!one && fib.addresses.iter().any(|ip| route.dst.contains(ip)))
        };
        let own = |one: &Known| one.route.kind != RouteKind::Local || bound(&one.route);
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
        self.routes.push(Known { route, said: OnceLock::new() });
    }

    /// The kernel adds this route with every address.
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

    /// All of 127.0.0.0/8 is the node itself.
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

    /// Asks the tables in the order of the policy.
    pub(super) fn look_up<'a>(
        &'a self,
        query: Query<'_>,
        asking: &mut Asking<'a, '_>,
    ) -> Answer<'a> {
        let family = Family::of(query.dst);
        let mut at = 0;
        while let Some(rule) = self.rules.get(at) {
            let place = at;
            at += 1;
            if !rule.concerns(family) {
                continue;
            }
            match applies(rule, query, asking.facts) {
                Ok(true) => {}
                Ok(false) => continue,
                Err(open) => match asking.taken.iter().find(|(taken, _)| *taken == place) {
                    Some((_, true)) => {}
                    Some((_, false)) => continue,
                    None if asking.stops => return Answer::Open(place, rule, open),
                    None => {
                        asking.passed_over.push(rule);
                        continue;
                    }
                },
            }
            match &rule.action {
                RuleAction::Lookup(table) => {
                    match self.find(family, *table, query.dst, query.oif) {
                        Some((RouteEntry { kind: RouteKind::Throw, .. }, _)) | None => {}
                        Some((route, _)) if suppresses(&rule.suppress, route, asking) => {}
                        Some((route, equals)) => return Answer::Route(route, equals),
                    }
                }
                // A later one only: the kernel takes no other.
                RuleAction::Goto(to) => {
                    let target = self.rules[at..].iter().position(|one| one.priority == *to);
                    at += target.unwrap_or(0);
                }
                RuleAction::Nop => {}
                RuleAction::Vrf => asking.supposed.push(no_vrf()),
                RuleAction::Unknown(_) => asking.passed_over.push(rule),
                RuleAction::Unreachable | RuleAction::Prohibit | RuleAction::Blackhole => {
                    return Answer::Rule(rule);
                }
            }
        }
        Answer::Nothing
    }

    /// The best route of a table, and how many others are as good.
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

    /// Routes as good as `best`, without it.
    pub(super) fn equals<'a>(&'a self, best: &RouteEntry) -> Vec<&'a RouteEntry> {
        let all = self.beside(best).map(|known| &known.route);
        all.filter(|route| {
            !std::ptr::eq(*route, best) && (route.metric, route.kind) == (best.metric, best.kind)
        })
        .collect()
    }

    /// Routes of one table to the same network.
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

    /// What the table `local` says of an address.
    pub(super) fn local(&self, ip: IpAddr) -> Option<&RouteEntry> {
        self.find(Family::of(ip), TABLE_LOCAL, ip, None).map(|(route, _)| route)
    }

    /// A route as evidence, and where it leads: `through eth0, next 10.0.0.1`.
    pub(super) fn said(&self, route: &RouteEntry) -> Cow<'_, (By, Text)> {
        let say = || (of_route(route), through(route));
        match self.beside(route).find(|one| std::ptr::eq(&one.route, route)) {
            Some(known) => Cow::Borrowed(known.said.get_or_init(say)),
            None => Cow::Owned(say()),
        }
    }

    /// A route as evidence.
    pub(super) fn by(&self, route: &RouteEntry) -> By {
        self.said(route).0.clone()
    }
}

fn through(route: &RouteEntry) -> Text {
    let dev = route.dev.as_deref().unwrap_or("");
    if dev == UNSEEN {
        return "through an interface that nothing names".into();
    }
    match route.via {
        None => format!("through {dev}").into(),
        Some(via) => format!("through {dev}, next {via}").into(),
    }
}

fn of_route(route: &RouteEntry) -> By {
    if route.dev.as_deref() == Some(UNSEEN) {
        return By::new("routes of the node", Origin::Derived(DerivedFrom::NotCaptured));
    }
    By::new(route.to_string(), route.origin.clone())
}

/// Whether a rule applies, or what would have to be known for that.
fn applies(rule: &PolicyRule, query: Query<'_>, facts: &Facts) -> Result<bool, Open> {
    let within = |net: &Option<IpNet>, ip: Option<IpAddr>| {
        net.is_none_or(|net| ip.is_some_and(|ip| net.contains(&ip)))
    };
    // Bits of the value outside the mask do not count, unlike those of `-m mark`.
    let marked = rule.mark.is_none_or(|(value, mask)| (query.mark ^ value) & mask == 0);
    let more = &rule.more;
    let (protocol, ports) = match query.transport {
        Some((protocol, ports)) => (Some(protocol), ports),
        None => (None, (0, 0)),
    };
    // In IPv4, a source that is still to be chosen is 0.0.0.0.
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
        let fact = Fact { subject: Subject::User, first, last };
        // What no process has sent counts as root's.
        let nobodys = !query.from_here || facts.tell(Fact::is(Subject::Socket, 1)) == Some(false);
        match if nobodys { Some(first == 0) } else { facts.tell(fact) } {
            Some(true) => {}
            Some(false) => return Ok(rule.invert),
            None => open = Some(Open::Fact(fact)),
        }
    }
    if let Some(class) = more.class {
        let fact = Fact::is(Subject::Class, class.into());
        match facts.tell(fact) {
            Some(true) => {}
            Some(false) => return Ok(rule.invert),
            None => open = open.or(Some(Open::Fact(fact))),
        }
    }
    if more.tunnel.is_some_and(|tunnel| tunnel != 0) {
        // What is made here came through no tunnel.
        if query.iif == "lo" {
            return Ok(rule.invert);
        }
        open = open.or(Some(Open::Rule));
    }
    open.map_or(Ok(!rule.invert), Err)
}

/// Whether a rule passes over the route that its table has.
fn suppresses(suppress: &Suppress, route: &RouteEntry, asking: &mut Asking<'_, '_>) -> bool {
    // A route that ends the look-up is never passed over.
    let ends =
        matches!(route.kind, RouteKind::Blackhole | RouteKind::Unreachable | RouteKind::Prohibit);
    if ends {
        return false;
    }
    if suppress.prefix_length.is_some_and(|length| route.dst.prefix_len() <= length) {
        return true;
    }
    if let Some(group) = &suppress.group {
        asking.supposed.push(Supposition {
            about: format!("interfaces of group {group}").into(),
            taken: "there are none".into(),
            because: "the groups of interfaces are not known".into(),
            settle: "ip -d link on the node".into(),
        });
    }
    false
}

fn no_vrf() -> Supposition {
    Supposition {
        about: "virtual routers (VRF)".into(),
        taken: "no interface belongs to one".into(),
        because: "a rule for them stays once there was one".into(),
        settle: "ip link show type vrf on the node".into(),
    }
}
