//! Reads clusters of a server in memory that answers as an API server does: pages, refusals, lists
//! that expire, and silence.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use uturn_live::{LiveError, Purpose, Reading, Server, Settings, read_from};
use uturn_model::Extent;
use uturn_snapshot::{Loaded, Manifests};

#[derive(Default)]
struct State {
    /// Objects by the path of their list, in order of their names.
    lists: BTreeMap<String, Vec<Value>>,
    /// Status and message, by path.
    refused: BTreeMap<String, (u16, &'static str)>,
    /// How many answers with `continue` are 410, and whether these offer to go on.
    expire: (usize, bool),
    /// How many answers are 429.
    busy: usize,
    /// After how many requests there is no answer any more.
    silent_after: Option<usize>,
    asked: Vec<String>,
}

#[derive(Clone, Default)]
struct Mock(Arc<Mutex<State>>);

impl Mock {
    /// A cluster with some objects of every kind that decides about flows.
    fn shop() -> Self {
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

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    fn put(&self, path: &str, objects: Vec<Value>) {
        self.state().lists.insert(path.to_owned(), objects);
    }

    fn refuse(&self, path: &str, code: u16, message: &'static str) {
        self.state().refused.insert(path.to_owned(), (code, message));
    }

    fn server(&self) -> Server {
        let mock = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let answer = mock.answer(&request);
            async move { answer }
        });
        let client = Client::new(service, "shop");
        Server::new(client, "https://mock".into(), "user \"me\"".into(), "shop".into())
    }

