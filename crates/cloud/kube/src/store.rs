//! The objects of a cluster as the watches last reported them, and the changes among them.

use std::collections::{BTreeMap, BTreeSet};

use kube::core::DynamicObject;
use serde_json::Value;

use crate::index::{Index, Left};
use crate::kept::{Key, is_older, is_same, is_same_uid, key, value};
use crate::kinds::{INGRESS, SERVICE, SLICE, WATCHED, WatchedKind};
use crate::related;

/// The objects of a kind by namespace and name.
pub type OfKind = BTreeMap<Key, Value>;

/// The objects of a cluster.
#[derive(Clone, Debug, Default)]
pub struct Store {
    objects: BTreeMap<&'static str, OfKind>,
    listed: BTreeSet<&'static str>,
    /// The EndpointSlices of each Service.
    slices: BTreeMap<Key, BTreeSet<String>>,
    /// The EndpointSlices that each pod is in.
    of_pods: BTreeMap<Key, BTreeSet<String>>,
    /// The Services that each Ingress sends to.
    backends: BTreeMap<Key, BTreeSet<String>>,
    /// The Ingresses that send to each Service.
    senders: BTreeMap<Key, BTreeSet<Key>>,
    index: Index,
    changes: BTreeSet<Change>,
}

/// An object that was changed, added or removed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    /// The kind.
    pub kind: &'static str,
    /// The namespace and the name. For an EndpointSlice, the kind and name are those of its
    /// Service.
    pub key: Key,
}

impl Store {
    /// Returns whether all kinds were listed at least once.
    pub fn is_complete(&self) -> bool {
        WATCHED.iter().all(|kind| self.listed.contains(kind.kind))
    }

