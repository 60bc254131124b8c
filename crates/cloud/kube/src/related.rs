//! Relations between Services, Ingresses and other objects, read from their JSON.

use std::collections::BTreeSet;

use serde_json::Value;
use uturn_clouds::cloud::tke::annotations as keys;
use uturn_model::{NamespacedName, ObjectKind, ObjectRef};

use crate::auto;
use crate::cluster;
use crate::kept::Key;
use crate::kinds::{CONFIG, INGRESS, POD, SERVICE, WatchedKind};
use crate::store::{Change, Store};

/// The label of an EndpointSlice with the name of its Service.
const SERVICE_LABEL: &str = "kubernetes.io/service-name";

/// Returns the name of the Service of an EndpointSlice.
pub fn service_of(slice: &Value) -> Option<String> {
    slice["metadata"]["labels"][SERVICE_LABEL].as_str().map(str::to_owned)
}

/// Returns the Services that an Ingress sends to: those in its rules, and those in annotations.
pub fn backends(ingress: &Value) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    collect(&ingress["spec"], &mut names);
    let annotations = ingress["metadata"]["annotations"].as_object();
    for text in annotations.into_iter().flatten().filter_map(|(_, value)| value.as_str()) {
        if text.contains("serviceName") {
            collect(&serde_json::from_str(text).unwrap_or_default(), &mut names);
        }
    }
    names
}

fn collect(value: &Value, names: &mut BTreeSet<String>) {
    match value {
        Value::Object(members) => {
            let of_service = members.get("service").and_then(|service| service["name"].as_str());
            let of_rule = members.get("serviceName").and_then(Value::as_str);
            names.extend(of_service.into_iter().chain(of_rule).map(str::to_owned));
            members.values().for_each(|member| collect(member, names));
        }
        Value::Array(items) => items.iter().for_each(|item| collect(item, names)),
        _ => {}
    }
}

/// Returns the Services and Ingresses of the controllers that a change concerns.
pub fn touched(store: &Store, change: &Change) -> Vec<ObjectRef> {
    let Change { kind, key } = change;
    if *kind == SERVICE.kind {
        let is_served = store.object(&SERVICE, key).is_none_or(is_served);
        let service = object(&SERVICE, key).filter(|_| is_served);
        let ingresses = store.ingresses_of(key).filter_map(|key| object(&INGRESS, key));
        return service.into_iter().chain(ingresses).collect();
    }
    if *kind == INGRESS.kind {
        return object(&INGRESS, key).into_iter().collect();
    }
    if *kind == CONFIG.kind {
        return store.index().users_of_config(key).cloned().collect();
    }
    if *kind == POD.kind {
        return of_pod(store, key);
    }
    store.index().objects().cloned().collect()
}

/// Returns the Services and Ingresses that a pod is an endpoint of.
pub fn of_pod(store: &Store, pod: &Key) -> Vec<ObjectRef> {
    let services = store.services_of_pod(pod).into_iter();
    let changes =
        services.map(|service| Change { kind: SERVICE.kind, key: (pod.0.clone(), service) });
    changes.flat_map(|change| touched(store, &change)).collect()
}

/// Returns whether a change concerns only some objects, not all of them.
pub fn is_own(change: &Change) -> bool {
    [SERVICE.kind, INGRESS.kind, CONFIG.kind, POD.kind].contains(&change.kind)
}

/// Returns all Services and Ingresses.
pub fn all(store: &Store) -> impl Iterator<Item = (ObjectRef, &Value)> {
    [&SERVICE, &INGRESS].into_iter().flat_map(move |kind| {
        store.of(kind).filter_map(|value| Some((of_value(kind, value)?, value)))
    })
}

/// Returns the JSON of a Service or an Ingress.
pub fn live<'s>(store: &'s Store, object: &ObjectRef) -> Option<&'s Value> {
    store.object(kind_of(object), &key_of(object))
}

/// Returns whether an object has a load balancer, had one, or may want one.
pub fn is_served(value: &Value) -> bool {
    value["kind"] == INGRESS.kind
        || value["spec"]["type"] == "LoadBalancer"
        || cluster::is_held(value)
}

/// Returns the configurations that an object names, and the one that the controllers make for it.
pub fn configs(object: &ObjectRef, value: &Value) -> BTreeSet<String> {
    let annotations = &value["metadata"]["annotations"];
    let named = [keys::CONFIG, keys::INGRESS_CONFIG].into_iter();
    let named = named.filter_map(|key| annotations[key].as_str()).map(str::to_owned);
    named.chain([auto::name_of(object)]).collect()
}

/// Returns the kind of an object as the API server has it.
pub fn kind_of(object: &ObjectRef) -> &'static WatchedKind {
    if object.kind == ObjectKind::Ingress { &INGRESS } else { &SERVICE }
}

/// Returns the namespace and the name of an object.
pub fn key_of(object: &ObjectRef) -> Key {
    let namespace = object.namespace.as_ref().map(ToString::to_string);
    (namespace.unwrap_or_default(), object.name.to_string())
}

/// Returns the Service or Ingress with this key.
pub(crate) fn object(kind: &WatchedKind, (namespace, name): &Key) -> Option<ObjectRef> {
    let name = NamespacedName::new(namespace, name).ok()?;
    let kind = if kind == &INGRESS { ObjectKind::Ingress } else { ObjectKind::Service };
    Some(ObjectRef::namespaced(kind, &name))
}

fn of_value(kind: &WatchedKind, value: &Value) -> Option<ObjectRef> {
    let name = cluster::name_of(value)?;
    object(kind, &(name.namespace.to_string(), name.name.to_string()))
}
