//! An index of the load balancers and configurations that Services and Ingresses have, had or name.
//! It is updated with the store, so that the cost of a change depends only on the objects that it
//! concerns.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use uturn_model::ObjectRef;

use crate::kept::Key;
use crate::{cluster, related};

/// The load balancers and configurations that objects have, had or name.
#[derive(Clone, Debug, Default)]
pub struct Index {
    notes: BTreeMap<ObjectRef, Note>,
    by_uid: BTreeMap<String, BTreeSet<ObjectRef>>,
    by_id: BTreeMap<String, BTreeSet<ObjectRef>>,
    by_config: BTreeMap<Key, BTreeSet<ObjectRef>>,
    left: Left,
}

/// The indexed properties of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Note {
    uid: String,
    /// The load balancers that the object uses, used, or names.
    balancers: BTreeSet<String>,
    /// The configurations that the object names, and the one that the controllers make for it.
    configs: BTreeSet<Key>,
}

/// References that objects no longer have, whose targets may now be unused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Left {
    /// The UIDs of objects that are gone, or have no load balancer any more.
    pub uids: BTreeSet<String>,
    /// The ids of load balancers that an object no longer names.
    pub balancers: BTreeSet<String>,
}

impl Index {
    /// Returns the objects that have a load balancer, had one, or may want one.
    pub fn objects(&self) -> impl Iterator<Item = &ObjectRef> {
        self.notes.keys()
    }

    /// Returns whether an object has a load balancer, had one, or may want one.
    pub fn has(&self, object: &ObjectRef) -> bool {
        self.notes.contains_key(object)
    }

    /// Returns the UID of an object.
    pub fn uid(&self, object: &ObjectRef) -> Option<&str> {
        self.notes.get(object).map(|note| note.uid.as_str())
    }

    /// Returns the load balancers that an object uses, used, or names.
    pub fn balancers_of(&self, object: &ObjectRef) -> impl Iterator<Item = &String> {
        self.notes.get(object).into_iter().flat_map(|note| &note.balancers)
    }

    /// Returns the objects with a UID: one, unless something is wrong.
    pub fn with_uid(&self, uid: &str) -> impl Iterator<Item = &ObjectRef> {
        self.by_uid.get(uid).into_iter().flatten()
    }

    /// Returns the objects that use, used, or name a load balancer.
    pub fn users_of_balancer(&self, id: &str) -> impl Iterator<Item = &ObjectRef> {
        self.by_id.get(id).into_iter().flatten()
    }

    /// Returns the objects that a configuration is for.
    pub fn users_of_config(&self, config: &Key) -> impl Iterator<Item = &ObjectRef> {
        self.by_config.get(config).into_iter().flatten()
    }

    /// Returns and resets the references that objects no longer have.
    pub fn take_left(&mut self) -> Left {
        std::mem::take(&mut self.left)
    }

    /// Sets an object's state, or that it is gone. Returns the other objects that use, used, or
    /// name a load balancer that this object no longer names.
    pub(crate) fn set(&mut self, object: &ObjectRef, value: Option<&Value>) -> BTreeSet<ObjectRef> {
        let after =
            value.filter(|value| related::is_served(value)).map(|value| note(object, value));
        if self.notes.get(object) == after.as_ref() {
            return BTreeSet::new();
        }
        let before = self.notes.remove(object);
        if let Some(note) = &before {
            remove(&mut self.by_uid, &note.uid, object);
            note.balancers.iter().for_each(|id| remove(&mut self.by_id, id, object));
            note.configs.iter().for_each(|config| remove(&mut self.by_config, config, object));
        }
        if let Some(note) = &after {
            add(&mut self.by_uid, &note.uid, object);
            note.balancers.iter().for_each(|id| add(&mut self.by_id, id, object));
            note.configs.iter().for_each(|config| add(&mut self.by_config, config, object));
        }
        let mut others = BTreeSet::new();
        if let Some(before) = before {
            let has =
                |id: &&String| after.as_ref().is_some_and(|note| note.balancers.contains(*id));
            for id in before.balancers.iter().filter(|id| !has(id)) {
                others.extend(self.users_of_balancer(id).cloned());
                self.left.balancers.insert(id.clone());
            }
            if after.as_ref().is_none_or(|note| note.uid != before.uid) {
                self.left.uids.insert(before.uid);
            }
        }
        if let Some(note) = after {
            self.notes.insert(object.clone(), note);
        }
        others
    }
}

fn note(object: &ObjectRef, value: &Value) -> Note {
    let (namespace, _) = related::key_of(object);
    let configs = related::configs(object, value).into_iter();
    Note {
        uid: value["metadata"]["uid"].as_str().unwrap_or_default().to_owned(),
        balancers: cluster::existing(value),
        configs: configs.map(|name| (namespace.clone(), name)).collect(),
    }
}

fn add<K: Ord + Clone>(map: &mut BTreeMap<K, BTreeSet<ObjectRef>>, key: &K, object: &ObjectRef) {
    map.entry(key.clone()).or_default().insert(object.clone());
}

fn remove<K: Ord>(map: &mut BTreeMap<K, BTreeSet<ObjectRef>>, key: &K, object: &ObjectRef) {
    if let Some(objects) = map.get_mut(key) {
        objects.remove(object);
        if objects.is_empty() {
            map.remove(key);
        }
    }
}
