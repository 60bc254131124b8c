//! Objects in the form in which the store keeps them: their keys, their JSON, and comparisons of
//! versions.

use std::collections::BTreeMap;

use kube::core::DynamicObject;
use serde_json::Value;
use uturn_snapshot::LAST_APPLIED;

use crate::kinds::{POD, WatchedKind};
use crate::pods;

/// The namespace and the name of an object.
pub type Key = (String, String);

/// Returns whether the store keeps an object. Of pods it keeps only those with the gate.
pub fn is_kept(kind: &WatchedKind, object: &DynamicObject) -> bool {
    kind.kind != POD.kind || pods::has_gate(object)
}

pub(crate) fn key(object: &DynamicObject) -> Key {
    let metadata = &object.metadata;
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    (text(&metadata.namespace), text(&metadata.name))
}

/// Returns the object as JSON, without members that nothing reads. Adds the kind, which items of
/// lists do not state. Returns `None` for a pod that is not kept.
pub(crate) fn value(kind: &WatchedKind, mut object: DynamicObject) -> Option<Value> {
    if !is_kept(kind, &object) {
        return None;
    }
    object.metadata.managed_fields = None;
    if let Some(annotations) = &mut object.metadata.annotations {
        annotations.remove(LAST_APPLIED);
    }
    if let Some(status) = object.data.get_mut("status").filter(|_| kind.kind == "Node") {
        prune(status);
    }
    let mut value = serde_json::to_value(object).unwrap_or_default();
    if kind.kind == POD.kind {
        return Some(pods::kept(&value));
    }
    value["apiVersion"] = kind.api_version().into();
    value["kind"] = kind.kind.into();
    Some(value)
}

/// Reduces a node's status to its addresses, the states of its conditions and `nodeInfo`. The rest
/// changes with every heartbeat.
fn prune(status: &mut Value) {
    let Some(members) = status.as_object_mut() else { return };
    members.retain(|name, _| ["addresses", "conditions", "nodeInfo"].contains(&name.as_str()));
    let conditions = members.get_mut("conditions").and_then(Value::as_array_mut);
    for condition in conditions.into_iter().flatten() {
        if let Some(members) = condition.as_object_mut() {
            members.retain(|name, _| ["type", "status"].contains(&name.as_str()));
        }
    }
}

pub(crate) fn is_same_uid(kept: &Value, object: &DynamicObject) -> bool {
    kept["metadata"]["uid"].as_str() == object.metadata.uid.as_deref()
}

/// Returns whether an object is older than the kept one. Version numbers only grow.
pub(crate) fn is_older(object: &DynamicObject, kept: &Value) -> bool {
    let number = |text: &str| text.parse::<u64>().ok();
    let there = kept["metadata"]["resourceVersion"].as_str().and_then(number);
    let version = object.metadata.resource_version.as_deref().and_then(number);
    version.zip(there).is_some_and(|(version, there)| version < there)
}

/// Returns whether an object is unchanged apart from its version numbers.
pub(crate) fn is_same(before: &Value, after: &Value) -> bool {
    let (Some(before), Some(after)) = (before.as_object(), after.as_object()) else {
        return before == after;
    };
    let is_same_metadata = |before: &Value, after: &Value| {
        let stated = |value: &Value| -> BTreeMap<String, Value> {
            let members = value.as_object().into_iter().flatten();
            members
                .filter(|(name, _)| !["resourceVersion", "generation"].contains(&name.as_str()))
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect()
        };
        stated(before) == stated(after)
    };
    before.len() == after.len()
        && before.iter().all(|(name, before)| match after.get(name) {
            Some(after) if name == "metadata" => is_same_metadata(before, after),
            Some(after) => before == after,
            None => false,
        })
}
