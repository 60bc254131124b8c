//! The store as a cluster, and the fields of Services and Ingresses that the cluster model does not
//! have.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};
use uturn_clouds::cloud::tke::annotations as keys;
use uturn_model::{Cluster, NamespacedName, ObjectKind, ObjectRef};
use uturn_operator::environment::{Environment, Status, Unread};
use uturn_snapshot::{Manifests, Source};

use crate::kinds::{CONFIG, INGRESS, NODE, SERVICE, SLICE, WATCHED};
use crate::related;
use crate::store::Store;

/// The finalizer of objects that have a load balancer.
pub const FINALIZER: &str = "service.k8s.tencent/resources";

/// A part of a cluster: some Services and Ingresses as the API server has them, and the objects
/// that they depend on.
#[derive(Clone, Debug, Default)]
pub struct Live {
    /// The part as a cluster, without objects that are being deleted; `None` if it was not read.
    pub cluster: Option<Arc<Cluster>>,
    /// The Services and Ingresses, also those that are being deleted.
    pub objects: BTreeMap<ObjectRef, LiveObject>,
    /// The TkeServiceConfigs of these objects.
    pub configs: BTreeMap<NamespacedName, Value>,
    /// The Services and Ingresses that cannot be read, and why. The cluster does not contain them.
    pub unread: BTreeMap<ObjectRef, String>,
}

impl Live {
    /// Returns the environment of these objects. The ledger of ports and the shares of load
    /// balancers are left empty.
    pub fn environment(&self, cluster: &str, network: &str) -> Environment {
        let of_all = self.objects.iter();
        let text =
            |live: &LiveObject, key: &str| live.value["metadata"][key].as_str().map(str::to_owned);
        let unread = |(object, why): (&ObjectRef, &String)| {
            let existing = self.objects.get(object).map(LiveObject::existing).unwrap_or_default();
            let why = format!("it cannot be read: {why}");
            (object.clone(), Unread { why, existing })
        };
        Environment {
            cluster: cluster.to_owned(),
            network: network.to_owned(),
            uids: of_all
                .clone()
                .filter_map(|(object, live)| Some((object.clone(), live.uid()?.to_owned())))
                .collect(),
            created: of_all
                .clone()
                .filter_map(|(object, live)| {
                    Some((object.clone(), text(live, "creationTimestamp")?))
                })
                .collect(),
            statuses: of_all.map(|(object, live)| (object.clone(), live.status(object))).collect(),
            unread: self.unread.iter().map(unread).collect(),
            ..Environment::default()
        }
    }
}

/// A Service or an Ingress as the API server has it.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveObject {
    /// The object.
    pub value: Value,
}

impl LiveObject {
    /// Returns the UID.
    pub fn uid(&self) -> Option<&str> {
        self.value["metadata"]["uid"].as_str()
    }

    /// Returns whether the object is being deleted.
    pub fn is_deleted(&self) -> bool {
        is_deleted(&self.value)
    }

    /// Returns the finalizers.
    pub fn finalizers(&self) -> Vec<&str> {
        let finalizers = self.value["metadata"]["finalizers"].as_array().into_iter().flatten();
        finalizers.filter_map(Value::as_str).collect()
    }

    /// Returns whether the object has the controllers' finalizer.
    pub fn is_held(&self) -> bool {
        is_held(&self.value)
    }

    /// Returns the value of an annotation.
    pub fn annotation(&self, key: &str) -> Option<&str> {
        annotation(&self.value, key)
    }

    /// Returns the addresses and the load balancer that the object reports.
    fn status(&self, object: &ObjectRef) -> Status {
        let is_service = object.kind == ObjectKind::Service;
        let addresses = self.value["status"]["loadBalancer"]["ingress"].as_array();
        let text = |address: &Value, key: &str| address[key].as_str().map(str::to_owned);
        let addresses = addresses
            .into_iter()
            .flatten()
            .flat_map(|address| ["ip", "hostname"].map(|key| text(address, key)));
        let current = if is_service { keys::CURRENT } else { keys::INGRESS_CURRENT };
        Status {
            addresses: addresses.flatten().collect(),
            balancer: self.annotation(current).map(str::to_owned),
            is_leaving: self.is_deleted()
                || (is_service && self.value["spec"]["type"] != "LoadBalancer"),
        }
    }

    /// Returns the load balancers that the object uses, used, or names.
    pub fn existing(&self) -> BTreeSet<String> {
        existing(&self.value)
    }
}

