//! An API server in memory: lists, watches, patches, creates and replaces as the real one does,
//! and answers with the same statuses.

mod answer;
pub(crate) mod listen;
mod patch;
mod target;
mod watches;

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use http::Request;
use k8s_openapi::ByteString;
use kube::client::Body;
use kube::{Client, core::DynamicObject};
use serde_json::{Value, json};
use tokio::sync::watch;
use uturn_kube::kinds::WatchedKind;

#[derive(Debug, Default)]
struct State {
    objects: BTreeMap<(String, String, String), Value>,
    version: u64,
    /// What happened to each resource: versions, and events as watches send them.
    history: BTreeMap<String, Vec<(u64, Bytes)>>,
    /// Watches from before this version are refused.
    floor: u64,
    used: BTreeSet<(String, String, String)>,
    forbidden: BTreeSet<(String, String)>,
    writes: usize,
    /// The write, counted from 0, from which on every request fails.
    stop: Option<usize>,
    /// Whether no request is answered.
    is_gone: bool,
    /// Whether requests are answered with 429.
    is_busy: bool,
    /// Counts starts: watches of earlier ones end.
    starts: usize,
}

/// The objects at a time.
#[derive(Clone, Debug)]
pub(crate) struct Backup {
    objects: BTreeMap<(String, String, String), Value>,
    version: u64,
}

/// The server.
#[derive(Clone, Debug)]
pub(crate) struct Server {
    state: Arc<Mutex<State>>,
    changed: watch::Sender<u64>,
}

