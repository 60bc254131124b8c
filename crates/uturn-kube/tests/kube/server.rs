//! An API server in memory: lists, watches, patches, creates and replaces as the real one does,
//! and answers with the same statuses.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use kube::client::Body;
use kube::{Client, core::DynamicObject};
use serde_json::{Value, json};
use tokio::sync::watch;
use uturn_kube::kinds::WatchedKind;

type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// A resource, and perhaps one object of it.
#[derive(Clone, Debug)]
struct Target {
    group: String,
    plural: String,
    namespace: String,
    name: Option<String>,
    is_status: bool,
}

#[derive(Debug, Default)]
struct State {
    objects: BTreeMap<(String, String, String), Value>,
    version: u64,
    /// What happened: version, resource and event.
    history: Vec<(u64, String, Value)>,
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

    /// Changes an object as a user does.
    pub(crate) fn edit(&self, plural: &str, name: &str, edit: impl FnOnce(&mut Value)) {
        let key = (plural.to_owned(), "shop".to_owned(), name.to_owned());
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
        self.edit(plural, name, |object| {
            object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        });
    }

    /// An object.
    pub(crate) fn object(&self, plural: &str, name: &str) -> Option<Value> {
        let key = (plural.to_owned(), "shop".to_owned(), name.to_owned());
        self.state().objects.get(&key).cloned()
    }

    /// All objects of a resource.
    pub(crate) fn objects(&self, plural: &str) -> Vec<Value> {
        let state = self.state();
        let own = state.objects.iter().filter(|((of, _, _), _)| of == plural);
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
        state.history.push((version, key.0.clone(), event));
        match is_gone {
            true => drop(state.objects.remove(&key)),
            false => drop(state.objects.insert(key, object.clone())),
        }
        drop(state);
        self.changed.send_replace(version);
        object
    }

