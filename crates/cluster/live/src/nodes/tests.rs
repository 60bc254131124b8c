//! Short-lived pods on a server in memory.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Full};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tower::service_fn;

use super::*;

/// The pods of the server, by name.
#[derive(Clone, Default)]
struct Pods(Arc<Mutex<BTreeMap<String, Value>>>);

/// The fate of a pod that is made.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Refused,
    WithoutImage,
}

impl Pods {
    fn names(&self) -> Vec<String> {
        self.0.lock().unwrap().keys().cloned().collect()
    }

    fn server(&self, fate: Fate) -> Arc<Server> {
        let pods = self.clone();
        let answer = move |request: Request<Body>| {
            let pods = pods.clone();
            async move {
                let (parts, body) = request.into_parts();
                let body = body.collect().await.unwrap().to_bytes();
                Ok::<_, std::io::Error>(pods.answer(fate, &parts.method, parts.uri.path(), &body))
            }
        };
        let client = Client::new(service_fn(answer), "default");
        Arc::new(Server::new(client, "https://a".into(), "a test".into(), "default".into()))
    }

    fn answer(
        &self,
        fate: Fate,
        method: &Method,
        path: &str,
        body: &[u8],
    ) -> Response<Full<bytes::Bytes>> {
        let mut pods = self.0.lock().unwrap();
        let name = path.rsplit('/').next().unwrap();
        let (code, answer) = match *method {
            Method::POST if fate == Fate::Refused => status(403, "cannot create resource \"pods\""),
            Method::POST => {
                let mut pod: Value = serde_json::from_slice(body).unwrap();
                let waiting = json!({"reason": "ErrImagePull", "message": "no such image"});
                let container = json!({"name": "capture", "image": "x", "imageID": "", "ready": false,
                                       "restartCount": 0, "state": {"waiting": waiting}});
                pod["status"] = json!({"phase": "Pending", "containerStatuses": [container]});
                pods.insert(pod["metadata"]["name"].as_str().unwrap().to_owned(), pod.clone());
                (201, pod)
            }
            Method::GET if name == "pods" => {
                let items: Vec<&Value> = pods.values().collect();
                (
                    200,
                    json!({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items}),
                )
            }
            Method::GET => match pods.get(name) {
                Some(pod) => (200, pod.clone()),
                None => status(404, "not found"),
            },
            Method::DELETE => match pods.remove(name) {
                Some(pod) => (200, pod),
                None => status(404, "not found"),
            },
            _ => status(405, "not allowed"),
        };
        let mut response = Response::new(Full::new(answer.to_string().into()));
        *response.status_mut() = StatusCode::from_u16(code).unwrap();
        response
    }
}

fn status(code: u16, message: &str) -> (u16, Value) {
    let reason = if code == 404 { "NotFound" } else { "Forbidden" };
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
                        "message": message, "reason": reason});
    (code, status)
}

/// Captures a node without kube-proxy. Returns why it cannot be captured, and what was noted.
async fn failed(pods: &Pods, fate: Fate) -> (String, Vec<String>) {
    let plan = NodePlan { name: "n1".parse().unwrap(), proxy: None };
    let settings = CaptureSettings {
        options: Options::default(),
        limit: Duration::from_secs(60),
        image: Some("tools:1".to_owned()),
    };
    let notes = RefCell::new(Vec::new());
    let note = |note: &str| notes.borrow_mut().push(note.to_owned());
    let captures = capture(&pods.server(fate), vec![plan], &settings, &note).await.unwrap();
    let why = captures.into_iter().next().unwrap().captured.unwrap_err();
    (why, notes.into_inner())
}

#[tokio::test]
async fn a_pod_that_does_not_start_is_removed_again() {
    let pods = Pods::default();
    let (why, notes) = failed(&pods, Fate::WithoutImage).await;
    assert!(why.starts_with("no pod of kube-proxy runs there; pod uturn-collect-"), "{why}");
    assert!(why.contains("ErrImagePull no such image"), "{why}");
    assert_eq!(pods.names(), Vec::<String>::new());
    assert_eq!(notes, Vec::<String>::new());
}

#[tokio::test]
async fn a_right_that_is_missing_is_named() {
    let pods = Pods::default();
    let (why, _) = failed(&pods, Fate::Refused).await;
    assert!(why.contains("cannot create resource \"pods\""), "{why}");
    assert!(why.contains("uturn collect --rbac --nodes --image"), "{why}");
}

#[tokio::test]
async fn what_a_dead_run_left_is_removed() {
    let pods = Pods::default();
    let pod = |name: &str, phase: &str| {
        let created = jiff::Timestamp::now().to_string();
        json!({"apiVersion": "v1", "kind": "Pod",
               "metadata": {"name": name, "namespace": POD_NAMESPACE, "creationTimestamp": created},
               "spec": {"activeDeadlineSeconds": 3600, "containers": []},
               "status": {"phase": phase}})
    };
    for (name, phase) in [("uturn-collect-1", "Failed"), ("uturn-collect-2", "Running")] {
        pods.0.lock().unwrap().insert(name.to_owned(), pod(name, phase));
    }
    let (_, notes) = failed(&pods, Fate::Refused).await;
    assert_eq!(pods.names(), ["uturn-collect-2"]);
    assert_eq!(
        notes,
        [
            "removed pod kube-system/uturn-collect-1 of an earlier run",
            "pod kube-system/uturn-collect-2 is of another run; it is left alone",
        ]
    );
}
