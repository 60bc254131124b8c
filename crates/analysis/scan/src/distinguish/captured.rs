//! What captured kernels tell addresses apart by: the ranges and single addresses that their
//! rules, sets and policies name, and where their routes lead.
//!
//! What kube-proxy writes for an endpoint asks only whether the endpoint calls itself: such
//! clients are apart anyway. Of an interface, nothing counts but what rules and switches say
//! of it: the links of a node's pods are mostly alike.

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

/// Parts of an address's marks begin with this.
const PART: u32 = u32::MAX;

/// What captured kernels tell addresses apart by.
#[derive(Default)]
pub(crate) struct Captured {
    /// Single addresses, each with what names it.
    singles: FastMap<IpAddr, Vec<u32>>,
    /// By kernel, family and routing table, the longest prefixes first: where its routes lead.
    tables: Vec<(Family, Routes)>,
    marks: Numbers<MarkKey>,
}

/// What captured kernels do with an address.
#[derive(PartialEq, Eq, Hash)]
enum MarkKey {
    /// A rule names it.
    Named(IpAddr),
    /// A rule of the routing policy is for it.
    Policy(PolicyKey),
    /// It is behind an interface that looks like this.
    Link(LinkKey),
    /// Routes lead to its network: of a default route or another, and where each leads.
    Routes(bool, Vec<RouteKey>),
}

/// A rule of a node's routing policy, but for the address it is for.
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
    /// Its place, if it is like no other.
    unique: Option<usize>,
}

/// What counts of an interface.
#[derive(PartialEq, Eq, Hash)]
struct LinkKey {
    leads_to_fabric: bool,
    /// Its name, if rules have it.
    name: Option<String>,
    /// Which beginnings of names that rules have fit it.
    begins: Vec<bool>,
    forwards: bool,
    rp_filter: u8,
    accept_local: bool,
    route_localnet: bool,
    src_valid_mark: bool,
    /// Whether it is up, and its addresses.
    own: Option<(bool, Vec<(IpAddr, u8)>)>,
}

/// What a route does, the number of the interface that it leads to, and its source and metric.
type RouteKey = (RouteKind, Option<u32>, Option<IpAddr>, u32);

/// By length of prefix: the routes to each network.
type Routes = Vec<(u8, FastMap<IpAddr, u32>)>;

impl Captured {
    /// Of these nodes. The ranges that they name are put into `words`.
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

    /// Adds what the captured kernels make of an address to its marks.
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
                    // Each has a different number.
                    let number = self.marks.of(MarkKey::Named(ip));
                    self.singles.insert(ip, vec![number]);
                }
            }
        }
    }

    /// Policies that differ only in the address that they are for tell no addresses apart.
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
                // One that is for others too, or for a certain pair, is like no other.
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

/// The rules and sets of a kernel, as text.
fn rules_of(state: &NodeState) -> String {
    let NodeState { iptables, ip6tables, nft, sets, .. } = state;
    format!("{iptables}{ip6tables}{sets}{nft}")
}

/// What counts of interfaces.
struct Links<'w> {
    world: &'w NodeRuntime,
    /// The names in rules, and what names in them begin with.
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
