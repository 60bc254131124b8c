//! TkeServiceConfigs that the controllers make: a segment for each listener and rule. The settings
//! that users write into a segment are kept; segments of removed listeners and rules are removed.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use uturn_clouds::cloud::tke::annotations as keys;
use uturn_model::lb::Layer;
use uturn_model::{ObjectKind, ObjectRef, Protocol};
use uturn_operator::clb::{Listener, ListenerKey};

use crate::cluster::LiveObject;
use crate::kinds::{CONFIG, WatchedKind};

/// The lists of listeners.
const LISTS: [(&str, Layer); 2] = [("l4Listeners", Layer::L4), ("l7Listeners", Layer::L7)];
/// The domain in users' settings for all domains without their own.
const ANY_DOMAIN: &str = "*";

/// Returns the name of an object's configuration, if the object asks the controllers to make it.
pub fn name(object: &ObjectRef, live: &LiveObject) -> Option<String> {
    let key = match object.kind {
        ObjectKind::Ingress => keys::INGRESS_CONFIG_AUTO,
        _ => keys::CONFIG_AUTO,
    };
    (live.annotation(key) == Some("true")).then(|| name_of(object))
}

/// Returns the name for an object's configuration that the controllers make.
pub fn name_of(object: &ObjectRef) -> String {
    let ending = match object.kind {
        ObjectKind::Ingress => "-auto-ingress-config",
        _ => "-auto-service-config",
    };
    format!("{}{ending}", object.name)
}

/// Returns a new configuration, which is deleted with its object.
pub fn created(
    name: &str,
    object: &ObjectRef,
    kind: &WatchedKind,
    live: &LiveObject,
    listeners: &BTreeMap<ListenerKey, &Listener>,
) -> Value {
    json!({
        "apiVersion": CONFIG.api_version(),
        "kind": CONFIG.kind,
        "metadata": {
            "name": name,
            "namespace": object.namespace.as_ref().map(ToString::to_string),
            "ownerReferences": [{
                "apiVersion": kind.api_version(),
                "kind": kind.kind,
                "name": object.name.to_string(),
                "uid": live.uid(),
            }],
        },
        "spec": { "loadBalancer": Value::Object(lists(&Value::Null, listeners)) },
    })
}

/// Returns the patch of an existing configuration; `None` if nothing changes.
pub fn changed(there: &Value, listeners: &BTreeMap<ListenerKey, &Listener>) -> Option<Value> {
    let before = &there["spec"]["loadBalancer"];
    let lists = lists(before, listeners);
    let is_same = LISTS
        .iter()
        .all(|(list, _)| items(before, list).eq(lists[*list].as_array().into_iter().flatten()));
    let version = &there["metadata"]["resourceVersion"];
    (!is_same).then(
        || json!({ "metadata": { "resourceVersion": version }, "spec": { "loadBalancer": lists } }),
    )
}

fn items<'v>(of: &'v Value, list: &str) -> impl Iterator<Item = &'v Value> {
    of[list].as_array().into_iter().flatten()
}

/// Returns both lists of listeners.
fn lists(before: &Value, listeners: &BTreeMap<ListenerKey, &Listener>) -> Map<String, Value> {
    let list = |(name, layer): (&str, Layer)| {
        let own = listeners.iter().filter(|(_, listener)| listener.protocol.layer() == layer);
        let segments = own.map(|(key, listener)| {
            let there = items(before, name).find(|segment| is_of(segment, *key));
            segment(there, *key, listener)
        });
        (name.to_owned(), Value::Array(segments.collect()))
    };
    LISTS.into_iter().map(list).collect()
}

fn is_of(segment: &Value, key: ListenerKey) -> bool {
    let is_udp = segment["protocol"] == "UDP";
    segment["port"] == key.port && is_udp == (key.transport == Protocol::Udp)
}

fn segment(there: Option<&Value>, key: ListenerKey, listener: &Listener) -> Value {
    let is_l4 = listener.protocol.layer() == Layer::L4;
    // TCP_SSL is in the layer 4 list, which states transports.
    let protocol = if is_l4 { key.transport.to_string() } else { listener.protocol.to_string() };
    let mut segment =
        there.cloned().unwrap_or_else(|| json!({ "protocol": protocol, "port": key.port }));
    if is_l4 {
        return segment;
    }
    let mut domains: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for rule in listener.rules.keys() {
        let url = rule.url.strip_prefix('=').unwrap_or(&rule.url);
        domains.entry(&rule.domain).or_default().insert(url);
    }
    let before = segment["domains"].take();
    let before = || before.as_array().into_iter().flatten();
    // Users' settings for all domains stay as they are.
    let mut after: Vec<Value> =
        before().filter(|domain| domain["domain"] == ANY_DOMAIN).cloned().collect();
    for (name, urls) in domains {
        let found = before().find(|domain| domain["domain"].as_str().unwrap_or_default() == name);
        let mut domain = found.cloned().unwrap_or_else(|| json!({ "domain": name }));
        let rules = domain["rules"].take();
        let rule = |url: &&str| {
            let found = rules.as_array().into_iter().flatten().find(|rule| rule["url"] == **url);
            found.cloned().unwrap_or_else(|| json!({ "url": url }))
        };
        domain["rules"] = urls.iter().map(rule).collect();
        after.push(domain);
    }
    segment["domains"] = Value::Array(after);
    segment
}
