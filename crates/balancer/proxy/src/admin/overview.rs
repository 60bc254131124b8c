//! The administrator's view of what is served.

use std::collections::HashSet;
use std::net::SocketAddr;
use std::sync::Arc;

use uturn_model::Text;
use uturn_model::ingress::PathKind;
use uturn_model::lb::{self, ListenerProtocol};

use crate::metrics::ProbeRecord;
use crate::state::{Slot, Target};

/// All listeners with their targets.
#[derive(Debug, Default)]
pub(crate) struct Overview {
    pub(crate) listeners: Vec<Arc<ShownListener>>,
}

/// A listener and its targets, as the administrator sees them.
#[derive(Debug)]
pub(crate) struct ShownListener {
    pub(crate) load_balancer: Text,
    pub(crate) address: SocketAddr,
    pub(crate) protocol: ListenerProtocol,
    /// Whether the health of the targets is checked.
    is_probed: bool,
    /// The listener's slot; `None` if the kernel serves the listener.
    pub(crate) slot: Option<Arc<Slot>>,
    /// The targets of the first rule, then those of the second, and so on.
    pub(crate) targets: Vec<ShownTarget>,
}

/// A target of a rule.
#[derive(Debug)]
pub(crate) struct ShownTarget {
    /// The name of the rule: its host and path, made unique among the rules of the listener.
    pub(crate) rule: Arc<str>,
    /// The position of the rule in the listener.
    pub(crate) rule_index: usize,
    /// The name of the target: its address, made unique among the targets of the rule.
    pub(crate) name: String,
    pub(crate) weight: u32,
    pub(crate) probes: Arc<ProbeRecord>,
    /// The state of the target; `None` if the kernel forwards to it.
    pub(crate) state: Option<Arc<Target>>,
}

impl ShownListener {
    /// Returns the view of a listener. Targets keep their records of health checks in `previous`,
    /// the listener at the same address.
    pub(crate) fn new(
        load_balancer: &Text,
        address: SocketAddr,
        config: &lb::Listener,
        slot: Option<Arc<Slot>>,
        previous: Option<&Self>,
    ) -> Self {
        let is_probed = config.profile.health_check.is_some();
        let probes = |rule: &str, name: &str| {
            let known = previous.filter(|_| is_probed).into_iter();
            let known = known.flat_map(|known| &known.targets);
            let mut same = known.filter(|target| *target.rule == *rule && target.name == name);
            same.next().map_or_else(Arc::default, |target| Arc::clone(&target.probes))
        };
        let current = slot.as_ref().map(|slot| slot.current());
        let (mut rules, mut targets) = (HashSet::new(), Vec::new());
        for (place, rule) in config.rules.iter().enumerate() {
            let name: Arc<str> = unique(&mut rules, rule_name(rule)).into();
            let mut names = HashSet::new();
            for (number, target) in rule.targets.iter().enumerate() {
                let target_name = unique(&mut names, target.address.to_string());
                targets.push(ShownTarget {
                    probes: probes(&name, &target_name),
                    rule: Arc::clone(&name),
                    rule_index: place,
                    name: target_name,
                    weight: target.weight,
                    state: current
                        .as_ref()
                        .map(|now| Arc::clone(&now.rules[place].targets[number])),
                });
            }
        }
        let load_balancer = load_balancer.clone();
        Self { load_balancer, address, protocol: config.protocol, is_probed, slot, targets }
    }

    /// Returns the targets whose health checks have not decided anything yet.
    pub(crate) fn undecided(&self) -> impl Iterator<Item = &str> {
        let probed = self.targets.iter().filter(|_| self.is_probed);
        let undecided = probed.filter(|target| target.probes.state().alive.is_none());
        undecided.map(|target| &*target.name)
    }

    /// Returns whether the listener accepts connections. The kernel always does.
    pub(crate) fn is_accepting(&self) -> bool {
        self.slot.as_ref().is_none_or(|slot| slot.metrics.is_accepting())
    }
}

impl ShownTarget {
    /// Returns whether health checks permit the target to be picked.
    pub(crate) fn is_alive(&self) -> bool {
        match &self.state {
            Some(target) => target.is_alive(),
            None => self.probes.state().alive.unwrap_or(true),
        }
    }
}

/// Returns the host and path of a rule; `*` for all hosts.
fn rule_name(rule: &lb::Rule) -> String {
    let host = rule.host.as_deref().unwrap_or("*");
    match &rule.path {
        None => host.to_owned(),
        Some((path, PathKind::Exact)) => format!("{host}{path} (exact)"),
        Some((path, _)) => format!("{host}{path}"),
    }
}

/// Returns the name with a number if it is taken already, and adds it to `taken`.
fn unique(taken: &mut HashSet<String>, name: String) -> String {
    let numbered = (2..).map(|number| format!("{name}#{number}"));
    let free = std::iter::once(name.clone()).chain(numbered).find(|name| !taken.contains(name));
    let free = free.unwrap_or(name);
    taken.insert(free.clone());
    free
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        let mut taken = HashSet::new();
        let names = ["a", "b", "a", "a"].map(|name| unique(&mut taken, name.into()));
        assert_eq!(names, ["a", "b", "a#2", "a#3"]);
    }
}
