//! Layer 4 in the kernel: all listeners are one nf_tables table, which `nft -f` loads in one
//! transaction.
//!
//! A map finds the chain of a listener, and one rule of that chain translates a new connection to a
//! target, whatever the number of targets. conntrack does the rest: it keeps the target of a
//! connection, so that changed rules affect new connections only.
//!
//! # Guarantees
//! - Up to 4096 elements (a round of the scheduler, for each address that is avoided), connections
//!   meet targets in the order of [`Choice::pick`](crate::decide::Choice::pick), turn by turn. A
//!   client with a target's address meets the other targets in the same order, but may begin at
//!   another of them. With a hash of its address, a client meets exactly the target that the
//!   decision picks. Property tests check all three.
//! - Beyond that, targets of the same weight take turns, in any order, and the weight that has the
//!   turn is random: shares are exact in the mean. A client with a target's address is spread at
//!   random over eight other targets, which a hash of its address picks in proportion to their
//!   weights.
//! - A change of one listener's targets changes its chains and maps, and nothing else. The counters
//!   of its limits are kept.
//! - A change of one target among thousands costs the same as among a hundred: for 5000 targets
//!   some 30 elements with equal weights, and 130 with a hundred different weights.
//! - Without a candidate a connection gets no answer: its packets are dropped.
//!
//! # Assumptions
//! - One process in a network namespace: the table is replaced and deleted as a whole.
//! - Packets of clients, and answers of targets whose clients' addresses are kept, are routed
//!   through this machine.
//!
//! # Limits
//! - The scheduler for the fewest connections takes turns, as in
//!   [`Choice::pick`](crate::decide::Choice::pick): the kernel cannot compare targets.
//! - A sticky client stays with its target by the hash of its address; a change of targets may give
//!   it another one. With thousands of targets such a change replaces half the elements on average,
//!   because the order of targets stays that of the configuration.

mod block;
mod listener;
mod many;
#[cfg(test)]
mod many_tests;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};

use thiserror::Error;
use uturn_model::lb::{Listener, Source};
use uturn_model::network::SecurityRule;
use uturn_model::{Family, Protocol};

use self::block::Block;
use crate::config::ListenerSettings;
use crate::source::replaced_source;

/// The family and name of the table.
pub const TABLE: &str = "inet uturn_lb";

/// A listener that the kernel forwards.
#[derive(Clone, Debug, PartialEq)]
pub struct Forwarded {
    /// The address of the load balancer.
    pub vip: IpAddr,
    /// The listener. Only its first rule is used.
    pub listener: Listener,
    /// The settings of the listener.
    pub settings: ListenerSettings,
    /// The rules of the load balancer's security groups; `None` if it has no group.
    pub security: Option<Vec<SecurityRule>>,
    /// Whether each target of the first rule may be picked.
    pub alive: Vec<bool>,
}

/// The error that the kernel cannot forward a listener.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{listener} and its target {target} are of different address families")]
pub struct FamilyMismatch {
    listener: SocketAddr,
    target: SocketAddr,
}

/// The table as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ruleset {
    /// The part of the table that leads to listeners. It does not change while targets change.
    frame: String,
    /// The part of each listener, by its name.
    blocks: BTreeMap<String, Block>,
}

impl Ruleset {
    /// Builds the table for these listeners.
    ///
    /// # Errors
    /// Returns an error if a target's address is of another family than its listener's.
    pub fn new(listeners: &[Forwarded]) -> Result<Self, FamilyMismatch> {
        Self::build(listeners, None)
    }

    /// Builds the table for these listeners that needs the fewest changes from this one.
    ///
    /// # Errors
    /// As [`Ruleset::new`].
    pub fn next(&self, listeners: &[Forwarded]) -> Result<Self, FamilyMismatch> {
        Self::build(listeners, Some(self))
    }

    fn build(listeners: &[Forwarded], before: Option<&Self>) -> Result<Self, FamilyMismatch> {
        for forwarded in listeners {
            let family = Family::of(forwarded.vip);
            let is_other = |target: &SocketAddr| Family::of(target.ip()) != family;
            if let Some(target) = forwarded.targets().find(is_other) {
                return Err(FamilyMismatch { listener: forwarded.address(), target });
            }
        }
        let block = |forwarded: &Forwarded| {
            let name = forwarded.name();
            let before = before.and_then(|before| before.blocks.get(&name));
            let block = listener::block(forwarded, before);
            (name, block)
        };
        Ok(Self { frame: frame(listeners), blocks: listeners.iter().map(block).collect() })
    }

    /// Returns the table for the same listeners without targets: open connections continue, new
    /// ones get no answer.
    #[must_use]
    pub fn closed(&self) -> Self {
        let close = |(name, block): (&String, &Block)| (name.clone(), block.closed(name));
        Self { frame: self.frame.clone(), blocks: self.blocks.iter().map(close).collect() }
    }

    /// Returns the commands that replace the table, whatever it contains.
    pub fn text(&self) -> String {
        let mut text = format!("add table {TABLE}\ndelete table {TABLE}\nadd table {TABLE}\n");
        let nothing = Block::default();
        for block in self.blocks.values() {
            block.declare(&nothing, &mut text);
        }
        text += &self.frame;
        for block in self.blocks.values() {
            block.fill(&nothing, &mut text);
        }
        text
    }

