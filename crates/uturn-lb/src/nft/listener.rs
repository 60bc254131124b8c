//! The chains and the map of one listener.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};

use uturn_model::Family;
use uturn_model::lb::Scheduler;
use uturn_model::network::SecurityRule;

use super::{Forwarded, TABLE};
use crate::config::Stickiness;
use crate::decide::Choice;
use crate::hash::SEED;

/// The chains and the map of one listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// The map's type.
    kind: String,
    /// One round of the scheduler, or two of them.
    targets: Vec<SocketAddr>,
    /// The rules of each chain.
    chains: BTreeMap<String, Vec<String>>,
    /// Whether a set counts each client's connections.
    counts_clients: bool,
}

/// How a chain picks from a map.
#[derive(Clone, Copy)]
struct Pick {
    length: usize,
    first: usize,
}

impl Block {
    pub(super) fn new(forwarded: &Forwarded) -> Self {
        let (family, transport) = (forwarded.family(), forwarded.transport().lower());
        let mut block = Self {
            kind: format!("typeof {} : {family} daddr . {transport} dport", number(forwarded, 2)),
            targets: Vec::new(),
            chains: BTreeMap::new(),
            counts_clients: forwarded.settings.limits.connections_per_client.is_some(),
        };
        let name = forwarded.name();
        let admitted = match &forwarded.security {
            None => name.clone(),
            Some(security) => {
                let admitted = format!("{name}-admitted");
                block.chains.insert(name.clone(), admission(forwarded, security, &admitted));
                admitted
            }
        };
        let mut rules = limits(forwarded, &name);
        rules.push(format!("ct timeout set \"{}\"", forwarded.idle().0));
        rules.extend(block.add_targets(forwarded, &name));
        block.chains.insert(admitted, rules);
        block
    }

    /// The same without targets.
    pub(super) fn closed(&self, name: &str) -> Self {
        let mut chains = BTreeMap::new();
        chains.insert(name.to_owned(), vec!["drop".to_owned()]);
        Self { targets: Vec::new(), chains, ..self.clone() }
    }

    /// Adds all that has a name.
    pub(super) fn declare(&self, name: &str, text: &mut String) {
        let _ = writeln!(text, "add map {TABLE} targets-{name} {{ {}; }}", self.kind);
        if self.counts_clients {
            let address = match self.kind.contains("ip6") {
                true => "ipv6_addr",
                false => "ipv4_addr",
            };
            let kind = format!("type {address}; flags dynamic; size 65535;");
            let _ = writeln!(text, "add set {TABLE} clients-{name} {{ {kind} }}");
        }
        for chain in self.chains.keys() {
            let _ = writeln!(text, "add chain {TABLE} {chain}");
        }
    }

    /// Adds elements and rules to a map and chains that have none.
    pub(super) fn fill(&self, name: &str, text: &mut String) {
        if !self.targets.is_empty() {
            let elements = elements(&self.targets);
            let _ = writeln!(text, "add element {TABLE} targets-{name} {{ {elements} }}");
        }
        for (chain, rules) in &self.chains {
            for rule in rules {
                let _ = writeln!(text, "add rule {TABLE} {chain} {rule}");
            }
        }
    }

    /// Replaces another block of the same name.
    pub(super) fn replace(&self, before: &Self, name: &str, text: &mut String) {
        for chain in before.chains.keys() {
            let _ = writeln!(text, "flush chain {TABLE} {chain}");
        }
        for chain in self.chains.keys().filter(|chain| !before.chains.contains_key(*chain)) {
            let _ = writeln!(text, "add chain {TABLE} {chain}");
        }
        let _ = writeln!(text, "flush map {TABLE} targets-{name}");
        self.fill(name, text);
        for chain in before.chains.keys().filter(|chain| !self.chains.contains_key(*chain)) {
            let _ = writeln!(text, "delete chain {TABLE} {chain}");
        }
    }

