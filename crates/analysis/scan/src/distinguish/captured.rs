//! The means by which captured kernels distinguish addresses: the ranges and single addresses that
//! their rules, sets and policies name, and the destinations of their routes.
//!
//! Rules that kube-proxy writes for an endpoint only match an endpoint that calls itself, and such
//! clients are in classes of their own anyway. Of an interface, only what rules and sysctls say
//! about it counts: the links of a node's pods are mostly equal.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use ipnet::IpNet;
use uturn_model::{Cluster, Family, Name, Text};
use uturn_netfilter::hash::{FastMap, FastSet};
use uturn_netfilter::{
    NodeState, PolicyRule, RouteEntry, RouteKind, RuleAction, Selectors, Suppress,
};
use uturn_path::NodeRuntime;

use crate::distinguish::discriminators::{Words, is_even};
use crate::numbers::Numbers;

/// The first number of each part of an address's marks.
const PART: u32 = u32::MAX;

/// The means by which captured kernels distinguish addresses.
#[derive(Default)]
pub(crate) struct Captured {
    /// Single addresses, each with the marks of what names it.
    singles: FastMap<IpAddr, Vec<u32>>,
    /// The routes by kernel, family and routing table, the longest prefixes first.
    tables: Vec<(Family, Routes)>,
    marks: Numbers<MarkKey>,
}

/// A treatment of an address by captured kernels.
#[derive(PartialEq, Eq, Hash)]
enum MarkKey {
    /// A rule names it.
    Named(IpAddr),
    /// A policy routing rule names it.
    Policy(PolicyKey),
    /// It is behind an interface with these properties.
    Link(LinkKey),
    /// Routes lead to its network: whether they include a default route, and where each leads.
    Routes(bool, Vec<RouteKey>),
}

/// A policy routing rule without the address it matches.
#[derive(PartialEq, Eq, Hash)]
struct PolicyKey {
    node: Name,
    is_from: bool,
    priority: u32,
    action: RuleAction,
    mark: Option<(u32, u32)>,
    invert: bool,
    more: Selectors,
    suppress: Suppress,
    interfaces: [Option<Text>; 2],
    /// The place of the rule, if it is not equal to any other.
    unique: Option<usize>,
}

/// The properties of an interface that matter.
#[derive(PartialEq, Eq, Hash)]
struct LinkKey {
    leads_to_fabric: bool,
    /// The name, if rules contain it.
    name: Option<String>,
    /// Whether each name prefix that rules contain fits.
    begins: Vec<bool>,
    forwards: bool,
    rp_filter: u8,
    accept_local: bool,
    route_localnet: bool,
    src_valid_mark: bool,
    /// Whether the interface is up, and its addresses.
    own: Option<(bool, Vec<(IpAddr, u8)>)>,
}

/// The action of a route, the number of its interface, and its source and metric.
type RouteKey = (RouteKind, Option<u32>, Option<IpAddr>, u32);

/// The routes to each network, by prefix length.
type Routes = Vec<(u8, FastMap<IpAddr, u32>)>;

impl Captured {
    /// Reads captured nodes. Adds the ranges that their rules name to `words`.
    pub(crate) fn new(
        cluster: &Cluster,
        worlds: &[(&Name, Arc<NodeRuntime>)],
        words: &mut Words,
    ) -> Self {
        let mut captured = Self::default();
        if worlds.is_empty() {
            return captured;
        }
        let slices = cluster.endpoints.values().flatten();
        let endpoints: FastSet<IpAddr> =
            slices.flat_map(|slice| &slice.endpoints).map(|endpoint| endpoint.address).collect();
        for (name, world) in worlds {
            let state = world.kernel.state();
            let rules = rules_of(state);
            captured.read_rules(&rules, &endpoints, words);
            for (number, rule) in state.rules.iter().enumerate() {
                captured.read_policy(name, number, rule, words);
            }
            captured.read_routes(world, &rules);
            words.is_uneven |= !state.ipvs.0.iter().all(|server| is_even(&server.scheduler));
        }
        captured
    }

    /// Adds an address's marks by captured kernels to `marks`.
    pub(crate) fn add_marks(&self, ip: IpAddr, marks: &mut Vec<u32>) {
        if self.tables.is_empty() {
            return;
        }
        marks.push(PART);
        marks.extend(self.singles.get(&ip).into_iter().flatten());
        for (_, table) in self.tables.iter().filter(|(family, _)| *family == Family::of(ip)) {
            let find = |(length, nets): &(u8, FastMap<IpAddr, u32>)| {
                nets.get(&IpNet::new(ip, *length).ok()?.network()).copied()
            };
            marks.extend([PART, table.iter().find_map(find).unwrap_or(PART)]);
        }
    }

    fn read_rules(&mut self, rules: &str, endpoints: &FastSet<IpAddr>, words: &mut Words) {
        let mut is_proxys_table = false;
        for line in rules.lines() {
            if line.starts_with("table ") {
                is_proxys_table = line.split(' ').nth(2) == Some("kube-proxy");
            }
            let is_proxys =
                is_proxys_table || line.starts_with("-A KUBE-") || line.starts_with("add KUBE-");
            for ip in words.read_line(line) {
                if !(is_proxys && endpoints.contains(&ip)) {
                    // Each address has a number of its own.
                    let number = self.marks.of(MarkKey::Named(ip));
                    self.singles.insert(ip, vec![number]);
                }
            }
        }
    }

