//! Decides what is kept of an object, and as which text.

use serde_json::{Map, Value};
use uturn_document::edit::Tree;
use uturn_snapshot::LAST_APPLIED;

/// Kinds that people write, and whose texts cures edit.
const WRITTEN: [&str; 4] = ["Service", "Ingress", "ConfigMap", "NetworkPolicy"];
/// Kinds that people write too, but that contain values of environment variables.
const WORKLOADS: [&str; 4] = ["Deployment", "StatefulSet", "DaemonSet", "CronJob"];
/// Kinds that cures do not edit.
const COMPACT: [&str; 28] = [
    "Node",
    "Pod",
    "Endpoints",
    "EndpointSlice",
    "IngressClass",
    "IngressClassParams",
    "GatewayClass",
    "Gateway",
    "HTTPRoute",
    "GRPCRoute",
    "TCPRoute",
    "TLSRoute",
    "ReferenceGrant",
    "Namespace",
    "ValidatingWebhookConfiguration",
    "MutatingWebhookConfiguration",
    "APIService",
    "PersistentVolume",
    "FelixConfiguration",
    "Lease",
    "EnvoyFilter",
    "ClientTrafficPolicy",
    "NginxProxy",
    "ReplicaSet",
    "Job",
    "ReplicationController",
    "HorizontalPodAutoscaler",
    "ScaledObject",
];

/// The purpose that objects are read for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// For an immediate analysis: workloads are kept whole, so that an edited one can be applied.
    Analysis,
    /// For a bundle that is stored: no value of an environment variable is kept.
    Bundle,
}

/// The form in which the objects of a kind are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Each object as complete YAML, so that an edited one can be applied.
    Whole,
    /// Each object on a line, with only the fields that are read.
    Compact,
}

impl Form {
    /// Returns the form of a kind's objects. Kinds of cloud providers count as written by people.
    pub(crate) fn of(kind: &str, purpose: Purpose) -> Self {
        match purpose {
            Purpose::Analysis if WORKLOADS.contains(&kind) => Self::Whole,
            Purpose::Bundle if WORKLOADS.contains(&kind) => Self::Compact,
            _ if WRITTEN.contains(&kind) => Self::Whole,
            _ if COMPACT.contains(&kind) => Self::Compact,
            _ => Self::Whole,
        }
    }
}

/// An object in the form in which it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    /// The name of the object: `shop/front`, or the name alone.
    pub(crate) name: String,
    pub(crate) text: String,
}

/// Converts an object to the text that is kept. A list does not repeat the kind of its objects, so
/// it is given here.
pub(crate) fn keep(object: Value, api_version: &str, kind: &str, form: Form) -> Kept {
    let mut fields = Map::new();
    fields.insert("apiVersion".to_owned(), api_version.into());
    fields.insert("kind".to_owned(), kind.into());
    if let Value::Object(own) = object {
        fields
            .extend(own.into_iter().filter(|(name, _)| !matches!(&**name, "apiVersion" | "kind")));
    }
    let mut object = Value::Object(fields);
    let name = name_of(&object);
    let text = match form {
        Form::Compact => {
            uturn_snapshot::trim(&mut object);
            object.to_string()
        }
        Form::Whole => {
            leave_noise_out(&mut object);
            tree(object).document()
        }
    };
    Kept { name, text }
}

/// Returns the name of an object: `shop/front`, or the name alone.
pub(crate) fn name_of(object: &Value) -> String {
    let meta = |key: &str| object["metadata"][key].as_str().filter(|text| !text.is_empty());
    match (meta("namespace"), meta("name").unwrap_or_default()) {
        (Some(namespace), name) => format!("{namespace}/{name}"),
        (None, name) => name.to_owned(),
    }
}

/// Removes fields that only the API server writes and no decoder reads.
fn leave_noise_out(object: &mut Value) {
    let Some(meta) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    for field in ["managedFields", "selfLink", "uid", "creationTimestamp", "generation"] {
        meta.remove(field);
    }
    if let Some(annotations) = meta.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove(LAST_APPLIED);
        if annotations.is_empty() {
            meta.remove("annotations");
        }
    }
}

fn tree(value: Value) -> Tree {
    match value {
        Value::String(text) => Tree::Text(text),
        Value::Array(items) => Tree::List(items.into_iter().map(tree).collect()),
        Value::Object(entries) => {
            Tree::Map(entries.into_iter().map(|(key, value)| (key, tree(value))).collect())
        }
        other => Tree::bare(other.to_string()),
    }
}

/// Joins compact objects into a List, returned in parts.
pub(crate) fn list_of<'k>(objects: impl IntoIterator<Item = &'k str>) -> Vec<&'k str> {
    let mut parts = vec![r#"{"apiVersion":"v1","kind":"List","items":["#];
    for (at, object) in objects.into_iter().enumerate() {
        parts.push(if at == 0 { "\n" } else { ",\n" });
        parts.push(object);
    }
    parts.push("\n]}\n");
    parts
}

/// Joins whole objects into YAML documents, returned in parts.
pub(crate) fn documents_of<'k>(objects: impl IntoIterator<Item = &'k str>) -> Vec<&'k str> {
    let mut parts = Vec::new();
    for (at, object) in objects.into_iter().enumerate() {
        if at > 0 {
            parts.push("---\n");
        }
        parts.push(object);
    }
    parts
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_is_kept_whole_without_noise() {
        let service = json!({
            "metadata": {
                "name": "front", "namespace": "shop", "uid": "1", "resourceVersion": "812",
                "managedFields": [{}], "annotations": {LAST_APPLIED: "{}"},
            },
            "spec": {"ports": [{"port": 80, "name": "yes"}], "selector": {"app": "front"}},
        });
        let kept = keep(service, "v1", "Service", Form::Whole);
        assert_eq!(kept.name, "shop/front");
        assert_eq!(
            kept.text,
            "apiVersion: v1\nkind: Service\nmetadata:\n  name: front\n  namespace: shop\n  \
             resourceVersion: \"812\"\nspec:\n  ports:\n  - port: 80\n    name: \"yes\"\n  \
             selector:\n    app: front\n"
        );
    }

    #[test]
    fn every_kind_has_a_form() {
        let whole = |purpose| {
            let kinds = uturn_snapshot::kinds().into_iter().map(|known| known.kind);
            kinds.filter(|kind| Form::of(kind, purpose) == Form::Whole).collect::<Vec<_>>()
        };
        let written = [
            "Service",
            "ConfigMap",
            "Ingress",
            "NetworkPolicy",
            "TkeServiceConfig",
            "IPAddressPool",
            "L2Advertisement",
            "BGPAdvertisement",
        ];
        assert_eq!(whole(Purpose::Bundle), written);
        let with_workloads = [
            "Service",
            "ConfigMap",
            "Ingress",
            "NetworkPolicy",
            "Deployment",
            "StatefulSet",
            "DaemonSet",
            "CronJob",
            "TkeServiceConfig",
            "IPAddressPool",
            "L2Advertisement",
            "BGPAdvertisement",
        ];
        assert_eq!(whole(Purpose::Analysis), with_workloads);
    }
}