    fn answer(&self, request: &Request<Body>) -> Result<Response<Full<Bytes>>, std::io::Error> {
        assert_eq!(request.method(), Method::GET);
        let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
        let mut state = self.state();
        state.asked.push(path.to_owned());
        if state.silent_after.is_some_and(|after| state.asked.len() > after) {
            return Err(std::io::Error::other("connection reset by the test"));
        }
        if let Some((code, message)) = state.refused.get(path) {
            return Ok(status(*code, message, None));
        }
        if state.busy > 0 {
            state.busy -= 1;
            return Ok(status(429, "come later", None));
        }
        let value = |key: &str| {
            let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
            pairs.find(|(name, _)| *name == key).map(|(_, value)| value.replace("%3D", "="))
        };
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
                Some(objects) => page(objects, &token, value("limit").unwrap().parse().unwrap()),
                None => status(404, "not found", None),
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
    json!({"groups": state.lists.keys().filter_map(version).collect::<Vec<_>>()})
}

/// A page; a token has the number of the next object.
fn page(objects: &[Value], token: &str, limit: usize) -> Response<Full<Bytes>> {
    let from = token.rsplit('=').next().unwrap().parse().unwrap_or(0);
    let items: Vec<&Value> = objects.iter().skip(from).take(limit).collect();
    let next = from + items.len();
    let token = (next < objects.len()).then(|| format!("old={next}"));
    json(&json!({"metadata": {"resourceVersion": "900", "continue": token.unwrap_or_default()},
                 "items": items}))
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

async fn read(mock: &Mock, settings: &Settings) -> Result<Reading, LiveError> {
    read_from(&mock.server(), settings, &|_, _| {}).await
}

fn analysis(page: usize) -> Settings {
    Settings { page, ..Settings::new(Purpose::Analysis) }
}

fn loaded(reading: Reading) -> Loaded {
    reading.manifests(Manifests::default()).into_loaded().unwrap()
}

fn texts(reading: Reading) -> Vec<(String, String)> {
    let manifests = reading.manifests(Manifests::default());
    let pair = |source: &uturn_snapshot::Source| (source.name.to_string(), source.text.clone());
    manifests.sources().iter().map(pair).collect()
}

#[tokio::test]
async fn what_is_read_is_a_cluster() {
    let reading = read(&Mock::shop(), &analysis(500)).await.unwrap();
    assert!(reading.unread().is_empty(), "{:?}", reading.unread());
    let cluster = loaded(reading).cluster;
    assert_eq!(cluster.extent, Extent::OBJECTS);
    assert_eq!(cluster.pods.len(), 7);
    let origins: Vec<String> = cluster.pods.values().map(|pod| pod.origin.to_string()).collect();
    assert_eq!(origins[0], "resourceVersion 100");
    let service = cluster.services.values().next().unwrap();
    assert_eq!(service.origin.to_string(), "resourceVersion 7");
    assert_eq!(cluster.endpoints.len(), 1);
}

#[tokio::test]
async fn small_pages_are_one_page() {
    let mock = Mock::shop();
    let whole = texts(read(&mock, &analysis(500)).await.unwrap());
    for limit in [1, 2, 3, 7] {
        assert_eq!(texts(read(&mock, &analysis(limit)).await.unwrap()), whole, "{limit}");
    }
}

#[tokio::test]
async fn a_list_that_expires_goes_on_or_begins_anew() {
    for (times, goes_on) in [(1, true), (3, true), (1, false), (3, false)] {
        let mock = Mock::shop();
        let whole = texts(read(&mock, &analysis(500)).await.unwrap());
        mock.state().expire = (times, goes_on);
        let reading = read(&mock, &analysis(2)).await.unwrap();
        assert_eq!(texts(reading), whole, "{times} {goes_on}");
    }
    let mock = Mock::shop();
    mock.state().expire = (usize::MAX, false);
    let reading = read(&mock, &analysis(2)).await.unwrap();
    assert_eq!(&*reading.unread()[0].what, "Pods");
    assert!(reading.unread()[0].why.contains("changed too often"), "{:?}", reading.unread());
}

#[tokio::test]
async fn a_refusal_is_noted_and_nothing_is_concluded_from_it() {
    let no_extent = Extent::default();
    for (path, what, extent) in [
        ("/api/v1/pods", "Pods", Extent { pods: false, ..Extent::OBJECTS }),
        ("/api/v1/nodes", "Nodes", Extent { pods: false, ..Extent::OBJECTS }),
        ("/api/v1/services", "Services", Extent { services: false, ..Extent::OBJECTS }),
        (
            "/apis/networking.k8s.io/v1/ingresses",
            "Ingresses",
            Extent { services: false, ..Extent::OBJECTS },
        ),
        ("/apis/apps/v1/deployments", "Deployments", Extent::OBJECTS),
    ] {
        let mock = Mock::shop();
        mock.refuse(path, 403, "forbidden by the test");
        let reading = read(&mock, &analysis(500)).await.unwrap();
        let unread: Vec<&str> = reading.unread().iter().map(|unread| &*unread.what).collect();
        assert_eq!(unread, [what]);
        let cluster = loaded(reading).cluster;
        assert_eq!(cluster.extent, extent, "{path}");
        assert_eq!(cluster.unread.len(), 1);
        let is_it = |supposed: &&uturn_model::Supposition| *supposed.about == *what;
        let supposed = cluster.supposed.iter().find(is_it).unwrap().to_string();
        assert!(supposed.contains("could not be read: forbidden by the test"), "{supposed}");
    }
    // Where there are no slices, the objects before them say the same.
    let mock = Mock::shop();
    mock.refuse("/apis/discovery.k8s.io/v1/endpointslices", 403, "forbidden by the test");
    assert!(loaded(read(&mock, &analysis(9)).await.unwrap()).cluster.extent.endpoints);
    mock.refuse("/api/v1/endpoints", 403, "forbidden by the test");
    let cluster = loaded(read(&mock, &analysis(9)).await.unwrap()).cluster;
    assert_eq!(cluster.extent, Extent { endpoints: false, ..Extent::OBJECTS });
    // All of it refused is still a reading.
    let paths: Vec<String> = mock.state().lists.keys().cloned().collect();
    for path in paths {
        mock.refuse(&path, 403, "forbidden by the test");
    }
    mock.refuse("/version", 403, "forbidden by the test");
    mock.refuse("/apis", 403, "forbidden by the test");
    let reading = read(&mock, &analysis(9)).await.unwrap();
    assert!(reading.is_empty());
    assert_eq!(loaded(reading).cluster.extent, no_extent);
}

#[tokio::test]
async fn a_namespace_is_read_where_the_cluster_may_not_be() {
    let mock = Mock::shop();
    mock.refuse("/api/v1/services", 403, "forbidden by the test");
    let own = mock.state().lists["/api/v1/services"].clone();
    mock.put("/api/v1/namespaces/shop/services", own);
    let reading = read(&mock, &analysis(500)).await.unwrap();
    assert_eq!(&*reading.unread()[0].known, "only those of namespace shop are known");
    let cluster = loaded(reading).cluster;
    assert_eq!(cluster.services.len(), 1);
    assert!(!cluster.extent.services);
}

#[tokio::test]
async fn no_config_map_is_listed_and_no_secret_asked_for() {
    let mock = Mock::shop();
    mock.refuse("/api/v1/namespaces/kube-system/configmaps/coredns", 403, "forbidden by the test");
    let reading = read(&mock, &analysis(500)).await.unwrap();
    assert_eq!(&*reading.unread()[0].what, "ConfigMaps kube-system/coredns");
    let state = mock.state();
    assert!(!state.asked.iter().any(|path| path.contains("secrets")));
    let config_maps: Vec<&String> =
        state.asked.iter().filter(|path| path.contains("configmaps")).collect();
    assert!(config_maps.len() >= 8);
    assert!(config_maps.iter().all(|path| path.contains("/namespaces/kube-system/configmaps/")));
}

#[tokio::test]
async fn values_of_environments_are_in_no_bundle() {
    let settings = Settings::new(Purpose::Bundle);
    let all = texts(read(&Mock::shop(), &settings).await.unwrap());
    assert!(all.iter().all(|(_, text)| !text.contains("hidden")), "{all:?}");
    assert!(all.iter().any(|(name, _)| name == "deployments"));
    // What is analysed at once has them where an edited object is applied again.
    let all = texts(read(&Mock::shop(), &analysis(500)).await.unwrap());
    let with: Vec<&String> =
        all.iter().filter(|(_, text)| text.contains("hidden")).map(|(name, _)| name).collect();
    assert_eq!(with, ["deployment/shop/web"]);
}

#[tokio::test]
async fn an_object_with_a_fault_is_noted() {
    let mock = Mock::shop();
    let mut service = mock.state().lists["/api/v1/services"][0].clone();
    service["spec"]["externalIPs"] = json!(["no address"]);
    mock.put("/api/v1/services", vec![service]);
    let cluster = loaded(read(&mock, &analysis(500)).await.unwrap()).cluster;
    assert_eq!(cluster.services.len(), 1);
    let unread = cluster.unread[0].to_string();
    assert!(unread.starts_with("spec.externalIPs[0] (resourceVersion 7) could not"), "{unread}");
}

#[tokio::test(start_paused = true)]
async fn a_busy_server_is_asked_again() {
    let mock = Mock::shop();
    let whole = texts(read(&mock, &analysis(500)).await.unwrap());
    mock.state().busy = 3;
    assert_eq!(texts(read(&mock, &analysis(500)).await.unwrap()), whole);
    mock.state().busy = usize::MAX;
    let reading = read(&mock, &analysis(500)).await.unwrap();
    assert!(reading.is_empty());
    assert!(reading.unread().iter().all(|unread| &*unread.why == "come later"));
}

#[tokio::test]
async fn silence_and_bad_credentials_end_it() {
    let mock = Mock::shop();
    mock.state().silent_after = Some(0);
    let error = read(&mock, &analysis(1)).await.unwrap_err().to_string();
    assert!(error.starts_with("https://mock cannot be reached: "), "{error}");
    let mut asked = 0;
    for after in 2.. {
        let mock = Mock::shop();
        mock.state().silent_after = Some(after);
        match read(&mock, &analysis(1)).await {
            Ok(_) => break,
            Err(error) => {
                let error = error.to_string();
                assert!(error.contains("does not answer any more while reading"), "{error}");
                assert!(error.contains("connection reset by the test"), "{error}");
                asked += 1;
            }
        }
    }
    assert!(asked > 20, "{asked}");
    let mock = Mock::shop();
    mock.refuse("/version", 401, "Unauthorized");
    let error = read(&mock, &analysis(1)).await.unwrap_err().to_string();
    assert_eq!(error, "https://mock does not accept the credentials of user \"me\": Unauthorized");
}