fn annotation<'v>(value: &'v Value, key: &str) -> Option<&'v str> {
    value["metadata"]["annotations"][key].as_str().filter(|value| !value.is_empty())
}

/// Returns the load balancers that an object uses, used, or names.
pub fn existing(value: &Value) -> BTreeSet<String> {
    let keys = [keys::CURRENT, keys::INGRESS_CURRENT, keys::EXISTING, keys::INGRESS_EXISTING];
    keys.into_iter().filter_map(|key| annotation(value, key)).map(str::to_owned).collect()
}

/// Reads some Services and Ingresses of the store, and the objects that they depend on: their
/// Services, EndpointSlices and TkeServiceConfigs, and all objects of other kinds.
///
/// # Errors
///
/// Returns the reasons why objects cannot be read.
pub fn read(store: &Store, meant: &BTreeSet<ObjectRef>) -> Result<Live, Vec<String>> {
    let mut objects = BTreeMap::new();
    let (mut services, mut ingresses) = (BTreeSet::new(), BTreeSet::new());
    let mut configs = BTreeMap::new();
    for object in meant {
        let Some(value) = related::live(store, object) else { continue };
        let key = related::key_of(object);
        for name in related::configs(object, value) {
            let key = (key.0.clone(), name);
            if let Some(config) = store.object(&CONFIG, &key) {
                configs.extend(name_of(config).map(|name| (name, config.clone())));
            }
        }
        if object.kind == ObjectKind::Ingress {
            let names = store.backends_of(&key);
            services.extend(names.map(|name| (key.0.clone(), name.clone())));
            ingresses.insert(key);
        } else {
            services.insert(key);
        }
        objects.insert(object.clone(), LiveObject { value: value.clone() });
    }
    let is_balanced = |value: &&Value| !is_deleted(value);
    let own = [(&SERVICE, &services), (&INGRESS, &ingresses)].into_iter();
    let own = own.flat_map(|(kind, keys)| keys.iter().filter_map(|key| store.object(kind, key)));
    let slices = services.iter().flat_map(|service| store.slices_of(service));
    let others =
        WATCHED.iter().filter(|kind| ![&SERVICE, &INGRESS, &SLICE, &CONFIG].contains(kind));
    let others = others.flat_map(|kind| store.of(kind));
    let all = own.filter(is_balanced).chain(slices).chain(configs.values()).chain(others);
    let items: Vec<&Value> = all.collect();
    let list = json!({ "apiVersion": "v1", "kind": "List", "items": items });
    let facts = json!({
        "apiVersion": "uturn.dev/v1alpha1", "kind": "Facts", "spec": { "provider": "tke" },
    });
    let source = |name: &str, value: &Value| Source { name: name.into(), text: value.to_string() };
    let sources = vec![source("cluster", &list), source("facts", &facts)];
    let manifests = Manifests::of(sources).complete_if(true);
    let mut cluster = manifests
        .cluster()
        .map_err(|faults| faults.iter().map(ToString::to_string).collect::<Vec<_>>())?;
    // The parser of manifests assumes nodes that other objects mention, and addresses of nodes:
    // only nodes that the store has with an address are kept.
    let known: BTreeSet<&str> = store.of(&NODE).filter_map(name_of_node).collect();
    cluster.nodes.retain(|name, _| known.contains(name.as_str()));
    let unread = BTreeMap::new();
    Ok(Live { cluster: Some(Arc::new(cluster)), objects, configs, unread })
}

/// Returns the name of a node that has an address in the network.
fn name_of_node(node: &Value) -> Option<&str> {
    let mut addresses = node["status"]["addresses"].as_array().into_iter().flatten();
    let name = node["metadata"]["name"].as_str()?;
    addresses.any(|address| address["type"] == "InternalIP").then_some(name)
}

/// Returns the name of an object with a namespace.
pub fn name_of(value: &Value) -> Option<NamespacedName> {
    let text = |key: &str| value["metadata"][key].as_str().unwrap_or_default();
    NamespacedName::new(text("namespace"), text("name")).ok()
}

/// Returns whether an object has the controllers' finalizer.
pub fn is_held(value: &Value) -> bool {
    let finalizers = value["metadata"]["finalizers"].as_array().into_iter().flatten();
    finalizers.filter_map(Value::as_str).any(|finalizer| finalizer == FINALIZER)
}

fn is_deleted(value: &Value) -> bool {
    value["metadata"].get("deletionTimestamp").is_some_and(|time| !time.is_null())
}