impl Server {
    pub(crate) fn new() -> Self {
        Self { state: Arc::default(), changed: watch::channel(0).0 }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    pub(crate) fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move { Ok::<_, Infallible>(server.answer(request).await) }
        });
        Client::new(service, "default")
    }

    /// Creates or replaces an object as a user does.
    pub(crate) fn apply(&self, plural: &str, mut object: Value) {
        let text = |key: &str| object["metadata"][key].as_str().unwrap_or_default().to_owned();
        let key = (plural.to_owned(), text("namespace"), text("name"));
        if object["metadata"].get("uid").is_none() {
            object["metadata"]["uid"] = format!("uid-{}-{}", key.0, key.2).into();
        }
        self.put(key, object);
    }

    /// Creates or replaces a Secret with the id of a certificate.
    pub(crate) fn apply_certificate(&self, namespace: &str, name: &str, id: &str) {
        self.apply(
            "secrets",
            json!({ "apiVersion": "v1", "kind": "Secret",
                "metadata": { "name": name, "namespace": namespace },
                "data": { "qcloud_cert_id": ByteString(id.into()) } }),
        );
    }

    /// Changes an object as a user does.
    pub(crate) fn edit(&self, plural: &str, name: &str, edit: impl FnOnce(&mut Value)) {
        self.edit_in(plural, "shop", name, edit);
    }

    /// Changes an object of a namespace.
    pub(crate) fn edit_in(
        &self,
        plural: &str,
        namespace: &str,
        name: &str,
        edit: impl FnOnce(&mut Value),
    ) {
        let key = (plural.to_owned(), namespace.to_owned(), name.to_owned());
        let mut object = self.state().objects[&key].clone();
        edit(&mut object);
        self.put(key, object);
    }

    /// Changes an object without a namespace.
    pub(crate) fn edit_global(&self, plural: &str, name: &str, edit: impl FnOnce(&mut Value)) {
        let key = (plural.to_owned(), String::new(), name.to_owned());
        let mut object = self.state().objects[&key].clone();
        edit(&mut object);
        self.put(key, object);
    }

    /// Deletes an object as a user does: one with finalizers stays until they are gone.
    pub(crate) fn delete(&self, plural: &str, name: &str) {
        self.delete_in(plural, "shop", name);
    }

    /// Deletes an object of a namespace.
    pub(crate) fn delete_in(&self, plural: &str, namespace: &str, name: &str) {
        self.edit_in(plural, namespace, name, |object| {
            object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        });
    }

    /// Removes all objects of a resource.
    pub(crate) fn remove_all(&self, plural: &str) {
        self.state().objects.retain(|(of, _, _), _| of != plural);
    }

    /// Removes an object, if it is still there, as if it had no finalizers.
    pub(crate) fn remove(&self, plural: &str, namespace: &str, name: &str) {
        let key = (plural.to_owned(), namespace.to_owned(), name.to_owned());
        self.state().objects.remove(&key);
    }

    /// An object.
    pub(crate) fn object(&self, plural: &str, name: &str) -> Option<Value> {
        self.object_in(plural, "shop", name)
    }

    /// An object of a namespace.
    pub(crate) fn object_in(&self, plural: &str, namespace: &str, name: &str) -> Option<Value> {
        let key = (plural.to_owned(), namespace.to_owned(), name.to_owned());
        self.state().objects.get(&key).cloned()
    }

    /// All objects of a resource.
    pub(crate) fn objects(&self, plural: &str) -> Vec<Value> {
        let state = self.state();
        let first = (plural.to_owned(), String::new(), String::new());
        let own = state.objects.range(first..).take_while(|((of, _, _), _)| of == plural);
        own.map(|(_, object)| object.clone()).collect()
    }

    /// As a watch has them.
    pub(crate) fn listed(&self, kind: &WatchedKind) -> Vec<DynamicObject> {
        let objects = self.objects(kind.plural).into_iter();
        objects.map(|object| serde_json::from_value(object).unwrap()).collect()
    }

    /// What was asked: verb, group and resource.
    pub(crate) fn used(&self) -> BTreeSet<(String, String, String)> {
        self.state().used.clone()
    }

    /// Takes rights away: verbs and resources.
    pub(crate) fn forbid(&self, verb: &str, resource: &str) {
        self.state().forbidden.insert((verb.to_owned(), resource.to_owned()));
    }

    pub(crate) fn allow_all(&self) {
        self.state().forbidden.clear();
    }

    /// Fails from a write on, counted from now.
    pub(crate) fn stop_at(&self, write: Option<usize>) {
        let mut state = self.state();
        (state.stop, state.writes) = (write, 0);
    }

    /// How many writes there were since the last call of [`Self::stop_at`].
    pub(crate) fn writes(&self) -> usize {
        self.state().writes
    }

    /// Answers no request, and ends all watches.
    pub(crate) fn go(&self) {
        let mut state = self.state();
        (state.is_gone, state.starts) = (true, state.starts + 1);
        drop(state);
        self.changed.send_modify(|_| {});
    }

    /// Answers again.
    pub(crate) fn come_back(&self) {
        self.state().is_gone = false;
    }

    /// Answers requests with 429, or no longer.
    pub(crate) fn refuse(&self, is_busy: bool) {
        self.state().is_busy = is_busy;
    }

    /// The objects as they are now.
    pub(crate) fn backup(&self) -> Backup {
        let state = self.state();
        Backup { objects: state.objects.clone(), version: state.version }
    }

    /// Starts anew with the objects of a backup, and with its older version.
    pub(crate) fn restore(&self, backup: &Backup) {
        let mut state = self.state();
        state.objects.clone_from(&backup.objects);
        state.version = backup.version;
        state.floor = backup.version;
        state.starts += 1;
        state.history.clear();
        drop(state);
        self.changed.send_modify(|_| {});
    }

    /// Forgets what happened until now, so that watches expire.
    pub(crate) fn forget(&self) {
        let mut state = self.state();
        state.floor = state.version + 1;
        state.version += 1;
        state.history.clear();
        let version = state.version;
        drop(state);
        self.changed.send_replace(version);
    }

    /// Stores an object, and returns it as it is stored: with its new version.
    fn put(&self, key: (String, String, String), mut object: Value) -> Value {
        let mut state = self.state();
        state.version += 1;
        let version = state.version;
        object["metadata"]["resourceVersion"] = version.to_string().into();
        let metadata = &object["metadata"];
        let is_gone = metadata.get("deletionTimestamp").is_some_and(|time| !time.is_null())
            && metadata["finalizers"].as_array().is_none_or(Vec::is_empty);
        let word = match (is_gone, state.objects.contains_key(&key)) {
            (true, _) => "DELETED",
            (false, true) => "MODIFIED",
            (false, false) => "ADDED",
        };
        let event = json!({ "type": word, "object": object });
        let history = state.history.entry(key.0.clone()).or_default();
        history.push((version, watches::line(&event)));
        if is_gone {
            drop(state.objects.remove(&key));
        } else {
            drop(state.objects.insert(key, object.clone()));
        }
        drop(state);
        self.changed.send_replace(version);
        object
    }
}
