//! Writes a generated cluster into an API server over many connections, as large as real objects
//! are: what a Deployment leaves beside pods, and what kubelets and people write into them.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use super::client::Client;
use crate::control_plane::{ADMIN, ControlPlane};
use crate::objects::prepare;

/// How many connections write at once.
const WRITERS: usize = 16;

/// Writes the objects of a file that has each on a line. Returns how many there are.
pub(super) fn write(plane: &ControlPlane, cluster: &Path) -> usize {
    let mut namespaces = BTreeSet::new();
    for line in lines(cluster) {
        let rest = line.split_once("\"namespace\":\"").map(|(_, rest)| rest);
        namespaces.extend(rest.and_then(|rest| rest.split('"').next()).map(str::to_owned));
    }
    let count = Arc::new(AtomicUsize::new(0));
    let (sender, receiver) = mpsc::sync_channel(1024);
    let receiver = Arc::new(Mutex::new(receiver));
    thread::scope(|scope| {
        let mut first = Client::new(plane, ADMIN);
        for name in namespaces.iter().filter(|name| !name.starts_with("kube-")) {
            let object =
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            create(&mut first, &object, "kubectl");
        }
        for _ in 0..WRITERS {
            let (receiver, count) = (Arc::clone(&receiver), Arc::clone(&count));
            scope.spawn(move || {
                let mut client = Client::new(plane, ADMIN);
                while let Some(line) = next(&receiver) {
                    let object = serde_json::from_str(&line).unwrap();
                    count.fetch_add(put(&mut client, object), Ordering::Relaxed);
                }
            });
        }
        lines(cluster).for_each(|line| sender.send(line).unwrap());
        drop(sender);
    });
    count.load(Ordering::Relaxed) + namespaces.len()
}

fn next(receiver: &Mutex<Receiver<String>>) -> Option<String> {
    receiver.lock().unwrap().recv().ok()
}

fn lines(cluster: &Path) -> impl Iterator<Item = String> {
    let lines = BufReader::with_capacity(1 << 20, File::open(cluster).unwrap()).lines();
    let objects = lines.map(Result::unwrap).filter(|line| line.contains("\"metadata\":{"));
    objects.map(|line| line.trim_end_matches(',').to_owned())
}

/// Writes an object, and what a real cluster has beside it. Returns how many objects that is.
fn put(client: &mut Client, mut object: Value) -> usize {
    prepare(&mut object);
    let status = object.as_object_mut().unwrap().remove("status");
    let mut written = 1;
    let kind = object["kind"].as_str().unwrap_or_default().to_owned();
    match &*kind {
        "Pod" => enlarge(&mut object),
        "Service" => {
            state_health_check(&mut object["spec"]);
            written += workload(client, &object);
        }
        _ => {}
    }
    create(client, &object, "kube-controller-manager");
    if let Some(mut status) = status.filter(|status| status.is_object()) {
        if kind == "Pod" {
            enlarge_status(&mut status);
        }
        object["status"] = status;
        let (path, name) = (path(&object), object["metadata"]["name"].as_str().unwrap());
        let path = format!("{path}/{name}/status?fieldManager=kubelet");
        let (code, answer) = client.send("PUT", &path, &object.to_string());
        assert_eq!(code, 200, "{path}: {}", String::from_utf8_lossy(&answer));
    }
    written
}

fn create(client: &mut Client, object: &Value, by: &str) {
    let path = format!("{}?fieldManager={by}", path(object));
    let (code, answer) = client.send("POST", &path, &object.to_string());
    // The server makes a few namespaces and a Service at its start.
    assert!(matches!(code, 201 | 409), "{path}: {code}: {}", String::from_utf8_lossy(&answer));
}

fn path(object: &Value) -> String {
    let version = object["apiVersion"].as_str().unwrap();
    let root = if version.contains('/') { "apis" } else { "api" };
    let plural = match object["kind"].as_str().unwrap() {
        "Ingress" => "ingresses".to_owned(),
        kind => format!("{}s", kind.to_lowercase()),
    };
    match object["metadata"]["namespace"].as_str() {
        Some(namespace) => format!("/{root}/{version}/namespaces/{namespace}/{plural}"),
        None => format!("/{root}/{version}/{plural}"),
    }
}

