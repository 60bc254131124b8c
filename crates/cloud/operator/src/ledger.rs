//! The ledger of the owners of ports on the load balancers that users made.
//!
//! Annotations name such a load balancer, and anybody who may write a Service or an Ingress may
//! write annotations. So annotations do not decide who owns a port: the ledger does, which is
//! stored where tenants cannot write it. An object that owns a port keeps it until it no longer
//! wants it. Only the recorded owner's settings of the whole load balancer count. A listener that
//! is not recorded belongs to somebody else, perhaps to another cluster, and is neither changed nor
//! deleted.
//!
//! Load balancers that the controllers made need no record: their tags identify the owner.

mod text;

use std::collections::{BTreeMap, BTreeSet};

use uturn_model::ObjectRef;

pub use self::text::Unreadable;
use crate::clb::{self, ListenerKey, RuleKey};

/// The records of load balancers, by their ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    records: BTreeMap<String, Record>,
}

/// The record of a load balancer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// The object whose settings of the whole load balancer count.
    pub owner: Option<Holder>,
    /// The listeners of this cluster.
    pub listeners: BTreeMap<ListenerKey, Held>,
    /// Whether listeners of objects that could not be read when the record was begun may still be
    /// adopted.
    pub is_adopting: bool,
}

/// An object that owns a load balancer's settings, a listener or a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Holder {
    /// The object.
    pub object: ObjectRef,
    /// The UID of the object, which no other object ever has.
    pub uid: String,
}

/// A listener and the objects that own it and its rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The object that owns the listener.
    pub holder: Holder,
    /// The id of the listener; `None` before it is created.
    pub id: Option<String>,
    /// Whether the listener is being created. Until its new id is recorded, a listener that is
    /// found on the port is assumed to be the new one, if it has only wanted content.
    pub is_creating: bool,
    /// The owners of rules of other Ingresses of the group.
    pub rules: BTreeMap<RuleKey, Holder>,
}

impl Ledger {
    /// Returns the record of a load balancer.
    pub fn of(&self, id: &str) -> Option<&Record> {
        self.records.get(id)
    }

    /// Returns the load balancers that have a record.
    pub fn ids(&self) -> impl Iterator<Item = &String> {
        self.records.keys()
    }

    /// Returns all records, by the ids of their load balancers.
    pub fn records(&self) -> impl Iterator<Item = (&String, &Record)> {
        self.records.iter()
    }

    /// Replaces the record of a load balancer. An empty record is removed.
    pub fn set(&mut self, id: &str, record: Record) {
        if record.is_empty() {
            drop(self.records.remove(id));
        } else {
            drop(self.records.insert(id.to_owned(), record));
        }
    }

    /// Sets the ids of listeners that were created.
    pub fn created(&mut self, id: &str, listeners: &BTreeMap<ListenerKey, String>) {
        let Some(record) = self.records.get_mut(id) else { return };
        for (key, listener) in listeners {
            if let Some(held) = record.listeners.get_mut(key) {
                (held.id, held.is_creating) = (Some(listener.clone()), false);
            }
        }
    }
}

impl Record {
    /// Returns whether nothing is recorded.
    pub fn is_empty(&self) -> bool {
        self.owner.is_none() && self.listeners.is_empty()
    }

    /// Returns the UIDs of all objects in the record.
    pub fn uids(&self) -> BTreeSet<&str> {
        let of_rules = self.listeners.values().flat_map(|held| held.rules.values());
        let of_listeners = self.listeners.values().map(|held| &held.holder);
        let all = self.owner.iter().chain(of_listeners).chain(of_rules);
        all.map(|holder| holder.uid.as_str()).collect()
    }

    /// Returns whether a listener that was found on a port, with this id, is this cluster's. While
    /// a listener is being created and its id is not known, `wanted` determines its allowed
    /// content.
    pub fn has(
        &self,
        key: ListenerKey,
        id: &str,
        found: &clb::Listener,
        wanted: Option<&clb::Listener>,
    ) -> bool {
        let Some(held) = self.listeners.get(&key) else { return false };
        held.id.as_deref() == Some(id) || (held.is_creating && fits(found, wanted))
    }

    /// Returns the object that owns a rule of a listener.
    pub fn holder_of_rule(&self, key: ListenerKey, rule: &RuleKey) -> Option<&Holder> {
        let held = self.listeners.get(&key)?;
        Some(held.rules.get(rule).unwrap_or(&held.holder))
    }
}

/// Returns whether a listener has only the wanted content.
fn fits(found: &clb::Listener, wanted: Option<&clb::Listener>) -> bool {
    let groups = wanted.map(clb::Listener::groups).unwrap_or_default();
    wanted.is_none_or(|wanted| wanted.protocol == found.protocol)
        && found.groups().iter().all(|(rule, targets)| match groups.get(rule) {
            Some(wanted) => targets.keys().all(|target| wanted.contains_key(target)),
            None => rule.is_none() && targets.is_empty(),
        })
}
