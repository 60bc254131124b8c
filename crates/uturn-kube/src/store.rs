//! The objects of a cluster as the watches reported them last.

use std::collections::{BTreeMap, BTreeSet};

use kube::core::DynamicObject;
use serde_json::Value;

use crate::kinds::{POD, WATCHED, WatchedKind};
use crate::pods;

/// The objects of a kind by namespace and name.
pub type OfKind = BTreeMap<(String, String), Value>;

/// The objects of a cluster.
#[derive(Clone, Debug, Default)]
pub struct Store {
    objects: BTreeMap<&'static str, OfKind>,
    listed: BTreeSet<&'static str>,
}

impl Store {
    /// Whether all kinds were listed at least once.
    pub fn is_complete(&self) -> bool {
        WATCHED.iter().all(|kind| self.listed.contains(kind.kind))
    }

    /// The kinds that were not listed yet.
    pub fn missing(&self) -> Vec<&'static str> {
        let missing = WATCHED.iter().filter(|kind| !self.listed.contains(kind.kind));
        missing.map(|kind| kind.kind).collect()
    }

    /// Replaces all objects of a kind.
    pub fn list(&mut self, kind: &'static WatchedKind, objects: Vec<DynamicObject>) {
        let objects = objects.into_iter();
        let objects = objects.filter_map(|object| Some((key(&object), value(kind, object)?)));
        self.objects.insert(kind.kind, objects.collect());
        self.listed.insert(kind.kind);
    }

    /// Adds or replaces an object. Returns whether that changed what is kept.
    pub fn apply(&mut self, kind: &'static WatchedKind, object: DynamicObject) -> bool {
        let key = key(&object);
        let objects = self.objects.entry(kind.kind).or_default();
        match value(kind, object) {
            Some(value) => objects.insert(key, value.clone()).is_none_or(|before| before != value),
            None => objects.remove(&key).is_some(),
        }
    }

    /// Removes an object. Returns whether it was kept.
    pub fn delete(&mut self, kind: &'static WatchedKind, object: &DynamicObject) -> bool {
        let objects = self.objects.get_mut(kind.kind);
        objects.is_some_and(|objects| objects.remove(&key(object)).is_some())
    }

    /// The objects of a kind.
    pub fn of(&self, kind: &WatchedKind) -> impl Iterator<Item = &Value> {
        self.objects.get(kind.kind).into_iter().flat_map(|objects| objects.values())
    }
}

/// Whether anything reads an object.
pub fn is_kept(kind: &WatchedKind, object: &DynamicObject) -> bool {
    kind.kind != POD.kind || pods::has_gate(object)
}

fn key(object: &DynamicObject) -> (String, String) {
    let metadata = &object.metadata;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    (text(&metadata.namespace), text(&metadata.name))
}

/// The object as JSON, without what nothing reads. Items of lists do not state their kind. Returns
/// `None` for a pod that is not kept.
fn value(kind: &WatchedKind, mut object: DynamicObject) -> Option<Value> {
    if !is_kept(kind, &object) {
        return None;
    }
    object.metadata.managed_fields = None;
    let mut value = serde_json::to_value(object).unwrap_or_default();
    if kind.kind == POD.kind {
        return Some(pods::kept(&value));
    }
    value["apiVersion"] = kind.api_version().into();
    value["kind"] = kind.kind.into();
    Some(value)
}