/// The Deployment of a Service's pods, and the ReplicaSets of its last three versions.
fn workload(client: &mut Client, service: &Value) -> usize {
    let Some(app) = service["spec"]["selector"]["app"].as_str() else { return 0 };
    let template = json!({
        "metadata": {"labels": {"app": app}},
        "spec": {"containers": [{"name": "main", "image": format!("images.example.com/{app}:v1.2.3"),
            "env": variables(app)}]},
    });
    let object = |kind: &str, name: &str, replicas: u32| {
        json!({
            "apiVersion": "apps/v1", "kind": kind,
            "metadata": {"name": name, "namespace": service["metadata"]["namespace"],
                "labels": {"app": app}},
            "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": app}},
                "template": template},
        })
    };
    create(client, &object("Deployment", app, 1), "kubectl");
    for (version, replicas) in [("6b7f9c5d4", 1), ("58d9fb7c6", 0), ("7c4d8b9f5", 0)] {
        let set = object("ReplicaSet", &format!("{app}-{version}"), replicas);
        create(client, &set, "kube-controller-manager");
    }
    4
}

fn variables(app: &str) -> Value {
    let names = ["DB_HOST", "DB_PORT", "DB_USER", "CACHE_URL", "QUEUE_URL", "TRACE_ENDPOINT"];
    let variable =
        |name: &&str| json!({"name": name, "value": format!("{}.{app}.example.com", name)});
    Value::Array(names.iter().map(variable).collect())
}

/// States the node port that the server would pick: maybe one that a later Service states.
fn state_health_check(spec: &mut Value) {
    if spec["type"] == "LoadBalancer" && spec["externalTrafficPolicy"] == "Local" {
        let own = spec["ports"][0]["nodePort"].as_u64().unwrap();
        spec["healthCheckNodePort"] = (own + 11_000).into();
    }
}

/// Adds to a pod what Helm charts, injectors and the scheduler add.
fn enlarge(pod: &mut Value) {
    let app = pod["metadata"]["labels"]["app"].as_str().unwrap_or("main").to_owned();
    pod["metadata"]["annotations"] = json!({
        "checksum/config": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "prometheus.io/scrape": "true", "prometheus.io/port": "9090",
        "kubectl.kubernetes.io/restartedAt": "2026-02-03T04:05:06Z",
    });
    let spec = &mut pod["spec"];
    spec["securityContext"] = json!({"runAsUser": 1000, "fsGroup": 1000});
    spec["volumes"].as_array_mut().unwrap().extend([
        json!({"name": "config", "configMap": {"name": format!("{app}-config")}}),
        json!({"name": "scratch", "emptyDir": {}}),
    ]);
    let main = &mut spec["containers"][0];
    main["env"].as_array_mut().unwrap().extend(variables(&app).as_array().unwrap().clone());
    main["volumeMounts"].as_array_mut().unwrap().extend([
        json!({"name": "config", "mountPath": "/etc/app", "readOnly": true}),
        json!({"name": "scratch", "mountPath": "/tmp"}),
    ]);
    main["readinessProbe"] =
        json!({"httpGet": {"path": "/ready", "port": 8080}, "periodSeconds": 5});
    main["args"] = json!(["--config=/etc/app/config.yaml", "--listen=:8080", "--log-format=json"]);
}

/// Adds to a pod's status what kubelets write.
fn enlarge_status(status: &mut Value) {
    let at = "2026-02-03T04:05:16Z";
    let more = ["PodReadyToStartContainers", "ContainersReady", "PodScheduled"];
    let condition = |kind: &str| json!({"lastTransitionTime": at, "status": "True", "type": kind});
    status["conditions"].as_array_mut().unwrap().extend(more.map(condition));
    for container in status["containerStatuses"].as_array_mut().unwrap() {
        let digest = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";
        container["imageID"] = format!("images.example.com/app@{digest}").into();
        container["state"] = json!({"running": {"startedAt": at}});
        container["lastState"] = json!({});
    }
}