    async fn answer(&self, request: Request<Body>) -> Answer {
        let (parts, body) = request.into_parts();
        let target = target(parts.uri.path());
        let query = parts.uri.query().unwrap_or_default().to_owned();
        let body = body.collect().await.unwrap().to_bytes();
        let verb = match (&parts.method, &target.name) {
            (&Method::GET, _) if query.contains("watch=true") => "watch",
            (&Method::GET, None) => "list",
            (&Method::GET, Some(_)) => "get",
            (&Method::PATCH, _) => "patch",
            (&Method::POST, _) => "create",
            (&Method::PUT, _) => "update",
            _ => "other",
        };
        let status = if target.is_status { "/status" } else { "" };
        let resource = format!("{}{status}", target.plural);
        let is_write = ["patch", "create", "update"].contains(&verb);
        {
            let mut state = self.state();
            if state.is_gone {
                return failure(StatusCode::BAD_GATEWAY, "BadGateway");
            }
            state.used.insert((verb.to_owned(), target.group.clone(), resource.clone()));
            if state.is_busy {
                return failure(StatusCode::TOO_MANY_REQUESTS, "TooManyRequests");
            }
            if state.forbidden.contains(&(verb.to_owned(), resource.clone())) {
                return forbidden(verb, &resource, &target);
            }
            if is_write && state.stop.is_some_and(|stop| state.writes >= stop) {
                return failure(StatusCode::INTERNAL_SERVER_ERROR, "InternalError");
            }
            state.writes += usize::from(is_write);
        }
        if verb == "watch" {
            return self.watch(&target, &query);
        }
        let content = parts.headers.get("content-type");
        let is_strategic = content.is_some_and(|content| {
            content.as_bytes().starts_with(b"application/strategic-merge-patch")
        });
        let value = || serde_json::from_slice::<Value>(&body).unwrap();
        match verb {
            "list" => {
                let version = self.state().version.to_string();
                let items = self.objects(&target.plural);
                success(&json!({ "kind": "List", "apiVersion": "v1",
                    "metadata": { "resourceVersion": version }, "items": items }))
            }
            "get" => match self.state().objects.get(&target.key()) {
                Some(object) => success(object),
                None => failure(StatusCode::NOT_FOUND, "NotFound"),
            },
            "patch" => self.patch(&target, &value(), is_strategic),
            "create" => self.create(&target, value()),
            "update" => self.update(&target, value()),
            _ => failure(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed"),
        }
    }

    fn patch(&self, target: &Target, patch: &Value, is_strategic: bool) -> Answer {
        let key = target.key();
        let Some(before) = self.state().objects.get(&key).cloned() else {
            return failure(StatusCode::NOT_FOUND, "NotFound");
        };
        if patch.get("metadata").is_some_and(Value::is_null) {
            // It would take the object's name.
            return failure(StatusCode::BAD_REQUEST, "BadRequest");
        }
        let stated = &patch["metadata"]["resourceVersion"];
        if !stated.is_null() && *stated != before["metadata"]["resourceVersion"] {
            return failure(StatusCode::CONFLICT, "Conflict");
        }
        let mut after = before.clone();
        let mut patch = patch.clone();
        if is_strategic {
            keep_conditions(&before["status"], &mut patch["status"]);
        }
        match target.is_status {
            true => merge(&mut after["status"], &patch["status"]),
            false => {
                patch.as_object_mut().unwrap().remove("status");
                merge(&mut after, &patch);
            }
        }
        if after == before {
            return success(&before);
        }
        let after = self.put(key, after);
        success(&after)
    }

    fn create(&self, target: &Target, mut object: Value) -> Answer {
        if let Some(prefix) = object["metadata"]["generateName"].as_str() {
            object["metadata"]["name"] = format!("{prefix}{}", self.state().version).into();
        }
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        let key = Target { name: Some(name), ..target.clone() }.key();
        if self.state().objects.contains_key(&key) {
            return failure(StatusCode::CONFLICT, "AlreadyExists");
        }
        success(&self.put(key, object))
    }

    fn update(&self, target: &Target, object: Value) -> Answer {
        let key = target.key();
        let Some(before) = self.state().objects.get(&key).cloned() else {
            return failure(StatusCode::NOT_FOUND, "NotFound");
        };
        if object["metadata"]["resourceVersion"] != before["metadata"]["resourceVersion"] {
            return failure(StatusCode::CONFLICT, "Conflict");
        }
        success(&self.put(key, object))
    }

    fn watch(&self, target: &Target, query: &str) -> Answer {
        let from = query.split('&').find_map(|pair| pair.strip_prefix("resourceVersion="));
        let from: u64 = from.unwrap_or_default().parse().unwrap_or_default();
        let (server, plural) = (self.clone(), target.plural.clone());
        let changed = self.changed.subscribe();
        let start = self.state().starts;
        let events = futures_util::stream::unfold(
            (server, plural, from, changed, false),
            move |(server, plural, from, mut changed, is_over)| async move {
                loop {
                    if is_over {
                        return None;
                    }
                    let (found, is_expired) = {
                        let state = server.state();
                        if state.starts != start {
                            return None;
                        }
                        let first = state.history.partition_point(|(version, ..)| *version <= from);
                        let mut later = state.history[first..].iter();
                        let next = later.find(|(_, of, _)| *of == plural);
                        let next = next.map(|(version, _, event)| (*version, event.clone()));
                        (next, from < state.floor || from > state.version)
                    };
                    if is_expired {
                        let gone = json!({ "type": "ERROR", "object": { "kind": "Status",
                            "apiVersion": "v1", "metadata": {}, "status": "Failure",
                            "reason": "Expired", "code": 410, "message": "too old" } });
                        return Some((line(&gone), (server, plural, from, changed, true)));
                    }
                    if let Some((version, event)) = found {
                        return Some((line(&event), (server, plural, version, changed, false)));
                    }
                    changed.changed().await.ok()?;
                }
            },
        );
        Response::new(StreamBody::new(events).boxed_unsync())
    }
}

impl Target {
    fn key(&self) -> (String, String, String) {
        (self.plural.clone(), self.namespace.clone(), self.name.clone().unwrap_or_default())
    }
}

fn line(event: &Value) -> Result<http_body::Frame<Bytes>, Infallible> {
    Ok(http_body::Frame::data(Bytes::from(format!("{event}\n"))))
}

fn target(path: &str) -> Target {
    let mut words: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let group = match words.remove(0) {
        "api" => String::new(),
        _ => words.remove(0).to_owned(),
    };
    words.remove(0);
    let namespace = match words.first() {
        Some(&"namespaces") => {
            let namespace = words[1].to_owned();
            words.drain(..2);
            namespace
        }
        _ => String::new(),
    };
    Target {
        group,
        plural: words[0].to_owned(),
        namespace,
        name: words.get(1).map(|name| (*name).to_owned()),
        is_status: words.get(2) == Some(&"status"),
    }
}

fn success(value: &Value) -> Answer {
    Response::new(Full::from(value.to_string()).boxed_unsync())
}

/// As the real server says it.
fn forbidden(verb: &str, resource: &str, target: &Target) -> Answer {
    let Target { group, plural, namespace, .. } = target;
    let name = target.name.as_ref().map(|name| format!(" \"{name}\"")).unwrap_or_default();
    let scope = match namespace.as_str() {
        "" => "at the cluster scope".to_owned(),
        namespace => format!("in the namespace \"{namespace}\""),
    };
    let message = format!(
        "{plural}{name} is forbidden: User \"uturn-operator\" cannot {verb} resource \
         \"{resource}\" in API group \"{group}\" {scope}"
    );
    refusal(StatusCode::FORBIDDEN, "Forbidden", &message)
}

fn failure(status: StatusCode, reason: &str) -> Answer {
    refusal(status, reason, reason)
}

fn refusal(status: StatusCode, reason: &str, message: &str) -> Answer {
    let value = json!({ "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "reason": reason, "code": status.as_u16(), "message": message });
    let mut answer = success(&value);
    *answer.status_mut() = status;
    answer
}

/// A strategic merge patch keeps the conditions of other types than its own.
fn keep_conditions(before: &Value, patch: &mut Value) {
    let Some(own) = patch["conditions"].as_array_mut() else { return };
    let all = before["conditions"].as_array().into_iter().flatten();
    let others = all.filter(|there| own.iter().all(|own| own["type"] != there["type"]));
    let others: Vec<Value> = others.cloned().collect();
    own.splice(0..0, others);
}

/// A merge patch (RFC 7386).
fn merge(value: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *value = patch.clone();
        return;
    };
    if !value.is_object() {
        *value = json!({});
    }
    for (key, patch) in patch {
        match patch {
            Value::Null => drop(value.as_object_mut().unwrap().remove(key)),
            patch => merge(&mut value[key], patch),
        }
    }
}
