//! Converts load balancers into documents for one machine.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};
use uturn_lb::change::{BalancerKey, Change, ListenerKey};
use uturn_lb::config::{BalancerConfig, Config, ListenerSettings};
use uturn_model::{LoadBalancer, lb};
use uturn_snapshot::LbFile;

use super::admin::TargetRow;
use super::view::{MachineHealth, TargetKey, both};
use crate::health::TargetState;
use crate::plane::Plan;

/// Load balancers by their ids.
pub(super) type Balancers = BTreeMap<String, Arc<Balancer>>;

/// A load balancer as a machine serves it.
#[derive(Debug, PartialEq)]
pub(super) struct Balancer {
    /// The configuration for each of its addresses.
    served: Vec<BalancerConfig>,
    /// The ids of its listeners.
    ids: BTreeMap<ListenerKey, String>,
}

impl Balancer {
    /// Returns the addresses.
    pub(super) fn addresses(&self) -> Vec<IpAddr> {
        self.served.iter().map(|served| served.load_balancer.vip).collect()
    }

    /// Returns the ids of the listeners.
    pub(super) fn listeners(&self) -> BTreeSet<&String> {
        self.ids.values().collect()
    }

    /// Returns the ids of the listeners that present certificates to their clients.
    pub(super) fn listeners_with_certificates(&self) -> BTreeSet<String> {
        let parts = self.served.iter().flat_map(parts);
        let parts = parts.filter(|(_, _, settings)| !settings.certificates.is_empty());
        parts.filter_map(|(key, ..)| self.ids.get(&key).cloned()).collect()
    }

    /// Returns whether a listener is the same in both load balancers.
    pub(super) fn has_same(&self, listener: &str, there: &Self) -> bool {
        self.part(listener).eq(there.part(listener))
    }

    /// Returns a listener at each of its addresses and ports.
    fn part<'b>(
        &'b self,
        listener: &'b str,
    ) -> impl Iterator<Item = (ListenerKey, &'b lb::Listener, &'b ListenerSettings)> {
        let parts = self.served.iter().flat_map(parts);
        parts.filter(move |(key, ..)| self.ids.get(key).is_some_and(|id| id == listener))
    }

    /// Returns this load balancer with `some` of its listeners as they are, and the others as they
    /// are in `before`, or left out if `before` lacks them. `None` if no listener is left.
    pub(super) fn with(&self, some: &BTreeSet<String>, before: Option<&Self>) -> Option<Self> {
        let mut partial = Self { served: Vec::new(), ids: BTreeMap::new() };
        for served in &self.served {
            let mut kept = BalancerConfig {
                load_balancer: LoadBalancer {
                    listeners: Vec::new(),
                    ..served.load_balancer.clone()
                },
                listeners: Vec::new(),
                ..*served
            };
            for (key, listener, settings) in parts(served) {
                let Some(id) = self.ids.get(&key) else { continue };
                let part = if some.contains(id) {
                    Some((listener, settings))
                } else {
                    before.and_then(|before| {
                        let mut there = before.part(id);
                        let there = there.find(|(there, ..)| *there == key);
                        there.map(|(_, listener, settings)| (listener, settings))
                    })
                };
                if let Some((listener, settings)) = part {
                    kept.load_balancer.listeners.push(listener.clone());
                    kept.listeners.push(settings.clone());
                    partial.ids.insert(key, id.clone());
                }
            }
            if !kept.listeners.is_empty() {
                partial.served.push(kept);
            }
        }
        (!partial.served.is_empty()).then_some(partial)
    }
}

/// Returns the listeners of a load balancer at one of its addresses.
fn parts(
    served: &BalancerConfig,
) -> impl Iterator<Item = (ListenerKey, &lb::Listener, &ListenerSettings)> {
    let balancer = BalancerKey::of(&served.load_balancer);
    let listeners = served.load_balancer.listeners.iter().zip(&served.listeners);
    listeners.map(move |(listener, settings)| {
        let transport = listener.protocol.transport();
        let key = ListenerKey { balancer: balancer.clone(), port: listener.port, transport };
        (key, listener, settings)
    })
}

/// Returns the load balancers of a plan for a machine that keeps certificates in this folder.
/// Reuses unchanged ones from `known`.
pub(super) fn balancers(plan: &Plan, folder: &Path, known: Option<&Balancers>) -> Balancers {
    let mut by_id: BTreeMap<String, Vec<BalancerConfig>> = BTreeMap::new();
    for served in &plan.config.load_balancers {
        let mut served = served.clone();
        for file in served.listeners.iter_mut().flat_map(ListenerSettings::tls_files_mut) {
            *file = folder.join(&*file);
        }
        by_id.entry(served.load_balancer.name.to_string()).or_default().push(served);
    }
    let balancer = |(id, served): (String, Vec<BalancerConfig>)| {
        let known = known.and_then(|known| known.get(&id));
        let ids = served.iter().flat_map(parts);
        let ids = ids.filter_map(|(key, ..)| {
            let id = plan.listeners.get(&key)?.clone();
            Some((key, id))
        });
        let balancer = Balancer { ids: ids.collect(), served };
        let balancer = match known.filter(|known| ***known == balancer) {
            Some(known) => Arc::clone(known),
            None => Arc::new(balancer),
        };
        (id, balancer)
    };
    by_id.into_iter().map(balancer).collect()
}

