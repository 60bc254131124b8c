//! The difference between two configurations of a data plane, listener by listener.
//!
//! # Guarantees
//! - [`Change::between`] two lists, [applied](Change::apply) to the first, yields the second, except
//!   for the order of load balancers and of their listeners. A property test checks that.
//! - It contains only what differs.
//!
//! # Assumptions
//! - A load balancer is identified by its name and address, and a listener by its load balancer, port
//!   and transport. Neither occurs twice.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::net::IpAddr;

use thiserror::Error;
use uturn_model::lb::Listener;
use uturn_model::{LoadBalancer, Port, Protocol, Text};

use crate::config::{BalancerConfig, ListenerSettings};

/// The difference between two lists of load balancers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Change {
    /// Load balancers that are new or different, with their new or different listeners.
    pub set: Vec<BalancerConfig>,
    /// Load balancers that no longer exist.
    pub removed: Vec<BalancerKey>,
    /// Listeners that no longer exist, of load balancers that remain.
    pub removed_listeners: Vec<ListenerKey>,
}

/// The identity of a load balancer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BalancerKey {
    /// The name of the load balancer.
    pub name: Text,
    /// The address of the load balancer.
    pub vip: IpAddr,
}

/// The identity of a listener.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListenerKey {
    /// The load balancer of the listener.
    pub balancer: BalancerKey,
    /// The port of the listener.
    pub port: Port,
    /// The transport of the listener.
    pub transport: Protocol,
}

/// The error that a change removes something that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0} is to be removed, but does not exist")]
pub struct UnknownPart(String);

impl BalancerKey {
    /// Returns the key of a load balancer.
    pub fn of(load_balancer: &LoadBalancer) -> Self {
        Self { name: load_balancer.name.clone(), vip: load_balancer.vip }
    }
}

impl fmt::Display for BalancerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.name, self.vip)
    }
}

impl Change {
    /// Returns the difference between two lists of load balancers.
    pub fn between(before: &[BalancerConfig], after: &[BalancerConfig]) -> Self {
        let mut known: HashMap<BalancerKey, &BalancerConfig> =
            before.iter().map(|served| (BalancerKey::of(&served.load_balancer), served)).collect();
        let mut change = Self::default();
        for served in after {
            let key = BalancerKey::of(&served.load_balancer);
            match known.remove(&key) {
                Some(before) => change.add_difference(&key, before, served),
                None => change.set.push(served.clone()),
            }
        }
        change.removed = known.into_keys().collect();
        change.removed.sort();
        change
    }

    fn add_difference(
        &mut self,
        key: &BalancerKey,
        before: &BalancerConfig,
        after: &BalancerConfig,
    ) {
        if before == after {
            return;
        }
        let mut known: HashMap<_, _> = listeners(before).collect();
        let mut part = without_listeners(after);
        for (place, listener) in listeners(after) {
            if known.remove(&place) != Some(listener) {
                part.load_balancer.listeners.push(listener.0.clone());
                part.listeners.push(listener.1.clone());
            }
        }
        if !part.listeners.is_empty() || without_listeners(before) != without_listeners(after) {
            self.set.push(part);
        }
        let mut removed: Vec<ListenerKey> = known
            .into_keys()
            .map(|(port, transport)| ListenerKey { balancer: key.clone(), port, transport })
            .collect();
        removed.sort();
        self.removed_listeners.extend(removed);
    }

    /// Returns whether the change changes nothing.
    pub fn is_empty(&self) -> bool {
        self.set.is_empty() && self.removed.is_empty() && self.removed_listeners.is_empty()
    }

