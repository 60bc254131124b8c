//! Removes the parts of an object that no decoder reads.

use serde_json::{Map, Value};
use uturn_model::pod::READ_VARIABLES;

use crate::decode::calico::SWITCH;
use crate::wanted::WANTED;

/// The annotation in which `kubectl apply` stores the whole object again, with the values of its
/// environment.
pub const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The field with the creation time of an object, and the kinds of which it is read.
const AGE: &str = "creationTimestamp";
const READ_FOR_AGE: [&str; 2] = ["TCPRoute", "TLSRoute"];

/// Removes all parts of a Kubernetes object that are never read, so that the rest is read as the
/// whole object would be. Values of containers' environment variables are removed, except the one
/// that states how Calico serves Services, and the few that configure Ingress controllers.
pub fn trim(object: &mut Value) {
    let kind = object.get("kind").and_then(Value::as_str).unwrap_or_default();
    let is_age_read = READ_FOR_AGE.contains(&kind);
    leave_unread_out(object);
    let meta = object.get_mut("metadata").and_then(Value::as_object_mut);
    if let Some(meta) = meta.filter(|_| !is_age_read) {
        meta.remove(AGE);
    }
}

fn leave_unread_out(object: &mut Value) {
    match object {
        Value::Object(fields) => {
            fields.retain(|name, _| WANTED.has(name) && name != SOURCES);
            fields.iter_mut().for_each(trim_field);
        }
        Value::Array(items) => items.iter_mut().for_each(leave_unread_out),
        _ => {}
    }
}

fn trim_field((name, value): (&String, &mut Value)) {
    match value {
        Value::Object(entries) if name == "annotations" => drop(entries.remove(LAST_APPLIED)),
        _ if WANTED.is_open(name) => {}
        Value::Array(variables) if name == "env" => {
            variables.retain_mut(|variable| variable.as_object_mut().is_some_and(is_read));
        }
        _ => leave_unread_out(value),
    }
}

/// The field for variables that come from ConfigMaps, which are not asked for, and from Secrets.
const SOURCES: &str = "envFrom";

/// Returns whether a variable is read. Only its name and value are kept.
fn is_read(variable: &mut Map<String, Value>) -> bool {
    variable.retain(|name, _| matches!(&**name, "name" | "value"));
    let name = variable.get("name").and_then(Value::as_str).unwrap_or_default();
    name.eq_ignore_ascii_case(SWITCH) || READ_VARIABLES.contains(&name)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_read_is_left() {
        let mut pod = json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": "web-0", "namespace": "shop", "uid": "0-1", "resourceVersion": "812",
                "managedFields": [{"manager": "kubectl"}],
                "labels": {"app": "web", "uid": "kept"},
                "annotations": {LAST_APPLIED: "{secret}", "mine": "kept"},
            },
            "spec": {
                "nodeName": "n1", "readinessProbes": [{"key": "a"}],
                "containers": [{
                    "name": "calico-node", "image": "calico", "resources": {"limits": {"cpu": "1"}},
                    "env": [
                        {"name": "PASSWORD", "value": "hidden"},
                        {"name": "KONG_PROXY_LISTEN", "value": "0.0.0.0:8000"},
                        {"name": "KONG_PG_PASSWORD", "value": "hidden"},
                        {"name": "FELIX_BPFENABLED", "value": "true", "valueFrom": {}},
                        "odd",
                    ],
                    "envFrom": [{"secretRef": {"name": "hidden"}}],
                }],
            },
            "status": {"podIP": "10.1.1.10", "qosClass": "Burstable"},
        });
        trim(&mut pod);
        assert_eq!(
            pod,
            json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {
                    "name": "web-0", "namespace": "shop", "resourceVersion": "812",
                    "labels": {"app": "web", "uid": "kept"}, "annotations": {"mine": "kept"},
                },
                "spec": {
                    "nodeName": "n1",
                    "containers": [{
                        "name": "calico-node", "image": "calico", "resources": {},
                        "env": [
                            {"name": "KONG_PROXY_LISTEN", "value": "0.0.0.0:8000"},
                            {"name": "FELIX_BPFENABLED", "value": "true"},
                        ],
                    }],
                },
                "status": {"podIP": "10.1.1.10"},
            })
        );
    }
}