    /// Returns the kinds that were not listed yet.
    pub fn missing(&self) -> Vec<&'static str> {
        let missing = WATCHED.iter().filter(|kind| !self.listed.contains(kind.kind));
        missing.map(|kind| kind.kind).collect()
    }

    /// Replaces all objects of a kind.
    pub fn list(&mut self, kind: &'static WatchedKind, objects: Vec<DynamicObject>) {
        let objects: Vec<(Key, Value)> = objects
            .into_iter()
            .filter_map(|object| Some((key(&object), value(kind, object)?)))
            .collect();
        let keys: BTreeSet<&Key> = objects.iter().map(|(key, _)| key).collect();
        let known = self.objects.entry(kind.kind).or_default().keys();
        let gone: Vec<Key> = known.filter(|known| !keys.contains(*known)).cloned().collect();
        for key in gone {
            self.set(kind, key, None);
        }
        for (key, value) in objects {
            self.set(kind, key, Some(value));
        }
        self.listed.insert(kind.kind);
    }

    /// Adds or replaces an object. Returns whether that changed the kept one. An object that is
    /// older than the kept one changes nothing.
    pub fn apply(&mut self, kind: &'static WatchedKind, object: DynamicObject) -> bool {
        let key = key(&object);
        let kept = self.object(kind, &key);
        if kept.is_some_and(|kept| is_same_uid(kept, &object) && is_older(&object, kept)) {
            return false;
        }
        self.set(kind, key, value(kind, object))
    }

    /// Stores an object as it is after a write of the controllers, before a watch reports it, so
    /// that the same content is not written again meanwhile.
    pub fn wrote(&mut self, kind: &'static WatchedKind, written: Value) {
        let Ok(object) = serde_json::from_value::<DynamicObject>(written) else { return };
        let kept = self.object(kind, &key(&object));
        if kept.is_some_and(|kept| is_same_uid(kept, &object)) {
            self.apply(kind, object);
        }
    }

    /// Removes an object. Returns whether it was kept.
    pub fn delete(&mut self, kind: &'static WatchedKind, object: &DynamicObject) -> bool {
        self.set(kind, key(object), None)
    }

    /// Returns the objects of a kind.
    pub fn of(&self, kind: &WatchedKind) -> impl Iterator<Item = &Value> {
        self.objects.get(kind.kind).into_iter().flat_map(|objects| objects.values())
    }

    /// Returns the object with this key.
    pub fn object(&self, kind: &WatchedKind, key: &Key) -> Option<&Value> {
        self.objects.get(kind.kind)?.get(key)
    }

    /// Returns the EndpointSlices of a Service.
    pub fn slices_of(&self, service: &Key) -> impl Iterator<Item = &Value> {
        let names = self.slices.get(service).into_iter().flatten();
        names.filter_map(|name| self.object(&SLICE, &(service.0.clone(), name.clone())))
    }

    /// Returns the Services that an Ingress sends to.
    pub fn backends_of(&self, ingress: &Key) -> impl Iterator<Item = &String> {
        self.backends.get(ingress).into_iter().flatten()
    }

    /// Returns the Ingresses that send to a Service.
    pub fn ingresses_of(&self, service: &Key) -> impl Iterator<Item = &Key> {
        self.senders.get(service).into_iter().flatten()
    }

    /// Returns the Services that a pod is an endpoint of.
    pub fn services_of_pod(&self, pod: &Key) -> BTreeSet<String> {
        let names = self.of_pods.get(pod).into_iter().flatten();
        let slices = names.filter_map(|name| self.object(&SLICE, &(pod.0.clone(), name.clone())));
        slices.filter_map(related::service_of).collect()
    }

    /// Returns the index of the load balancers and configurations that objects have, had or name.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// Returns and resets the references that objects no longer have.
    pub fn take_left(&mut self) -> Left {
        self.index.take_left()
    }

    /// Returns the changes since the last call.
    pub fn take_changes(&mut self) -> BTreeSet<Change> {
        std::mem::take(&mut self.changes)
    }

    fn set(&mut self, kind: &'static WatchedKind, key: Key, after: Option<Value>) -> bool {
        let objects = self.objects.entry(kind.kind).or_default();
        let is_same = match (objects.get(&key), &after) {
            (Some(before), Some(after)) => is_same(before, after),
            (None, None) => true,
            _ => false,
        };
        if kind == &SLICE {
            self.set_slice(key, after, is_same);
            return !is_same;
        }
        let backends = after.as_ref().filter(|_| kind == &INGRESS).map(related::backends);
        let object = related::object(kind, &key).filter(|_| kind == &INGRESS || kind == &SERVICE);
        if let Some(object) = object.filter(|_| !is_same) {
            let others = self.index.set(&object, after.as_ref());
            let others = others.iter().map(|other| Change {
                kind: related::kind_of(other).kind,
                key: related::key_of(other),
            });
            self.changes.extend(others);
        }
        let objects = self.objects.entry(kind.kind).or_default();
        match after {
            Some(after) => drop(objects.insert(key.clone(), after)),
            None => drop(objects.remove(&key)),
        }
        if is_same {
            return false;
        }
        if kind == &INGRESS {
            self.set_backends(&key, backends.unwrap_or_default());
        }
        self.changes.insert(Change { kind: kind.kind, key });
        true
    }

    fn set_backends(&mut self, ingress: &Key, after: BTreeSet<String>) {
        for name in self.backends.remove(ingress).into_iter().flatten() {
            if let Some(senders) = self.senders.get_mut(&(ingress.0.clone(), name)) {
                senders.remove(ingress);
            }
        }
        for name in &after {
            let service = (ingress.0.clone(), name.clone());
            self.senders.entry(service).or_default().insert(ingress.clone());
        }
        self.backends.insert(ingress.clone(), after);
    }

    /// Sets an EndpointSlice, and notes the change as one of its Service.
    fn set_slice(&mut self, key: Key, after: Option<Value>, is_same: bool) {
        let slices = self.objects.entry(SLICE.kind).or_default();
        if let Some(before) = slices.remove(&key).filter(|_| !is_same) {
            for service in services(&key, &before) {
                remove(&mut self.slices, &service, &key.1);
            }
            for pod in pods_of(&key, &before) {
                remove(&mut self.of_pods, &pod, &key.1);
            }
            self.change_services(&key, &before);
        }
        let Some(after) = after else { return };
        if !is_same {
            for service in services(&key, &after) {
                self.slices.entry(service).or_default().insert(key.1.clone());
            }
            for pod in pods_of(&key, &after) {
                self.of_pods.entry(pod).or_default().insert(key.1.clone());
            }
            self.change_services(&key, &after);
        }
        self.objects.entry(SLICE.kind).or_default().insert(key, after);
    }

    fn change_services(&mut self, key: &Key, slice: &Value) {
        let changes = services(key, slice).into_iter();
        self.changes.extend(changes.map(|key| Change { kind: SERVICE.kind, key }));
    }
}

/// Returns the Service of an EndpointSlice.
fn services((namespace, _): &Key, slice: &Value) -> BTreeSet<Key> {
    related::service_of(slice).map(|name| (namespace.clone(), name)).into_iter().collect()
}