/// Returns whether two load balancers are served the same.
pub(super) fn is_same(first: &Arc<Balancer>, second: &Arc<Balancer>) -> bool {
    Arc::ptr_eq(first, second) || first == second
}

/// Returns the whole configuration of a machine: the settings of its process, and load balancers.
pub(super) fn whole(process: &Value, balancers: &Balancers) -> Bytes {
    let served = balancers.values().flat_map(|balancer| balancer.served.iter().cloned());
    let mut items = vec![process.clone()];
    items.extend(documents(served.collect()));
    list(&items)
}

/// Returns the change from one set of load balancers to another. Load balancers that both sets
/// share by pointer are not compared.
pub(super) fn change(before: &Balancers, after: &Balancers) -> Change {
    let others = |all: &Balancers, of: &Balancers| -> Vec<BalancerConfig> {
        let is_other = |(id, balancer): &(&String, &Arc<Balancer>)| {
            of.get(*id).is_none_or(|other| !Arc::ptr_eq(balancer, other))
        };
        let others = all.iter().filter(is_other);
        others.flat_map(|(_, balancer)| balancer.served.iter().cloned()).collect()
    };
    Change::between(&others(before, after), &others(after, before))
}

/// Returns a change in the form that a machine reads.
pub(super) fn part(change: Change) -> Bytes {
    let balancer = |key: &BalancerKey| json!({ "name": key.name.to_string(), "vip": key.vip });
    let listener = |key: &ListenerKey| {
        json!({
            "loadBalancer": key.balancer.name.to_string(), "vip": key.balancer.vip,
            "port": key.port.number(), "protocol": key.transport.to_string(),
        })
    };
    let Change { set, removed, removed_listeners } = change;
    let mut items = documents(set);
    if !removed.is_empty() || !removed_listeners.is_empty() {
        items.push(json!({ "apiVersion": "uturn.dev/v1alpha1", "kind": "Removal", "spec": {
            "loadBalancers": removed.iter().map(balancer).collect::<Vec<_>>(),
            "listeners": removed_listeners.iter().map(listener).collect::<Vec<_>>(),
        }}));
    }
    list(&items)
}

fn documents(served: Vec<BalancerConfig>) -> Vec<Value> {
    let config = Config { load_balancers: served, ..Config::default() };
    let mut file = serde_json::to_value(LbFile::from(&config)).expect("all keys are texts");
    let Value::Array(mut items) = file["items"].take() else { return Vec::new() };
    items.retain(|item| item["kind"] == "LoadBalancer");
    items
}

fn list(items: &[Value]) -> Bytes {
    let text = json!({ "apiVersion": "v1", "kind": "List", "items": items }).to_string();
    // The machine reads the text as YAML, which allows fewer characters unescaped than JSON. Such
    // characters only occur inside strings.
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{7f}'..='\u{9f}' => {
                escaped.push_str(&format!("\\u{:04x}", u32::from(character)));
            }
            character => escaped.push(character),
        }
    }
    escaped.into()
}

/// Returns the health of the targets of load balancers that a machine's rows report.
pub(super) fn health(balancers: &Balancers, rows: &[TargetRow]) -> MachineHealth {
    let mut listeners: HashMap<(&str, String, String), &lb::Listener> = HashMap::new();
    for (id, balancer) in balancers {
        for served in &balancer.served {
            let vip = served.load_balancer.vip;
            for listener in &served.load_balancer.listeners {
                let address = SocketAddr::new(vip, listener.port.number());
                let key = (id.as_str(), address.to_string(), listener.protocol.to_string());
                listeners.insert(key, listener);
            }
        }
    }
    let mut health = MachineHealth::new();
    for row in rows {
        let key = (row.load_balancer.as_str(), row.listener.to_string(), row.protocol.clone());
        let listener = listeners.get(&key);
        let Some(rule) = listener.and_then(|listener| listener.rules.get(row.rule_index)) else {
            continue;
        };
        // A second target with the same address is named ADDRESS#2.
        let address = row.target.split('#').next().and_then(|address| address.parse().ok());
        let Some(address) = address else { continue };
        let (listener, owner) = (rule.service.name.to_string(), rule.owner.name.to_string());
        let key = TargetKey {
            load_balancer: row.load_balancer.clone(),
            rule: (owner != listener).then_some(owner),
            listener,
            address,
        };
        let state = match (row.decided, row.alive) {
            (false, _) => TargetState::Unknown,
            (true, true) => TargetState::Alive,
            (true, false) => TargetState::Dead,
        };
        health.entry(key).and_modify(|known| *known = both(*known, state)).or_insert(state);
    }
    health
}
