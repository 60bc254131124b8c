//! Patches for Services and Ingresses: finalizers, ids, addresses and conditions.

use jiff::Timestamp;
use serde_json::{Map, Value, json};
use uturn_clouds::cloud::tke::annotations as keys;
use uturn_model::{ObjectKind, ObjectRef};
use uturn_operator::observed::Balancer;
use uturn_operator::wanted::AFFINITY_NOTE;

use crate::cluster::{FINALIZER, LiveObject};

/// The annotation of an Ingress with its conditions.
const CONDITIONS: &str = "ingress.cloud.tencent.com/status.conditions";

/// The session affinity of Services whose clients stay with their targets.
const CLIENT_IP: &str = "ClientIP";

/// A merge patch of an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Patch {
    /// Whether the patch is for the status.
    pub is_status: bool,
    /// The content of the patch.
    pub value: Value,
}

/// The state of an object's load balancer, for its condition.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Readiness {
    /// Whether the load balancer is as it should be.
    pub is_ready: bool,
    /// `Success`, `Pending`, or the code of an error.
    pub reason: String,
    /// The problem; empty if there is none.
    pub message: String,
}

/// Adds the finalizer to an object. Returns `None` if the object has it.
pub fn hold(object: &LiveObject) -> Option<Patch> {
    if object.is_held() {
        return None;
    }
    let mut finalizers = object.finalizers();
    finalizers.push(FINALIZER);
    Some(metadata(object, Map::from_iter([("finalizers".to_owned(), json!(finalizers))])))
}

/// Removes what the controllers wrote from an object whose load balancer is gone. The finalizer
/// comes last, because the object may be gone after it.
pub fn release(kind: ObjectKind, object: &LiveObject) -> Vec<Patch> {
    let mut patches = Vec::new();
    let has_address = object.value["status"]["loadBalancer"]["ingress"]
        .as_array()
        .is_some_and(|addresses| !addresses.is_empty());
    if !object.is_deleted() && has_address {
        let mut status = json!({ "loadBalancer": { "ingress": null } });
        if kind == ObjectKind::Service {
            status["conditions"] = Value::Array(other_conditions(object));
        }
        patches.push(Patch { is_status: true, value: json!({ "status": status }) });
    }
    let finalizers: Vec<&str> =
        object.finalizers().into_iter().filter(|finalizer| *finalizer != FINALIZER).collect();
    let mut annotations = Map::new();
    for key in [current_key(kind), CONDITIONS, AFFINITY_NOTE] {
        if object.annotation(key).is_some() {
            annotations.insert(key.to_owned(), Value::Null);
        }
    }
    let mut changes = Map::from_iter([("finalizers".to_owned(), json!(finalizers))]);
    if !annotations.is_empty() {
        changes.insert("annotations".to_owned(), Value::Object(annotations));
    }
    patches.push(metadata(object, changes));
    patches
}