    /// Returns the commands that change the table `before` to this one. Returns `None` if nothing
    /// changes.
    pub fn change_from(&self, before: &Self) -> Option<String> {
        if self == before {
            return None;
        }
        if self.frame != before.frame || !self.blocks.keys().eq(before.blocks.keys()) {
            return Some(self.text());
        }
        let mut text = String::new();
        for (name, block) in &self.blocks {
            if let Some(before) = before.blocks.get(name).filter(|before| *before != block) {
                block.replace(before, &mut text);
            }
        }
        Some(text)
    }
}

/// Returns the commands that delete the table, whether or not it exists.
pub fn deletion() -> String {
    format!("add table {TABLE}\ndelete table {TABLE}\n")
}

impl Forwarded {
    /// Returns the address of the listener.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::new(self.vip, self.listener.port.number())
    }

    /// Returns the transport protocol of the listener.
    pub fn transport(&self) -> Protocol {
        self.listener.protocol.transport()
    }

    /// Returns the addresses of the targets of the first rule.
    pub fn targets(&self) -> impl Iterator<Item = SocketAddr> {
        let first = self.listener.rules.first();
        first.into_iter().flat_map(|rule| rule.targets.iter().map(|target| target.address))
    }

    /// Returns the name of the listener's first chain.
    fn name(&self) -> String {
        let vip = self.vip.to_string().replace(':', "_");
        format!("{}-{vip}-{}", self.transport().lower(), self.listener.port)
    }

    fn family(&self) -> &'static str {
        family_name(Family::of(self.vip))
    }

    fn address_type(&self) -> &'static str {
        address_type(Family::of(self.vip))
    }

    /// Returns the name of the listener's conntrack timeout, and its seconds.
    fn idle(&self) -> (String, u64) {
        let seconds = self.settings.timeouts.idle.as_secs().max(1);
        (format!("idle-{}-{}-{seconds}", self.transport().lower(), self.family()), seconds)
    }
}

fn family_name(family: Family) -> &'static str {
    match family {
        Family::V4 => "ip",
        Family::V6 => "ip6",
    }
}

/// Returns the part of the table that leads to listeners: timeouts, the maps to the chains of
/// listeners, and replaced sources.
fn frame(listeners: &[Forwarded]) -> String {
    let mut text = timeouts(listeners);
    let mut to_listeners = String::new();
    let mut to_sources = String::new();
    for family in Family::BOTH {
        let here = || listeners.iter().filter(move |l| Family::of(l.vip) == family);
        if here().next().is_none() {
            continue;
        }
        let name = family_name(family);
        let elements = here().map(|forwarded| {
            let transport = forwarded.transport().lower();
            let Forwarded { vip, listener, .. } = forwarded;
            format!("{vip} . {transport} . {} : goto {}", listener.port, forwarded.name())
        });
        let kind = format!("type {} . inet_proto . inet_service : verdict", address_type(family));
        map(&mut text, &format!("listeners-{name}"), &kind, &elements.collect::<Vec<_>>());
        let key = format!("{name} daddr . meta l4proto . th dport");
        to_listeners += &format!("    {key} vmap @listeners-{name}\n");
        for transport in ["tcp", "udp"] {
            let replaced = here().filter(|l| l.transport().lower() == transport);
            let elements: Vec<String> = replaced.filter_map(source).collect();
            if elements.is_empty() {
                continue;
            }
            let address = address_type(family);
            let kind = format!("type {address} . inet_service : {address}");
            map(&mut text, &format!("sources-{name}-{transport}"), &kind, &elements);
            to_sources += &format!(
                "    meta l4proto {transport} ct status dnat snat {name} to \
                 ct original {name} daddr . ct original proto-dst \
                 map @sources-{name}-{transport}\n"
            );
        }
    }
    for (hook, priority, rules) in [
        ("prerouting", "dstnat", &to_listeners),
        // The chain for connections from this machine itself.
        ("output", "-100", &to_listeners),
        ("postrouting", "srcnat", &to_sources),
    ] {
        let _ = write!(
            text,
            "table {TABLE} {{\n  chain {hook} {{\n    type nat hook {hook} priority {priority}\n\
             {rules}  }}\n}}\n"
        );
    }
    text
}

fn address_type(family: Family) -> &'static str {
    match family {
        Family::V4 => "ipv4_addr",
        Family::V6 => "ipv6_addr",
    }
}

/// Returns the map element with the source address of a listener's connections, if the source is
/// replaced.
fn source(forwarded: &Forwarded) -> Option<String> {
    let Source::Replaced(range) = &forwarded.listener.profile.source else { return None };
    let Forwarded { vip, listener, .. } = forwarded;
    Some(format!("{vip} . {} : {}", listener.port, replaced_source(*range)))
}

/// Returns the conntrack timeouts of connections without packets. Only established connections get
/// another timeout than the kernel's default.
fn timeouts(listeners: &[Forwarded]) -> String {
    let all: BTreeSet<_> =
        listeners.iter().map(|l| (l.idle(), l.transport().lower(), l.family())).collect();
    let timeout = |((name, seconds), transport, family)| {
        let policy = match transport {
            "udp" => format!("unreplied : {seconds}, replied : {seconds}"),
            _ => format!("established : {seconds}"),
        };
        format!(
            "table {TABLE} {{\n  ct timeout {name} {{\n    protocol {transport}\n    \
             l3proto {family}\n    policy = {{ {policy} }}\n  }}\n}}\n"
        )
    };
    all.into_iter().map(timeout).collect()
}

/// Writes a map with these elements.
fn map(text: &mut String, name: &str, kind: &str, elements: &[String]) {
    let _ = writeln!(text, "add map {TABLE} {name} {{ {kind}; }}");
    let _ = writeln!(text, "add element {TABLE} {name} {{ {} }}", elements.join(", "));
}
