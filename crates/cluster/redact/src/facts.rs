//! Redacts Facts, in which users state what manifests cannot.

use serde_json::{Map, Value};

use crate::names::Names;
use crate::node::chains::Chains;
use crate::node::iptables;
use crate::objects::value;
use crate::settings::{FIELDS, setting, values, version};
use crate::text::{HOSTS, NAMES, Vocabulary, redact};

/// Redacts a Facts document. Its metadata is removed.
pub(crate) fn facts(document: Value, names: &mut Names) -> Value {
    let Value::Object(entries) = document else { return Value::Null };
    let kept = entries.into_iter().filter(|(key, _)| key != "metadata");
    let entry = |(key, value): (String, Value)| match &*key {
        "apiVersion" | "kind" => (key, value),
        _ => {
            let value = spec("spec", value, names);
            (key, value)
        }
    };
    Value::Object(kept.map(entry).collect::<Map<_, _>>())
}

fn spec(field: &str, of: Value, names: &mut Names) -> Value {
    match of {
        Value::Object(entries) => {
            // Labels, whose values are names too.
            if field == "nodeLabels" {
                return value("labels", Value::Object(entries), names);
            }
            let has_names = matches!(field, "nodes" | "securityGroups" | "outside");
            let entry = |(key, value): (String, Value)| {
                let is_field = !has_names && FIELDS.contains(&*key);
                let inner = if is_field { key.clone() } else { String::new() };
                let value = spec(&inner, value, names);
                let key = match is_field {
                    true => key,
                    false if field == "outside" => redact(&key, names, HOSTS),
                    false => redact(&key, names, NAMES),
                };
                (key, value)
            };
            Value::Object(entries.into_iter().map(entry).collect::<Map<_, _>>())
        }
        Value::Array(items) => items.into_iter().map(|item| spec(field, item, names)).collect(),
        Value::String(text) => match field {
            "iptables" => iptables::redact_rules(&text, names, &Chains::default()).into(),
            "bridgeInterface" | "interfaceNamePrefix" => setting(field, &text, names).into(),
            "version" => version(&text, names).into(),
            "name" | "securityGroups" | "unprogrammed" | "kubeProxyName" | "zone" => {
                redact(&text, names, NAMES).into()
            }
            // A name of a node, or `all`.
            "nodes" if text != "all" => redact(&text, names, NAMES).into(),
            "domain" | "hostname" | "searches" => redact(&text, names, HOSTS).into(),
            "protocol" => {
                let words = Vocabulary { ignores_case: true, ..values() };
                redact(&text, names, words).into()
            }
            // One of a few words of uturn itself.
            "product" | "delivery" => text.into(),
            _ => redact(&text, names, values()).into(),
        },
        plain => plain,
    }
}
