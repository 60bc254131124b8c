//! A server in memory that answers as an API server does: pages, refusals, lists that expire,
//! watches, and silence.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use uturn_live::Server;

#[derive(Default)]
pub(crate) struct State {
    /// Objects by the path of their list, in order of their names.
    pub(crate) lists: BTreeMap<String, Vec<Value>>,
    /// Status and message, by path.
    pub(crate) refused: BTreeMap<String, (u16, &'static str)>,
    /// How many answers with `continue` are 410, and whether these offer to go on.
    pub(crate) expire: (usize, bool),
    /// How many answers are 429.
    pub(crate) busy: usize,
    /// After how many requests there is no answer any more.
    pub(crate) silent_after: Option<usize>,
    pub(crate) asked: Vec<String>,
    /// The version of the last change.
    pub(crate) version: u64,
    /// What happened: version, path of the list, type and object.
    pub(crate) events: Vec<(u64, String, &'static str, Value)>,
    /// Single objects by their paths.
    pub(crate) objects: BTreeMap<String, Value>,
    /// What is answered in place of everything: status, place of a redirection, and text.
    pub(crate) instead: Option<(u16, &'static str, &'static str)>,
    /// Paths that may not be watched.
    pub(crate) unwatched: BTreeSet<String>,
    /// How many watches are answered with 410: half of them as a status, half as an event.
    pub(crate) forgotten: usize,
    /// How many watches break in the middle of an event.
    pub(crate) broken: usize,
    /// Whether nothing is answered.
    pub(crate) is_gone: bool,
}

#[derive(Clone, Default)]
pub(crate) struct Mock(Arc<Mutex<State>>);

impl Mock {
    /// A cluster with some objects of every kind that decides about flows.
    pub(crate) fn shop() -> Self {
        let mock = Self::default();
        let named = |name: &str| json!({"name": name, "namespace": "shop", "resourceVersion": "7"});
        let pod = |number: usize| {
            json!({
                "metadata": {
                    "name": format!("web-{number}"), "namespace": "shop", "uid": "x",
                    "resourceVersion": format!("{}", 100 + number), "labels": {"app": "web"},
                    "managedFields": [{"manager": "hidden"}],
                },
                "spec": {"nodeName": "n1", "containers": [{
                    "name": "web", "image": "web", "ports": [{"containerPort": 8080}],
                    "env": [{"name": "PASSWORD", "value": "hidden"}],
                }]},
                "status": {"podIP": format!("10.1.1.{}", 10 + number), "phase": "Running",
                           "conditions": [{"type": "Ready", "status": "True"}]},
            })
        };
        mock.put("/api/v1/pods", (0..7).map(pod).collect());
        mock.put(
            "/api/v1/nodes",
            vec![json!({
                "metadata": {"name": "n1", "resourceVersion": "3"},
                "status": {"addresses": [{"type": "InternalIP", "address": "10.0.0.11"}]},
            })],
        );
        mock.put(
            "/api/v1/services",
            vec![json!({
                "metadata": named("web"),
                "spec": {"clusterIP": "172.16.0.10", "selector": {"app": "web"},
                         "ports": [{"port": 80, "targetPort": 8080, "protocol": "TCP"}]},
                "status": {"loadBalancer": {}},
            })],
        );
        mock.put(
            "/apis/discovery.k8s.io/v1/endpointslices",
            vec![json!({
                "metadata": {"name": "web-x", "namespace": "shop", "resourceVersion": "8",
                             "labels": {"kubernetes.io/service-name": "web"}},
                "addressType": "IPv4",
                "ports": [{"name": "", "port": 8080, "protocol": "TCP"}],
                "endpoints": [{"addresses": ["10.1.1.10"], "conditions": {"ready": true}}],
            })],
        );
        mock.put("/apis/apps/v1/deployments", vec![json!({
            "metadata": named("web"),
            "spec": {"replicas": 7, "selector": {"matchLabels": {"app": "web"}}, "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {"containers": [{
                    "name": "web", "image": "web", "env": [{"name": "PASSWORD", "value": "hidden"}],
                }]},
            }},
        })]);
        for empty in ["/api/v1/endpoints", "/apis/networking.k8s.io/v1/ingresses"] {
            mock.put(empty, Vec::new());
        }
        mock
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    pub(crate) fn put(&self, path: &str, objects: Vec<Value>) {
        self.state().lists.insert(path.to_owned(), objects);
    }

    pub(crate) fn refuse(&self, path: &str, code: u16, message: &'static str) {
        self.state().refused.insert(path.to_owned(), (code, message));
    }

    pub(crate) fn server(&self) -> Server {
        let mock = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let answer = mock.answer(&request);
            async move { answer }
        });
        let client = Client::new(service, "shop");
        Server::new(client, "https://mock".into(), "user \"me\"".into(), "shop".into())
    }

    /// Something happens to an object of a list: it is there in this form from now on, or it is gone.
    pub(crate) fn happen(&self, path: &str, name: &str, object: Option<Value>) {
        let mut state = self.state();
        state.version += 1;
        let version = state.version;
        let list = state.lists.entry(path.to_owned()).or_default();
        let at = list.iter().position(|known| known["metadata"]["name"] == name);
        let (kind, object) = match (at, object) {
            (Some(at), None) => ("DELETED", list.remove(at)),
            (None, None) => return,
            (at, Some(mut object)) => {
                object["metadata"]["resourceVersion"] = (900 + version).to_string().into();
                match at {
                    Some(at) => list[at] = object.clone(),
                    None => list.push(object.clone()),
                }
                list.sort_by_key(|known| known["metadata"]["name"].to_string());
                (if at.is_some() { "MODIFIED" } else { "ADDED" }, object)
            }
        };
        state.events.push((version, path.to_owned(), kind, object));
    }

    fn answer(&self, request: &Request<Body>) -> Result<Response<Full<Bytes>>, std::io::Error> {
        assert_eq!(request.method(), Method::GET);
        let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
        let mut state = self.state();
        state.asked.push(path.to_owned());
        if state.is_gone || state.silent_after.is_some_and(|after| state.asked.len() > after) {
            return Err(std::io::Error::other("connection reset by the test"));
        }
        if let Some((code, message)) = state.refused.get(path) {
            return Ok(status(*code, message, None));
        }
        if let Some((code, place, text)) = state.instead {
            let answer = Response::builder().status(code).header("location", place);
            return Ok(answer.body(Full::new(text.into())).unwrap());
        }
        if state.busy > 0 {
            state.busy -= 1;
            return Ok(status(429, "come later", None));
        }
        let value = |key: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(name, _)| *name == key).map(|(_, value)| value.replace("%3D", "="))
        };
        if value("watch").is_some() {
            return Ok(watch(&mut state, path, &value));
        }
        let token = value("continue").unwrap_or_default();
        if !token.is_empty() && state.expire.0 > 0 {
            state.expire.0 -= 1;
            let next = state.expire.1.then(|| token.replace("old=", "new="));
            return Ok(status(410, "The provided continue parameter is too old", next.as_deref()));
        }
        Ok(match path {
            "/version" => json(&json!({"gitVersion": "v1.34.4"})),
            "/apis" => json(&groups(&state)),
            path => match state.lists.get(path) {
                Some(objects) => {
                    let limit = value("limit").unwrap().parse().unwrap();
                    page(objects, &token, limit, state.version)
                }
                None => match state.objects.get(path) {
                    Some(object) => json(object),
                    None => status(404, "not found", None),
                },
            },
        })
    }
}

