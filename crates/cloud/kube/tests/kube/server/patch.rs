//! Patches.

use serde_json::{Value, json};

/// A strategic merge patch keeps the conditions of other types than its own.
pub(super) fn keep_conditions(before: &Value, patch: &mut Value) {
    let Some(own) = patch["conditions"].as_array_mut() else { return };
    let all = before["conditions"].as_array().into_iter().flatten();
    let others = all.filter(|there| own.iter().all(|own| own["type"] != there["type"]));
    let others: Vec<Value> = others.cloned().collect();
    own.splice(0..0, others);
}

/// A merge patch (RFC 7386).
pub(super) fn merge(value: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *value = patch.clone();
        return;
    };
    if !value.is_object() {
        *value = json!({});
    }
    for (key, patch) in patch {
        match patch {
            Value::Null => drop(value.as_object_mut().unwrap().remove(key)),
            patch => merge(&mut value[key], patch),
        }
    }
}