/// Returns the pods of an EndpointSlice.
fn pods_of((namespace, _): &Key, slice: &Value) -> BTreeSet<Key> {
    let endpoints = slice["endpoints"].as_array().into_iter().flatten();
    let names = endpoints.filter_map(|endpoint| endpoint["targetRef"]["name"].as_str());
    names.map(|name| (namespace.clone(), name.to_owned())).collect()
}

fn remove(map: &mut BTreeMap<Key, BTreeSet<String>>, key: &Key, name: &str) {
    if let Some(names) = map.get_mut(key) {
        names.remove(name);
        if names.is_empty() {
            map.remove(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::kinds::NODE;

    fn object(value: Value) -> DynamicObject {
        serde_json::from_value(value).unwrap()
    }

    fn node(heartbeat: &str, ready: &str) -> DynamicObject {
        object(json!({ "apiVersion": "v1", "kind": "Node",
            "metadata": { "name": "n1", "resourceVersion": heartbeat },
            "status": { "images": [heartbeat], "conditions": [
                { "type": "Ready", "status": ready, "lastHeartbeatTime": heartbeat }] } }))
    }

    fn slice(service: &str, address: &str) -> DynamicObject {
        object(json!({ "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
            "metadata": { "name": "s1", "namespace": "shop",
                "labels": { "kubernetes.io/service-name": service } },
            "endpoints": [{ "addresses": [address] }] }))
    }

    fn change(kind: &'static str, namespace: &str, name: &str) -> Change {
        Change { kind, key: (namespace.to_owned(), name.to_owned()) }
    }

    #[test]
    fn signs_of_life_are_no_changes() {
        let mut store = Store::default();
        store.apply(&NODE, node("1", "True"));
        assert_eq!(store.take_changes(), [change("Node", "", "n1")].into());
        store.apply(&NODE, node("2", "True"));
        store.list(&NODE, vec![node("3", "True")]);
        assert_eq!(store.take_changes(), [].into());
        store.apply(&NODE, node("4", "Unknown"));
        assert_eq!(store.take_changes(), [change("Node", "", "n1")].into());
        store.list(&NODE, Vec::new());
        assert_eq!(store.take_changes(), [change("Node", "", "n1")].into());
    }

    #[test]
    fn what_was_written_is_kept_until_the_watch_has_caught_up() {
        let service = |uid: &str, version: &str, port: u16| {
            object(json!({ "apiVersion": "v1", "kind": "Service",
                "metadata": { "name": "web", "namespace": "shop", "uid": uid,
                    "resourceVersion": version },
                "spec": { "ports": [{ "port": port }] } }))
        };
        let json = |object: &DynamicObject| serde_json::to_value(object).unwrap();
        let key = ("shop".to_owned(), "web".to_owned());
        let port = |store: &Store| {
            store.object(&SERVICE, &key).map(|found| found["spec"]["ports"][0]["port"].clone())
        };
        let mut store = Store::default();
        // Nothing is kept for an object that is gone.
        store.wrote(&SERVICE, json(&service("a", "9", 9)));
        assert_eq!(port(&store), None);
        store.apply(&SERVICE, service("a", "9", 9));
        store.wrote(&SERVICE, json(&service("a", "11", 11)));
        assert!(!store.apply(&SERVICE, service("a", "10", 10)));
        assert_eq!(port(&store), Some(json!(11)));
        store.wrote(&SERVICE, json(&service("a", "10", 10)));
        assert_eq!(port(&store), Some(json!(11)));
        // Covers another object of that name, and an API server with an older revision.
        store.apply(&SERVICE, service("b", "8", 8));
        store.wrote(&SERVICE, json(&service("a", "12", 12)));
        assert_eq!(port(&store), Some(json!(8)));
        store.list(&SERVICE, vec![service("b", "5", 5)]);
        assert_eq!(port(&store), Some(json!(5)));
    }

    #[test]
    fn a_change_of_an_endpoint_slice_is_one_of_its_service() {
        let mut store = Store::default();
        store.apply(&SLICE, slice("web", "10.1.1.1"));
        let web = ("shop".to_owned(), "web".to_owned());
        assert_eq!(store.take_changes(), [change("Service", "shop", "web")].into());
        assert_eq!(store.slices_of(&web).count(), 1);
        store.apply(&SLICE, slice("api", "10.1.1.1"));
        let both = [change("Service", "shop", "web"), change("Service", "shop", "api")];
        assert_eq!(store.take_changes(), both.into());
        assert_eq!(store.slices_of(&web).count(), 0);
        store.delete(&SLICE, &slice("api", "10.1.1.1"));
        assert_eq!(store.take_changes(), [change("Service", "shop", "api")].into());
    }
}