    /// Applies the change to load balancers.
    ///
    /// # Errors
    /// Returns an error if a part to be removed does not exist.
    pub fn apply(self, load_balancers: &mut Vec<BalancerConfig>) -> Result<(), UnknownPart> {
        let missing = |part: String| Err(UnknownPart(part));
        let mut places: HashMap<BalancerKey, usize> = HashMap::new();
        for (place, served) in load_balancers.iter().enumerate() {
            places.insert(BalancerKey::of(&served.load_balancer), place);
        }
        let mut gone: HashMap<usize, HashSet<(Port, Protocol)>> = HashMap::new();
        for key in self.removed_listeners {
            let ListenerKey { balancer, port, transport } = key;
            let place = places.get(&balancer).copied().filter(|place| {
                listeners(&load_balancers[*place]).any(|(known, _)| known == (port, transport))
            });
            let Some(place) = place else {
                return missing(format!("{transport}:{port} of {balancer}"));
            };
            gone.entry(place).or_default().insert((port, transport));
        }
        let removed: HashSet<BalancerKey> = self.removed.into_iter().collect();
        if let Some(key) = removed.iter().find(|key| !places.contains_key(key)) {
            return missing(key.to_string());
        }
        for (place, gone) in gone {
            retain_listeners(&mut load_balancers[place], |port| !gone.contains(&port));
        }
        for part in self.set {
            match places.get(&BalancerKey::of(&part.load_balancer)) {
                Some(place) => merge(&mut load_balancers[*place], part),
                None => load_balancers.push(part),
            }
        }
        load_balancers.retain(|served| !removed.contains(&BalancerKey::of(&served.load_balancer)));
        Ok(())
    }
}

/// Replaces listeners by those of `part` with the same ports, and appends all others.
fn merge(served: &mut BalancerConfig, part: BalancerConfig) {
    let mut places: HashMap<_, usize> =
        listeners(served).enumerate().map(|(place, (port, _))| (port, place)).collect();
    let BalancerConfig { load_balancer, listeners: settings, derived } = part;
    for (listener, settings) in load_balancer.listeners.into_iter().zip(settings) {
        let count = served.listeners.len();
        let place = *places.entry((listener.port, listener.protocol.transport())).or_insert(count);
        if place == count {
            served.load_balancer.listeners.push(listener);
            served.listeners.push(settings);
        } else {
            served.load_balancer.listeners[place] = listener;
            served.listeners[place] = settings;
        }
    }
    served.load_balancer.scope = load_balancer.scope;
    served.load_balancer.security_groups = load_balancer.security_groups;
    served.derived = derived;
}

fn retain_listeners(served: &mut BalancerConfig, keep: impl Fn((Port, Protocol)) -> bool) {
    let models = std::mem::take(&mut served.load_balancer.listeners);
    let settings = std::mem::take(&mut served.listeners);
    let kept = models
        .into_iter()
        .zip(settings)
        .filter(|(listener, _)| keep((listener.port, listener.protocol.transport())));
    (served.load_balancer.listeners, served.listeners) = kept.unzip();
}

/// Returns the port and transport of each listener, with the listener and its settings.
fn listeners(
    served: &BalancerConfig,
) -> impl Iterator<Item = ((Port, Protocol), (&Listener, &ListenerSettings))> {
    let listeners = served.load_balancer.listeners.iter().zip(&served.listeners);
    listeners.map(|(model, settings)| ((model.port, model.protocol.transport()), (model, settings)))
}

