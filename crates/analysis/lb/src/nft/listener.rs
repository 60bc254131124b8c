//! Builds the part of the table that belongs to a listener.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};

use uturn_model::Family;
use uturn_model::lb::{Rule, Scheduler};
use uturn_model::network::SecurityRule;

use super::Forwarded;
use super::block::{Block, Key, Map};
use super::many::{OTHERS, Sampler, arrange};
use crate::config::Stickiness;
use crate::decide::{Choice, gcd};
use crate::hash::SEED;

/// The maximum number of elements of a listener's maps with which every client meets the targets in
/// the order of the decision.
const EXACT: u64 = 4096;

/// The base of the seeds that pick a class of weights. Seeds are the same everywhere, so that a
/// standby picks the same targets as the active load balancer. A seed of its own for each class
/// makes the place in the class, for which [`SEED`] is used, independent of the choice of the
/// class.
const CLASS_SEED: u32 = 0x6c6e_7475;

/// The verdict for a packet that arrives between two states of the table: the rule belongs to one
/// state, and the map of the other lacks its place. The client sends the packet again.
const MISSED: &str = "drop";

/// The builder of a block.
struct Builder<'f> {
    forwarded: &'f Forwarded,
    name: String,
    rule: &'f Rule,
    /// Whether a hash of the client's address picks the target.
    is_hash: bool,
    block: Block,
}

/// Builds the block of a listener. `before` is its previous block: targets that remain in a map
/// keep their places where that matters.
pub(super) fn block(forwarded: &Forwarded, before: Option<&Block>) -> Block {
    let name = forwarded.name();
    let mut block = Block::default();
    let pick = format!("{name}-pick");
    let admitted = match &forwarded.security {
        None => name.clone(),
        Some(security) => {
            let admitted = format!("{name}-admitted");
            block.chains.insert(name.clone(), admission(forwarded, security, &admitted));
            admitted
        }
    };
    // The counters of these rules survive changes of targets, because those change other chains.
    let mut rules = limits(forwarded, &name);
    rules.push(format!("ct timeout set \"{}\"", forwarded.idle().0));
    rules.push(format!("goto {pick}"));
    block.chains.insert(admitted, rules);
    if forwarded.settings.limits.connections_per_client.is_some() {
        let kind = format!("type {}; flags dynamic; size 65535;", forwarded.address_type());
        block.sets.insert(format!("clients-{name}"), kind);
    }
    let Some(rule) = forwarded.listener.rules.first() else {
        block.chains.insert(pick, vec!["drop".into()]);
        return block;
    };
    let mut builder = Builder { forwarded, name, rule, is_hash: is_hash(forwarded), block };
    let mut rules = builder.targets(before);
    rules.push(MISSED.into());
    builder.block.chains.insert(pick, rules);
    builder.block
}

