//! Pods with the controllers' readiness gate, in the form in which the store keeps them.

use kube::core::DynamicObject;
use serde_json::{Map, Value, json};
use uturn_model::NamespacedName;
use uturn_operator::readiness::GATE;

use crate::kinds::POD;

/// Returns whether a pod has the controllers' gate and has not ended, so that it is kept.
pub fn has_gate(pod: &DynamicObject) -> bool {
    let gates = pod.data["spec"]["readinessGates"].as_array().into_iter().flatten();
    let is_over =
        pod.data["status"]["phase"] == "Succeeded" || pod.data["status"]["phase"] == "Failed";
    !is_over && gates.into_iter().any(|gate| gate["conditionType"] == GATE)
}

/// Returns the members of a pod that are kept: enough to tell whether it is a target.
pub fn kept(pod: &Value) -> Value {
    let (metadata, spec, status) = (&pod["metadata"], &pod["spec"], &pod["status"]);
    let gates = spec["readinessGates"].as_array().into_iter().flatten();
    let mut kinds: Vec<&str> = gates.filter_map(|gate| gate["conditionType"].as_str()).collect();
    kinds.extend(["ContainersReady", "Ready"]);
    let conditions = status["conditions"].as_array().into_iter().flatten();
    let conditions = conditions
        .filter(|condition| condition["type"].as_str().is_some_and(|kind| kinds.contains(&kind)));
    let conditions = conditions
        .map(|condition| json!({ "type": condition["type"], "status": condition["status"] }));
    json!({
        "apiVersion": "v1",
        "kind": POD.kind,
        "metadata": with(metadata, &["name", "namespace", "deletionTimestamp"]),
        "spec": with(spec, &["nodeName", "readinessGates"]),
        "status": {
            "phase": status["phase"],
            "podIPs": status["podIPs"].as_array().cloned().unwrap_or_default(),
            "conditions": conditions.collect::<Vec<_>>(),
        },
    })
}

/// Returns an object with those of these members that are present.
fn with(value: &Value, members: &[&str]) -> Value {
    let there = members.iter().filter_map(|name| Some((*name, value.get(*name)?.clone())));
    there.map(|(name, value)| (name.to_owned(), value)).collect::<Map<_, _>>().into()
}

/// Returns the name of a kept pod whose gate is closed and that is not being deleted.
pub fn closed(pod: &Value) -> Option<NamespacedName> {
    let mut conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
    let is_open =
        conditions.any(|condition| condition["type"] == GATE && condition["status"] == "True");
    let text = |key: &str| pod["metadata"][key].as_str().unwrap_or_default();
    let name = NamespacedName::new(text("namespace"), text("name")).ok()?;
    (!is_open && pod["metadata"].get("deletionTimestamp").is_none()).then_some(name)
}
