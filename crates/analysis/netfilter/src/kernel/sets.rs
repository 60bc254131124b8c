//! Evaluates matches against IP sets, and finds the sets that rules name.

use std::collections::BTreeMap;

use uturn_model::{Assumption, Evidence, Family, Text};

use super::walk::Walk;
use super::{Kernel, unknown_condition};
use crate::LoadError;
use crate::capture_gaps::CaptureGap;
use crate::ipset::{Found, Probe};
use crate::iptables::{Extension, Match, Rule, Ruleset, SetDirection, SetMatch, Target};
use crate::state::NodeState;

/// Reports every set that rules name and that does not exist, once, at its first rule: the kernel
/// cannot load such a rule.
pub(super) fn check(state: &NodeState, has: impl Fn(&str) -> bool, errors: &mut Vec<LoadError>) {
    if state.gaps.contains(&CaptureGap::Sets) {
        return;
    }
    let mut missing: BTreeMap<&str, (&Rule, usize)> = BTreeMap::new();
    let mut names = Vec::new();
    for rule in rules(&state.iptables).chain(rules(&state.ip6tables)) {
        names.clear();
        named(rule, &mut names);
        for name in names.iter().filter(|name| !has(name)) {
            missing.entry(name).or_insert((rule, 0)).1 += 1;
        }
    }
    for (name, (rule, count)) in missing {
        let more = match count {
            1 => String::new(),
            2 => " (so does one more rule)".into(),
            _ => format!(" (so do {} more rules)", count - 1),
        };
        let message = format!(
            "this rule names the set {name}{more}, and there is no such set: is `ipset save` \
             of the same node missing?"
        );
        errors.push(LoadError::at(rule.origin.clone(), message));
    }
}

fn rules(ruleset: &Ruleset) -> impl Iterator<Item = &Rule> {
    let chains = ruleset.tables.iter().flat_map(|table| &table.chains);
    chains.flat_map(|chain| &chain.rules)
}

fn named<'a>(rule: &'a Rule, names: &mut Vec<&'a str>) {
    let after = |extension: &'a Extension, names: &mut Vec<&'a str>| {
        let pairs = extension.words.iter().zip(extension.words.iter().skip(1));
        let options = ["--match-set", "--add-set", "--del-set", "--map-set"];
        let found = pairs.filter(|(option, _)| options.contains(&&***option));
        names.extend(found.map(|(_, name)| &**name));
    };
    for item in &rule.matches {
        match item {
            Match::Set(set) => names.push(&set.set.value),
            Match::Other(extension) if &*extension.name == "set" => after(extension, names),
            _ => {}
        }
    }
    if let Some(Target::Other(extension)) = &rule.target
        && &*extension.name == "SET"
    {
        after(extension, names);
    }
}

impl Kernel {
    /// Returns why it is not known whether a match holds.
    pub(super) fn reason_of<'k>(&'k self, item: &'k Match) -> &'k str {
        let set = match item {
            Match::Set(set) => self.sets.too_wide(&set.set.value),
            _ => None,
        };
        set.or_else(|| unknown_condition::reason_of(item)).unwrap_or("this match is not modelled")
    }

    /// The probability that `-m set` matches; `None` if that is unknown.
    pub(super) fn in_set(&self, set: &SetMatch, walk: &Walk) -> Option<f64> {
        if self.state.gaps.contains(&CaptureGap::Sets) && !self.sets.has(&set.set.value) {
            return None;
        }
        let packet = &walk.packet;
        let (src_port, dst_port) = match packet.transport.icmp() {
            Some((kind, code)) => {
                let message = u16::from(kind) << 8 | u16::from(code);
                (message, message)
            }
            None => packet.transport.ports(),
        };
        let probe = |direction: &SetDirection| {
            let source = *direction == SetDirection::Source;
            Probe {
                ip: if source { packet.src } else { packet.dst },
                port: if source { src_port } else { dst_port },
                protocol: packet.protocol(),
                iface: if source { walk.iif.as_deref() } else { walk.oif.as_deref() },
                mark: packet.mark,
                has_mac: !walk.from_here,
            }
        };
        let ask = |probes: &[Probe<'_>]| {
            self.sets.ask(&set.set.value, probes, packet.family(), &walk.lookups)
        };
        let found = match set.directions.as_slice() {
            [a] => ask(&[probe(a)]),
            [a, b] => ask(&[probe(a), probe(b)]),
            more => ask(&more.iter().map(probe).collect::<Vec<_>>()),
        };
        let inside = match found {
            Found::Yes => !set.return_nomatch,
            Found::Except => set.return_nomatch,
            Found::No => false,
            Found::Unknown => return None,
        };
        Some(f64::from(u8::from(inside != set.set.not)))
    }
}

/// The assumption for a rule that changes a set: the change does not affect the packet itself.
pub(super) fn change(extension: &Extension, family: Family, by: &Evidence) -> Assumption {
    let name: Text = extension.words.get(1).cloned().unwrap_or_else(|| "".into());
    Assumption {
        subject: format!("the set {name}, which -j SET changes").into(),
        assumed: "rules see it as it was before this packet".into(),
        because: format!("a walk changes nothing on the node ({})", by.origin()).into(),
        settle: format!(
            "`ipset list {name}` on the node after such a packet of {}",
            if family == Family::V4 { "IPv4" } else { "IPv6" }
        )
        .into(),
    }
}