/// Writes an object's load balancer and its condition, if they differ from what is there.
pub fn report(
    object: &ObjectRef,
    live: &LiveObject,
    balancer: Option<&Balancer>,
    readiness: &Readiness,
    now: Timestamp,
) -> Vec<Patch> {
    let is_service = object.kind == ObjectKind::Service;
    let mut annotations = Map::new();
    let key = current_key(object.kind);
    if let Some(balancer) = balancer.filter(|found| live.annotation(key) != Some(&found.id)) {
        annotations.insert(key.to_owned(), balancer.id.as_str().into());
    }
    if let Some(note) = affinity_note(live, readiness).filter(|_| is_service) {
        annotations.insert(AFFINITY_NOTE.to_owned(), note);
    }
    let mut status = Map::new();
    if let Some(balancer) = balancer {
        let addresses = addresses(balancer, is_service);
        if live.value["status"]["loadBalancer"]["ingress"] != addresses {
            status.insert("loadBalancer".to_owned(), json!({ "ingress": addresses }));
        }
    }
    if is_service {
        let conditions = live.value["status"]["conditions"].as_array();
        let there = conditions.into_iter().flatten().find(|found| found["type"] == "Ready");
        if let Some(condition) = condition(there, readiness, now) {
            let mut all = other_conditions(live);
            all.push(condition);
            status.insert("conditions".to_owned(), Value::Array(all));
        }
    } else {
        let written = live.annotation(CONDITIONS).and_then(|text| serde_json::from_str(text).ok());
        let written: Vec<Value> = written.unwrap_or_default();
        let there = written.iter().find(|found| found["type"] == "Ready");
        if let Some(condition) = condition(there, readiness, now) {
            annotations.insert(CONDITIONS.to_owned(), json!([condition]).to_string().into());
        }
    }
    let mut patches = Vec::new();
    if !annotations.is_empty() {
        let changes = Map::from_iter([("annotations".to_owned(), Value::Object(annotations))]);
        patches.push(Patch { is_status: false, value: json!({ "metadata": changes }) });
    }
    if !status.is_empty() {
        patches.push(Patch { is_status: true, value: json!({ "status": status }) });
    }
    patches
}

/// Returns the change of the note that `spec.sessionAffinity` started sessions, if it changes. The
/// note is removed when the sessions have ended.
fn affinity_note(live: &LiveObject, readiness: &Readiness) -> Option<Value> {
    let is_on = live.value["spec"]["sessionAffinity"] == CLIENT_IP;
    match (is_on, live.annotation(AFFINITY_NOTE).is_some()) {
        (true, false) => Some(CLIENT_IP.into()),
        (false, true) if readiness.is_ready => Some(Value::Null),
        _ => None,
    }
}

/// Returns a patch of lists in `metadata`. The patch fails if the object changed meanwhile, because
/// it would remove items that others added.
fn metadata(object: &LiveObject, mut changes: Map<String, Value>) -> Patch {
    changes
        .insert("resourceVersion".to_owned(), object.value["metadata"]["resourceVersion"].clone());
    Patch { is_status: false, value: json!({ "metadata": changes }) }
}

/// Returns the annotation with the id of an object's load balancer.
fn current_key(kind: ObjectKind) -> &'static str {
    if kind == ObjectKind::Ingress { keys::INGRESS_CURRENT } else { keys::CURRENT }
}

fn addresses(balancer: &Balancer, has_mode: bool) -> Value {
    let address = |address: &std::net::IpAddr| {
        let mut entry = json!({ "ip": address.to_string() });
        if has_mode {
            entry["ipMode"] = "VIP".into();
        }
        entry
    };
    match (&balancer.domain, balancer.addresses.is_empty()) {
        (Some(domain), true) => json!([{ "hostname": domain }]),
        _ => Value::Array(balancer.addresses.iter().map(address).collect()),
    }
}

/// Returns the condition, if it differs from the present one. Its time changes only with its
/// status.
fn condition(there: Option<&Value>, readiness: &Readiness, now: Timestamp) -> Option<Value> {
    let status = if readiness.is_ready { "True" } else { "False" };
    let has_status = there.is_some_and(|there| there["status"] == status);
    let is_same = has_status
        && there.is_some_and(|there| {
            there["reason"] == *readiness.reason && there["message"] == *readiness.message
        });
    if is_same {
        return None;
    }
    let since = there.filter(|_| has_status).map(|there| there["lastTransitionTime"].clone());
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now).to_string();
    Some(json!({
        "type": "Ready",
        "status": status,
        "reason": readiness.reason,
        "message": readiness.message,
        "lastTransitionTime": since.unwrap_or_else(|| now.into()),
    }))
}

fn other_conditions(live: &LiveObject) -> Vec<Value> {
    let conditions = live.value["status"]["conditions"].as_array().into_iter().flatten();
    conditions.filter(|found| found["type"] != "Ready").cloned().collect()
}