    /// Reads a policy routing rule. Rules that differ only in the address they match do not
    /// distinguish addresses.
    fn read_policy(&mut self, node: &Name, number: usize, rule: &PolicyRule, words: &mut Words) {
        for (net, is_from) in [(rule.from, true), (rule.to, false)] {
            let Some(net) = net else { continue };
            if net.prefix_len() < net.max_prefix_len() {
                words.nets.insert(net);
                continue;
            }
            let PolicyRule {
                priority,
                from,
                to,
                iif,
                oif,
                mark,
                more,
                invert,
                action,
                suppress,
                origin: _,
            } = rule;
            let other = if is_from { to } else { from };
            let key = PolicyKey {
                node: node.clone(),
                is_from,
                priority: *priority,
                action: action.clone(),
                mark: *mark,
                invert: *invert,
                more: *more,
                suppress: suppress.clone(),
                interfaces: [iif.clone(), oif.clone()],
                // A rule that also matches others, or a certain pair, is not equal to any other.
                unique: (*invert || other.is_some()).then_some(number),
            };
            let what = self.marks.of(MarkKey::Policy(key));
            self.singles.entry(net.addr()).or_default().push(what);
        }
    }

    fn read_routes(&mut self, world: &NodeRuntime, rules: &str) {
        let state = world.kernel.state();
        let links = Links::new(world, rules);
        // A device may have thousands of addresses, and a route for each.
        let mut looks: FastMap<&str, u32> = FastMap::default();
        for dev in state.routes.iter().filter_map(|route| route.dev.as_deref()) {
            looks.entry(dev).or_insert_with(|| self.marks.of(MarkKey::Link(links.key(dev))));
        }
        type Networks<'r> = BTreeMap<(u8, IpAddr), Vec<&'r RouteEntry>>;
        let mut tables: BTreeMap<(Family, u32), Networks<'_>> = BTreeMap::new();
        for route in &state.routes {
            let table = tables.entry((Family::of(route.dst.addr()), route.table)).or_default();
            table.entry((route.dst.prefix_len(), route.dst.network())).or_default().push(route);
        }
        for ((family, _), networks) in tables {
            let mut table: BTreeMap<u8, FastMap<IpAddr, u32>> = BTreeMap::new();
            for ((length, network), routes) in networks {
                let leads = |route: &&RouteEntry| {
                    let link = route.dev.as_deref().and_then(|dev| looks.get(dev).copied());
                    (route.kind, link, route.src, route.metric)
                };
                let leads: Vec<RouteKey> = routes.iter().map(leads).collect();
                let number = self.marks.of(MarkKey::Routes(length == 0, leads));
                table.entry(length).or_default().insert(network, number);
            }
            self.tables.push((family, table.into_iter().rev().collect()));
        }
    }
}

/// Returns the rules and sets of a kernel, as text.
fn rules_of(state: &NodeState) -> String {
    let NodeState { iptables, ip6tables, nft, sets, .. } = state;
    format!("{iptables}{ip6tables}{sets}{nft}")
}

/// Finds the properties of interfaces that matter.
struct Links<'w> {
    world: &'w NodeRuntime,
    /// The interface names in rules, and the name prefixes in them.
    named: FastSet<&'w str>,
    beginnings: Vec<&'w str>,
}

impl<'w> Links<'w> {
    fn new(world: &'w NodeRuntime, rules: &'w str) -> Self {
        let words = || rules.split([' ', '\n', '"', ',', '{', '}']).filter(|word| !word.is_empty());
        let interfaces = &world.kernel.state().interfaces;
        let known: FastSet<&str> = interfaces.iter().map(|interface| &*interface.name).collect();
        let beginnings = words().filter_map(|word| word.strip_suffix(['+', '*']));
        let mut beginnings: Vec<&str> = beginnings.collect();
        beginnings.sort_unstable();
        beginnings.dedup();
        Self { world, named: words().filter(|word| known.contains(word)).collect(), beginnings }
    }

    fn key(&self, dev: &str) -> LinkKey {
        let NodeState { sysctls, interfaces, .. } = self.world.kernel.state();
        let own = interfaces.iter().find(|interface| *interface.name == *dev);
        LinkKey {
            leads_to_fabric: self.world.leads_to_fabric(Some(dev)),
            name: self.named.get(dev).map(|name| (*name).to_owned()),
            begins: self.beginnings.iter().map(|start| dev.starts_with(start)).collect(),
            forwards: sysctls.forwards_from(dev),
            rp_filter: sysctls.rp_filter(dev),
            accept_local: sysctls.accept_local(dev),
            route_localnet: sysctls.route_localnet(dev),
            src_valid_mark: sysctls.src_valid_mark(dev),
            own: own.map(|interface| (interface.up, interface.addresses.clone())),
        }
    }
}