impl Builder<'_> {
    /// Adds the maps of targets. Returns the rules that pick a target.
    fn targets(&mut self, before: Option<&Block>) -> Vec<String> {
        let candidates = self.choice(unspecified(self.forwarded)).candidates();
        if candidates.is_empty() {
            return Vec::new();
        }
        let weights = candidates.iter().map(|i| u64::from(self.rule.targets[*i].weight));
        let (total, divisor) =
            weights.fold((0, 0), |(total, divisor), weight| (total + weight, gcd(weight, divisor)));
        let avoided: BTreeSet<IpAddr> = if self.forwarded.listener.profile.avoids_client {
            candidates.iter().map(|i| self.rule.targets[*i].address.ip()).collect()
        } else {
            BTreeSet::new()
        };
        let rounds = avoided.len().max(1) as u64;
        if (total / divisor).saturating_mul(rounds) <= EXACT {
            return self.exactly(avoided);
        }
        let mut rules = self.others(&candidates, &avoided);
        rules.extend(self.by_weight(&candidates, before));
        rules
    }

    /// Returns rules with which each client meets the targets in the order of the decision.
    fn exactly(&mut self, avoided: BTreeSet<IpAddr>) -> Vec<String> {
        let ring = self.ring_for(unspecified(self.forwarded));
        let map = format!("targets-{}", self.name);
        let mut rules = Vec::new();
        let mut targets = ring.clone();
        if !avoided.is_empty() {
            // A hash gives a place in the round of the decision, not in one that begins elsewhere.
            let is_once_each = avoided.len() == ring.len()
                && self.forwarded.listener.profile.scheduler != Scheduler::SourceHash;
            let mut to_chains = Vec::new();
            for client in avoided {
                let chain = format!("{}-from-{}", self.name, client.to_string().replace(':', "_"));
                let own = match ring.iter().position(|target| target.ip() == client) {
                    // The round begins after the client's own target and leaves it out: the map has
                    // two rounds.
                    Some(at) if is_once_each => {
                        self.translation(ring.len() - 1, at + 1, &format!("@{map}"))
                    }
                    _ => {
                        let own = self.ring_for(client);
                        let element = |(place, target): (usize, &SocketAddr)| {
                            format!("{place} : {} . {}", target.ip(), target.port())
                        };
                        let elements: Vec<_> = own.iter().enumerate().map(element).collect();
                        self.translation(own.len(), 0, &format!("{{ {} }}", elements.join(", ")))
                    }
                };
                to_chains.push(format!("{client} : goto {chain}"));
                self.block.chains.insert(chain, vec![own, MISSED.into()]);
            }
            let to_chains = to_chains.join(", ");
            rules.push(format!("{} saddr vmap {{ {to_chains} }}", self.forwarded.family()));
            if is_once_each {
                targets.extend(&ring);
            }
        }
        rules.push(self.translation(ring.len(), 0, &format!("@{map}")));
        self.add_map(map, targets);
        rules
    }

    /// Returns the rule for clients with a target's address: a map has some other targets for each
    /// of them.
    fn others(&mut self, candidates: &[usize], avoided: &BTreeSet<IpAddr>) -> Vec<String> {
        let Some(first) = avoided.first() else { return Vec::new() };
        let family = self.forwarded.family();
        if avoided.len() == 1 {
            return vec![format!("{family} saddr {first} drop")];
        }
        let sampler = Sampler::new(&self.rule.targets, candidates);
        let mut elements = BTreeMap::new();
        for client in avoided {
            for place in 0..OTHERS {
                let key = Key { client: Some(*client), place };
                elements.extend(sampler.other(*client, place).map(|target| (key, target)));
            }
        }
        let kind = format!("typeof {family} saddr . {}", self.map_kind());
        let map = format!("others-{}", self.name);
        let place = self.at_random(u64::from(OTHERS), CLASS_SEED);
        let rule = self.translate(&format!("{family} saddr . {place} map @{map}"));
        self.block.maps.insert(map, Map { kind, elements });
        vec![rule]
    }

    /// Returns the rules for all other clients: they pick at random a class of targets with the
    /// same weight, and take turns within it. (A set of intervals would be a single rule, but it is
    /// empty for some packets while the kernel replaces it.)
    fn by_weight(&mut self, candidates: &[usize], before: Option<&Block>) -> Vec<String> {
        let mut classes: BTreeMap<u32, Vec<SocketAddr>> = BTreeMap::new();
        for i in candidates {
            let target = &self.rule.targets[*i];
            classes.entry(target.weight).or_default().push(target.address);
        }
        let is_single = classes.len() == 1;
        let mut to_chains = Vec::new();
        for (weight, targets) in classes {
            let chain = format!("{}-weight-{weight}", self.name);
            let map = if is_single {
                format!("targets-{}", self.name)
            } else {
                format!("targets-{chain}")
            };
            let rule = self.translation(targets.len(), 0, &format!("@{map}"));
            let class_weight = u64::from(weight) * targets.len() as u64;
            let stood = before.and_then(|before| before.maps.get(&map));
            let targets = match stood {
                // With a hash of the client's address, the order must be the same as on a standby.
                Some(stood) if !self.is_hash => {
                    arrange(targets, &stood.elements.values().copied().collect::<Vec<_>>())
                }
                _ => targets,
            };
            self.add_map(map, targets);
            if is_single {
                return vec![rule];
            }
            self.block.chains.insert(chain.clone(), vec![rule, MISSED.into()]);
            to_chains.push((class_weight, weight, chain));
        }
        // The most frequent classes come first.
        to_chains
            .sort_unstable_by_key(|(class_weight, weight, _)| Reverse((*class_weight, *weight)));
        let mut left: u64 = to_chains.iter().map(|(class_weight, ..)| class_weight).sum();
        let rule = |(class_weight, weight, chain): (u64, u32, String)| {
            let is_last = left == class_weight;
            let number = self.at_random(left, CLASS_SEED + weight);
            left -= class_weight;
            if is_last {
                format!("goto {chain}")
            } else {
                format!("{number} < {class_weight} goto {chain}")
            }
        };
        to_chains.into_iter().map(rule).collect()
    }

    fn choice(&self, client: IpAddr) -> Choice<'_> {
        let Forwarded { listener, alive, .. } = self.forwarded;
        Choice::new(&listener.profile, &self.rule.targets, alive, client)
    }

    fn ring_for(&self, client: IpAddr) -> Vec<SocketAddr> {
        let choice = self.choice(client);
        let ring = choice.ring(&choice.candidates());
        ring.into_iter().map(|i| self.rule.targets[i].address).collect()
    }

    fn add_map(&mut self, name: String, targets: Vec<SocketAddr>) {
        let place = |place| Key { client: None, place };
        let elements = (0..).map(place).zip(targets).collect();
        let kind = format!("typeof {}", self.map_kind());
        self.block.maps.insert(name, Map { kind, elements });
    }

    /// Returns the end of a map's type. The type of a place is the same, whatever expression
    /// computes it.
    fn map_kind(&self) -> String {
        let (family, transport) = (self.forwarded.family(), self.forwarded.transport().lower());
        format!("numgen inc mod 2 : {family} daddr . {transport} dport")
    }

    /// Returns the rule that translates a connection to the targets of a map in turn, or drops it
    /// if there is none.
    fn translation(&self, length: usize, first: usize, map: &str) -> String {
        if length == 0 {
            return "drop".into();
        }
        let offset = if first == 0 { String::new() } else { format!(" offset {first}") };
        let place = if self.is_hash {
            self.hash(length as u64, SEED)
        } else {
            format!("numgen inc mod {length}")
        };
        self.translate(&format!("{place}{offset} map {map}"))
    }

    fn translate(&self, target: &str) -> String {
        let (family, transport) = (self.forwarded.family(), self.forwarded.transport().lower());
        format!("meta l4proto {transport} dnat {family} to {target}")
    }

    fn at_random(&self, length: u64, seed: u32) -> String {
        if self.is_hash { self.hash(length, seed) } else { format!("numgen random mod {length}") }
    }

    fn hash(&self, length: u64, seed: u32) -> String {
        format!("jhash {} saddr mod {length} seed {seed:#x}", self.forwarded.family())
    }
}