fn groups(state: &State) -> Value {
    let version = |path: &String| {
        let parts: Vec<&str> = path.split('/').collect();
        (parts[1] == "apis").then(|| {
            json!({"versions": [{
                "groupVersion": format!("{}/{}", parts[2], parts[3]),
            }]})
        })
    };
    let groups: Vec<Value> = state.lists.keys().filter_map(version).collect();
    json!({"kind": "APIGroupList", "groups": groups})
}

/// A page; a token has the number of the next object.
fn page(objects: &[Value], token: &str, limit: usize, version: u64) -> Response<Full<Bytes>> {
    let from = token.rsplit('=').next().unwrap().parse().unwrap_or(0);
    let items: Vec<&Value> = objects.iter().skip(from).take(limit).collect();
    let next = from + items.len();
    let token = (next < objects.len()).then(|| format!("old={next}"));
    let version = (900 + version).to_string();
    json(&json!({"kind": "SomeList", "items": items,
                 "metadata": {"resourceVersion": version, "continue": token.unwrap_or_default()}}))
}

fn json(value: &Value) -> Response<Full<Bytes>> {
    Response::new(Full::new(value.to_string().into()))
}

fn status(code: u16, message: &str, token: Option<&str>) -> Response<Full<Bytes>> {
    let body = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
                      "message": message, "reason": "x", "metadata": {"continue": token}});
    let mut response = json(&body);
    *response.status_mut() = StatusCode::from_u16(code).unwrap();
    response
}

/// What happened since a version, after which the watch ends.
fn watch(
    state: &mut State,
    path: &str,
    value: &dyn Fn(&str) -> Option<String>,
) -> Response<Full<Bytes>> {
    if state.unwatched.contains(path) {
        return status(403, "watch is forbidden by the test", None);
    }
    if state.forgotten > 0 {
        state.forgotten -= 1;
        if state.forgotten.is_multiple_of(2) {
            return status(410, "too old resource version", None);
        }
        let gone = json!({"type": "ERROR", "object": {"kind": "Status", "apiVersion": "v1",
            "metadata": {}, "status": "Failure", "code": 410, "reason": "Expired",
            "message": "too old resource version"}});
        return Response::new(Full::new(format!("{gone}\n").into()));
    }
    let since: u64 = value("resourceVersion").unwrap().parse().unwrap_or(900);
    let name = value("fieldSelector").map(|text| text.replace("metadata.name%3D", ""));
    let name = name.map(|text| text.replace("metadata.name=", ""));
    let mut body = String::new();
    let new = state.events.iter().filter(|(version, of, _, object)| {
        let is_named = name.as_ref().is_none_or(|name| object["metadata"]["name"] == **name);
        of == path && 900 + version > since && is_named
    });
    for (_, _, kind, object) in new {
        body.push_str(&format!("{}\n", json!({"type": kind, "object": object})));
    }
    if state.broken > 0 && !body.is_empty() {
        state.broken -= 1;
        body.truncate(body.len() / 2);
        return Response::new(Full::new(body.into()));
    }
    let mark = json!({"type": "BOOKMARK", "object": {"kind": "x", "apiVersion": "v1",
        "metadata": {"resourceVersion": (900 + state.version).to_string()}}});
    body.push_str(&format!("{mark}\n"));
    Response::new(Full::new(body.into()))
}
