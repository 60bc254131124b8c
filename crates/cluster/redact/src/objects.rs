//! Redacts objects of Kubernetes, field by field.
//!
//! Fields that no decoder reads are removed first. In the others, numbers and switches are kept,
//! and every text goes through [`redact`]: a word of Kubernetes itself (`ClusterIP`, `kube-proxy`)
//! is known there, all others are replaced. Fields that need more than that are handled here.

use std::collections::HashSet;
use std::sync::LazyLock;

use serde_json::{Map, Value};
use uturn_clouds::cloud;
use uturn_snapshot::{kinds, trim};

use crate::annotations;
use crate::config_maps;
use crate::names::Names;
use crate::settings;
use crate::text::{HOSTS, NAMES, PROTOCOLS, redact};

/// The kinds that are read.
static READ: LazyLock<HashSet<&'static str>> =
    LazyLock::new(|| kinds().into_iter().map(|read| read.kind).collect());

/// The result of redacting an object.
pub(crate) enum Redacted {
    /// An object for the bundle.
    Object(Value),
    /// An object of which only the existence is needed.
    Stub(Value),
    /// An object that cannot be redacted with certainty, by its description.
    LeftOut(String),
}

/// Redacts an object.
pub(crate) fn object(mut object: Value, names: &mut Names) -> Redacted {
    let kind = text_of(&object, "kind").to_owned();
    names.note_object(text_of(&object["metadata"], "name"));
    names.note_object(text_of(&object["metadata"], "namespace"));
    let version = text_of(&object, "apiVersion").to_owned();
    if kind == "ConfigMap" {
        return config_maps::config_map(&object, names);
    }
    trim(&mut object);
    let is_read = READ.contains(&*kind);
    let makes_pods = object["spec"]["template"]["spec"]["containers"].is_array()
        || object["spec"]["workloadRef"].is_object();
    let is_converted =
        kind == "CustomResourceDefinition" && object["spec"]["conversion"].is_object();
    if is_converted {
        return Redacted::Object(value("", object, names));
    }
    if !is_read && !makes_pods {
        return Redacted::Stub(stub(&version, &kind, names));
    }
    if !is_read {
        keep_workload(&mut object);
    }
    let parameters = class_parameters(&kind, &mut object, names);
    let mut redacted = value("", object, names);
    if let (Some(parameters), Some(object)) = (parameters, redacted.as_object_mut()) {
        object.insert("spec".to_owned(), parameters);
    }
    Redacted::Object(redacted)
}

/// Removes from an object of an unknown kind everything that does not describe the pods that it
/// makes.
fn keep_workload(object: &mut Value) {
    const TOP: [&str; 4] = ["apiVersion", "kind", "metadata", "spec"];
    const SPEC: [&str; 4] = ["replicas", "selector", "template", "workloadRef"];
    let Some(fields) = object.as_object_mut() else { return };
    fields.retain(|field, _| TOP.contains(&&**field));
    let Some(spec) = fields.get_mut("spec").and_then(Value::as_object_mut) else { return };
    spec.retain(|field, _| SPEC.contains(&&**field));
    if let Some(selector) = spec.get_mut("selector").and_then(Value::as_object_mut) {
        selector.retain(|field, of| {
            of.is_string() || matches!(&**field, "matchLabels" | "matchExpressions")
        });
    }
}

/// Removes and redacts the `spec` of an object that a class of Ingresses may name as its
/// parameters: each field corresponds to an annotation, and has the words of that annotation's
/// value.
fn class_parameters(kind: &str, object: &mut Value, names: &mut Names) -> Option<Value> {
    let known = cloud::class_parameters(kind)?;
    let Some(Value::Object(spec)) = object.as_object_mut()?.remove("spec") else { return None };
    let field = |(field, of): (String, Value)| {
        let annotation = known.fields.iter().find(|(own, _)| *own == field);
        let of = match annotation {
            Some((_, annotation)) => annotations::standing_for(annotation, of, names),
            None => value(&field, of, names),
        };
        (field, of)
    };
    Some(Value::Object(spec.into_iter().map(field).collect()))
}

/// Returns an object that only states the existence of one of its kind.
pub(crate) fn stub(version: &str, kind: &str, names: &mut Names) -> Value {
    let (version, kind) = (redact(version, names, NAMES), redact(kind, names, NAMES));
    serde_json::json!({"apiVersion": version, "kind": kind})
}

pub(crate) fn text_of<'v>(object: &'v Value, key: &str) -> &'v str {
    object[key].as_str().unwrap_or_default()
}

/// Returns whether a text is a time as the API server writes it.
fn is_time(text: &str) -> bool {
    text.len() == 20 && text.bytes().all(|byte| byte.is_ascii_digit() || b"-T:Z".contains(&byte))
}

/// Redacts the value of a field.
pub(crate) fn value(field: &str, of: Value, names: &mut Names) -> Value {
    match (field, of) {
        ("annotations", Value::Object(entries)) => annotations::redact_all(entries, names).into(),
        (
            "labels" | "matchLabels" | "nodeSelector" | "selector" | "topology",
            Value::Object(entries),
        ) if entries.values().all(|value| !value.is_object() && !value.is_array()) => {
            let entry = |(key, value): (String, Value)| {
                (redact(&key, names, NAMES), self::value("", value, names))
            };
            Value::Object(entries.into_iter().map(entry).collect())
        }
        ("command" | "args", Value::Array(words)) => settings::arguments(&words, names).into(),
        (_, Value::Object(entries)) => {
            let kept = entries.into_iter().filter(|(key, _)| key != "resourceVersion");
            kept.map(|(key, value)| {
                let value = self::value(&key, value, names);
                (key, value)
            })
            .collect::<Map<_, _>>()
            .into()
        }
        (_, Value::Array(items)) => {
            items.into_iter().map(|item| value(field, item, names)).collect()
        }
        ("image", Value::String(text)) => settings::image(&text, names).into(),
        ("kubeProxyVersion" | "kubeletVersion" | "kernelVersion", Value::String(text)) => {
            settings::version(&text, names).into()
        }
        ("deletionTimestamp", Value::String(_)) => "1970-01-01T00:00:00Z".into(),
        // Only routes keep this time, which determines their order.
        ("creationTimestamp", Value::String(text)) if is_time(&text) => text.into(),
        (
            "host" | "hosts" | "hostname" | "hostnames" | "domain" | "externalName" | "searches"
            | "httpCheckDomain" | "server" | "targetPortal",
            Value::String(text),
        ) => redact(&text, names, HOSTS).into(),
        ("protocol" | "scheme", Value::String(text)) => redact(&text, names, PROTOCOLS).into(),
        (_, Value::String(text)) => redact(&text, names, NAMES).into(),
        (_, plain) => plain,
    }
}
