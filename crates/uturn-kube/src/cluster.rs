//! The store as a cluster, and what of its Services and Ingresses is the API server's business.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use uturn_lb::cloud::tke::annotations as keys;
use uturn_model::{Cluster, NamespacedName, ObjectKind, ObjectRef};
use uturn_snapshot::{Manifests, Source};

use crate::kinds::{CONFIG, INGRESS, SERVICE, WATCHED};
use crate::store::Store;

/// The finalizer of objects that have a load balancer.
pub const FINALIZER: &str = "service.k8s.tencent/resources";

/// A cluster, and its Services and Ingresses as the API server has them.
#[derive(Clone, Debug)]
pub struct Live {
    /// The cluster, without objects that are being deleted.
    pub cluster: Cluster,
    /// Its Services and Ingresses, also those that are being deleted.
    pub objects: BTreeMap<ObjectRef, LiveObject>,
    /// Its TkeServiceConfigs.
    pub configs: BTreeMap<NamespacedName, Value>,
}

/// A Service or an Ingress as the API server has it.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveObject {
    /// The object.
    pub value: Value,
}

impl LiveObject {
    /// Its UID.
    pub fn uid(&self) -> Option<&str> {
        self.value["metadata"]["uid"].as_str()
    }

    /// Whether it is being deleted.
    pub fn is_deleted(&self) -> bool {
        is_deleted(&self.value)
    }

    /// Its finalizers.
    pub fn finalizers(&self) -> Vec<&str> {
        let finalizers = self.value["metadata"]["finalizers"].as_array().into_iter().flatten();
        finalizers.filter_map(Value::as_str).collect()
    }

    /// Whether it has the controllers' finalizer.
    pub fn is_held(&self) -> bool {
        self.finalizers().contains(&FINALIZER)
    }

    /// The value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.value["metadata"]["annotations"][key].as_str().filter(|value| !value.is_empty())
    }

    /// The load balancers of the user's that it uses or used.
    pub fn existing(&self) -> BTreeSet<String> {
        let keys = [keys::CURRENT, keys::INGRESS_CURRENT, keys::EXISTING, keys::INGRESS_EXISTING];
        keys.into_iter().filter_map(|key| self.annotation(key)).map(str::to_owned).collect()
    }
}

/// Reads the store.
///
/// # Errors
///
/// Returns what of the objects could not be read.
pub fn read(store: &Store) -> Result<Live, Vec<String>> {
    let mut objects = BTreeMap::new();
    for (watched, kind) in [(&SERVICE, ObjectKind::Service), (&INGRESS, ObjectKind::Ingress)] {
        for value in store.of(watched) {
            if let Some(name) = name(value) {
                let object = LiveObject { value: value.clone() };
                objects.insert(ObjectRef::namespaced(kind, &name), object);
            }
        }
    }
    let configs = store.of(&CONFIG).filter_map(|value| Some((name(value)?, value.clone())));
    let configs = configs.collect();
    let is_balanced = |value: &&Value| {
        !(is_deleted(value) && [SERVICE.kind, INGRESS.kind].contains(&kind_of(value)))
    };
    let live = WATCHED.iter().flat_map(|kind| store.of(kind)).filter(is_balanced);
    let items: Vec<&Value> = live.collect();
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": items });
    let facts = json!({
        "apiVersion": "uturn.dev/v1alpha1", "kind": "Facts", "spec": { "provider": "tke" },
    });
    let source = |name: &str, value: &Value| Source { name: name.into(), text: value.to_string() };
    let sources = vec![source("cluster", &list), source("facts", &facts)];
    let manifests = Manifests::of(sources).complete_if(true);
    let cluster = manifests
        .cluster()
        .map_err(|faults| faults.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    Ok(Live { cluster, objects, configs })
}

fn name(value: &Value) -> Option<NamespacedName> {
    let text = |key: &str| value["metadata"][key].as_str().unwrap_or_default();
    NamespacedName::new(text("namespace"), text("name")).ok()
}

fn kind_of(value: &Value) -> &str {
    value["kind"].as_str().unwrap_or_default()
}

fn is_deleted(value: &Value) -> bool {
    value["metadata"].get("deletionTimestamp").is_some_and(|time| !time.is_null())
}