    /// Fills the map. Returns the rules that pick from it, after chains for clients with a
    /// target's address were added.
    fn add_targets(&mut self, forwarded: &Forwarded, name: &str) -> Vec<String> {
        let Some(rule) = forwarded.listener.rules.first() else { return vec!["drop".into()] };
        let profile = &forwarded.listener.profile;
        let ring_for = |client: IpAddr| {
            let choice = Choice::new(profile, &rule.targets, &forwarded.alive, client);
            let ring = choice.ring(&choice.candidates());
            ring.into_iter().map(|i| rule.targets[i].address).collect::<Vec<_>>()
        };
        let ring = ring_for(unspecified(forwarded));
        let all = Pick { length: ring.len(), first: 0 };
        let mut rules = Vec::new();
        let addresses: BTreeSet<IpAddr> = ring.iter().map(SocketAddr::ip).collect();
        if profile.avoids_client && !addresses.is_empty() {
            // A hash is a place in the round as it is decided, not in one that begins elsewhere.
            let is_once_each =
                addresses.len() == ring.len() && profile.scheduler != Scheduler::SourceHash;
            let mut to_chains = Vec::new();
            for client in addresses {
                let chain = format!("{name}-from-{}", client.to_string().replace(':', "_"));
                let own = match ring.iter().position(|target| target.ip() == client) {
                    // From the next of them on, all but the client itself: the map has two rounds.
                    Some(at) if is_once_each => {
                        let pick = Pick { length: ring.len() - 1, first: at + 1 };
                        pick.rule(forwarded, &format!("@targets-{name}"))
                    }
                    _ => {
                        let own = ring_for(client);
                        let pick = Pick { length: own.len(), first: 0 };
                        pick.rule(forwarded, &format!("{{ {} }}", elements(&own)))
                    }
                };
                to_chains.push(format!("{client} : goto {chain}"));
                self.chains.insert(chain, vec![own]);
            }
            let to_chains = to_chains.join(", ");
            rules.push(format!("{} saddr vmap {{ {to_chains} }}", forwarded.family()));
            if is_once_each {
                self.targets.extend(&ring);
            }
        }
        self.targets.extend(&ring);
        rules.push(all.rule(forwarded, &format!("@targets-{name}")));
        rules
    }
}

impl Pick {
    /// The rule that translates a connection to a target of a map.
    fn rule(self, forwarded: &Forwarded, map: &str) -> String {
        let Self { length, first } = self;
        if length == 0 {
            return "drop".into();
        }
        let transport = forwarded.transport().lower();
        let offset = if first == 0 { String::new() } else { format!(" offset {first}") };
        let number = number(forwarded, length);
        format!(
            "meta l4proto {transport} dnat {} to {number}{offset} map {map}",
            forwarded.family()
        )
    }
}

/// A client that is none of the targets.
fn unspecified(forwarded: &Forwarded) -> IpAddr {
    match Family::of(forwarded.vip) {
        Family::V4 => IpAddr::from([0; 4]),
        Family::V6 => IpAddr::from([0; 16]),
    }
}

/// A connection's place in a round of this length.
fn number(forwarded: &Forwarded, length: usize) -> String {
    let settings = forwarded.settings.rules.first();
    let is_sticky =
        settings.is_some_and(|settings| matches!(settings.stickiness, Some(Stickiness::Source(_))));
    if is_sticky || forwarded.listener.profile.scheduler == Scheduler::SourceHash {
        format!("jhash {} saddr mod {length} seed {SEED:#x}", forwarded.family())
    } else {
        format!("numgen inc mod {length}")
    }
}

fn elements(targets: &[SocketAddr]) -> String {
    let element = |(place, target): (usize, &SocketAddr)| {
        format!("{place} : {} . {}", target.ip(), target.port())
    };
    targets.iter().enumerate().map(element).collect::<Vec<_>>().join(", ")
}

/// The rules of security groups: the first that is for a client decides, and none lets it in.
fn admission(forwarded: &Forwarded, security: &[SecurityRule], admitted: &str) -> Vec<String> {
    let family = Family::of(forwarded.vip);
    let port = forwarded.listener.port.number();
    let is_for_listener = |rule: &&SecurityRule| {
        rule.protocol.is_none_or(|protocol| protocol == forwarded.transport())
            && rule.ports.is_none_or(|(first, last)| (first..=last).contains(&port))
            && rule.peer.is_none_or(|peer| Family::of(peer.network()) == family)
    };
    let rule = |rule: &SecurityRule| {
        let from = rule.peer.map(|peer| format!("{} saddr {peer} ", forwarded.family()));
        let verdict = if rule.accept { format!("goto {admitted}") } else { "drop".into() };
        from.unwrap_or_default() + &verdict
    };
    let rules = security.iter().filter(is_for_listener).map(rule);
    rules.chain(["drop".to_owned()]).collect()
}

/// What drops connections that are too many.
fn limits(forwarded: &Forwarded, name: &str) -> Vec<String> {
    let limits = &forwarded.settings.limits;
    let rate = limits.connections_per_second;
    let rate = rate.map(|rate| format!("limit rate over {rate}/second burst {rate} packets drop"));
    let most = limits.connections.map(|most| format!("ct count over {most} drop"));
    let each = limits.connections_per_client.map(|most| {
        format!("add @clients-{name} {{ {} saddr ct count over {most} }} drop", forwarded.family())
    });
    [rate, most, each].into_iter().flatten().collect()
}