/// Returns whether the hash of a client's address picks its target.
fn is_hash(forwarded: &Forwarded) -> bool {
    let settings = forwarded.settings.rules.first();
    let is_sticky =
        settings.is_some_and(|settings| matches!(settings.stickiness, Some(Stickiness::Source(_))));
    is_sticky || forwarded.listener.profile.scheduler == Scheduler::SourceHash
}

/// Returns the address of a client that is none of the targets.
fn unspecified(forwarded: &Forwarded) -> IpAddr {
    match Family::of(forwarded.vip) {
        Family::V4 => IpAddr::from([0; 4]),
        Family::V6 => IpAddr::from([0; 16]),
    }
}

/// Returns the rules of security groups: the first that matches a client decides. If none matches,
/// the client is not admitted.
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

/// Returns the rules that drop connections above the limits.
fn limits(forwarded: &Forwarded, name: &str) -> Vec<String> {
    let limits = &forwarded.settings.limits;
    let rate = limits.connections_per_second;
    let rate = rate.map(|rate| format!("limit rate over {rate}/second burst {rate} packets drop"));
    let most = limits.connections.map(|most| format!("ct count over {most} drop"));
    let each = limits.connections_per_client.map(|most| {
        // A client can choose any address of its /64.
        let client = match Family::of(forwarded.vip) {
            Family::V4 => "ip saddr",
            Family::V6 => "ip6 saddr & ffff:ffff:ffff:ffff::",
        };
        format!("add @clients-{name} {{ {client} ct count over {most} }} drop")
    });
    // Clients above their own limits use up nothing of the rate that all clients share.
    [most, each, rate].into_iter().flatten().collect()
}