fn without_listeners(served: &BalancerConfig) -> BalancerConfig {
    let LoadBalancer { name, vip, scope, zone, security_groups, listeners: _ } =
        &served.load_balancer;
    let load_balancer = LoadBalancer {
        name: name.clone(),
        vip: *vip,
        scope: *scope,
        zone: zone.clone(),
        security_groups: security_groups.clone(),
        listeners: Vec::new(),
    };
    BalancerConfig { load_balancer, listeners: Vec::new(), derived: served.derived }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use uturn_model::lb::{Layer, ListenerProtocol, Scope};

    use super::*;
    use crate::test_profile;

    /// A load balancer: its name, its group, and its ports with the connections that each accepts.
    type Spec = (u8, u8, Vec<(u8, u8)>);

    fn balancers(specs: &[Spec]) -> Vec<BalancerConfig> {
        let mut all: Vec<BalancerConfig> = Vec::new();
        for (name, group, ports) in specs {
            let key = format!("lb-{name}");
            if all.iter().any(|known| *known.load_balancer.name == *key) {
                continue;
            }
            let mut served = BalancerConfig {
                load_balancer: LoadBalancer {
                    name: key.as_str().into(),
                    vip: format!("10.0.0.{name}").parse().unwrap(),
                    scope: Scope::Public,
                    zone: None,
                    security_groups: vec![format!("sg-{group}").as_str().into()],
                    listeners: Vec::new(),
                },
                listeners: Vec::new(),
                derived: true,
            };
            for (port, connections) in ports {
                let protocol = match port % 2 {
                    0 => ListenerProtocol::Udp,
                    _ => ListenerProtocol::Tcp,
                };
                let port = Port::new(80 + u16::from(port / 2)).unwrap();
                if listeners(&served).any(|(known, _)| known == (port, protocol.transport())) {
                    continue;
                }
                let profile = test_profile::profile(Layer::L4);
                let model = Listener { port, protocol, profile, rules: Vec::new() };
                served.load_balancer.listeners.push(model);
                let mut settings = ListenerSettings::of(protocol);
                settings.limits.connections = Some((*connections).into());
                served.listeners.push(settings);
            }
            all.push(served);
        }
        all
    }

    fn sorted(mut all: Vec<BalancerConfig>) -> Vec<BalancerConfig> {
        for served in &mut all {
            let mut pairs: Vec<_> = std::mem::take(&mut served.load_balancer.listeners)
                .into_iter()
                .zip(std::mem::take(&mut served.listeners))
                .collect();
            pairs.sort_by_key(|(model, _)| (model.port, model.protocol));
            (served.load_balancer.listeners, served.listeners) = pairs.into_iter().unzip();
        }
        all.sort_by_key(|served| BalancerKey::of(&served.load_balancer));
        all
    }

    fn specs() -> impl Strategy<Value = Vec<Spec>> {
        let listeners = prop::collection::vec((0u8..6, 0u8..2), 0..5);
        prop::collection::vec((0u8..4, 0u8..2, listeners), 0..4)
    }

    proptest! {
        #[test]
        fn a_change_turns_the_first_into_the_second(before in specs(), after in specs()) {
            let (before, after) = (balancers(&before), balancers(&after));
            let change = Change::between(&before, &after);
            let count = |all: &[BalancerConfig]| all.iter().map(|served| served.listeners.len()).sum::<usize>();
            let is_new = |served: &BalancerConfig| {
                let same = before.iter().find(|known| {
                    BalancerKey::of(&known.load_balancer) == BalancerKey::of(&served.load_balancer)
                });
                listeners(served)
                    .filter(|(port, listener)| {
                        !same.is_some_and(|same| listeners(same).any(|it| it == (*port, *listener)))
                    })
                    .count()
            };
            prop_assert_eq!(count(&change.set), after.iter().map(is_new).sum::<usize>());
            let mut changed = before.clone();
            change.apply(&mut changed).unwrap();
            prop_assert_eq!(sorted(changed.clone()), sorted(after.clone()));
            prop_assert!(Change::between(&changed, &after).is_empty());
        }
    }

    #[test]
    fn what_is_not_there_cannot_be_removed() {
        let two = balancers(&[(1, 0, vec![(1, 0)]), (2, 0, vec![(3, 0)])]);
        let gone = Change::between(&two, &two[..1]);
        let mut changed = two[..1].to_vec();
        let error = gone.apply(&mut changed).unwrap_err();
        assert_eq!(error.to_string(), "lb-2 at 10.0.0.2 is to be removed, but does not exist");
        let mut fewer = two.clone();
        retain_listeners(&mut fewer[0], |_| false);
        let gone = Change::between(&two, &fewer);
        assert_eq!(gone.removed_listeners.len(), 1);
        let error = gone.apply(&mut fewer).unwrap_err();
        let message = "TCP:80 of lb-1 at 10.0.0.1 is to be removed, but does not exist";
        assert_eq!(error.to_string(), message);
    }
}
