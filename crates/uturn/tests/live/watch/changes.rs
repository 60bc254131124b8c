//! Random changes of the objects of a real API server.

use std::time::Duration;

use http::Request;
use http::header::CONTENT_TYPE;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::time::Interval;
use uturn_dice::Dice;

use crate::control_plane::{ADMIN, ControlPlane};

/// What several objects of a kind are called, and where they are.
const KINDS: [(&str, &str, &str); 7] = [
    ("Pods", "/api/v1", "pods"),
    ("Services", "/api/v1", "services"),
    ("EndpointSlices", "/apis/discovery.k8s.io/v1", "endpointslices"),
    ("Nodes", "/api/v1", "nodes"),
    ("Ingresses", "/apis/networking.k8s.io/v1", "ingresses"),
    ("Deployments", "/apis/apps/v1", "deployments"),
    ("NetworkPolicies", "/apis/networking.k8s.io/v1", "networkpolicies"),
];
const CHANGES_A_SECOND: u32 = 50;
/// At most so many objects are made of a kind beside those that are there.
const MAX_MADE: usize = 12;

/// Makes changes.
pub(crate) struct Changes {
    runtime: Runtime,
    client: Client,
    dice: Dice,
    kinds: Vec<Kind>,
    /// When the next change is due. After a pause, all that are due by then follow at once.
    ticks: Interval,
    number: usize,
    pub(crate) made: usize,
    pub(crate) refused: usize,
}

struct Kind {
    called: &'static str,
    root: &'static str,
    plural: &'static str,
    /// Those that are there from the beginning, and stay.
    first: Vec<Value>,
    /// Those that were made.
    made: Vec<Value>,
}

impl Kind {
    fn path(&self, object: &Value) -> String {
        let (root, plural) = (self.root, self.plural);
        let name = object["metadata"]["name"].as_str().unwrap();
        match object["metadata"]["namespace"].as_str() {
            Some(namespace) => format!("{root}/namespaces/{namespace}/{plural}/{name}"),
            None => format!("{root}/{plural}/{name}"),
        }
    }
}

impl Changes {
    pub(crate) fn new(plane: &ControlPlane, seed: u64) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let config = Kubeconfig::read_from(plane.kubeconfig(ADMIN)).unwrap();
        let client = runtime.block_on(async {
            let options = KubeConfigOptions::default();
            let config = Config::from_custom_kubeconfig(config, &options).await.unwrap();
            Client::try_from(config).unwrap()
        });
        let ticks = runtime
            .block_on(async { tokio::time::interval(Duration::from_secs(1) / CHANGES_A_SECOND) });
        let mut all = Self {
            runtime,
            client,
            dice: Dice::new(seed),
            kinds: Vec::new(),
            ticks,
            number: 0,
            made: 0,
            refused: 0,
        };
        for (called, root, plural) in KINDS {
            let list = all.ask("GET", &format!("{root}/{plural}"), None, "").unwrap();
            let mut first = list["items"].as_array().unwrap().clone();
            // The server mends its own.
            first.retain(|object| object["metadata"]["name"] != "kubernetes");
            all.kinds.push(Kind { called, root, plural, first, made: Vec::new() });
        }
        all
    }

    fn ask(&self, verb: &str, path: &str, body: Option<&Value>, kind: &str) -> Option<Value> {
        let body = body.map(|body| body.to_string().into_bytes()).unwrap_or_default();
        let request = Request::builder().method(verb).uri(path);
        let kind = if kind.is_empty() { "application/json" } else { kind };
        let request = request.header(CONTENT_TYPE, kind).body(body).unwrap();
        match self.runtime.block_on(self.client.request::<Value>(request)) {
            Ok(value) => Some(value),
            Err(kube::Error::Api(_)) => None,
            Err(other) => panic!("{verb} {path}: {other}"),
        }
    }

    fn patch(&self, path: &str, patch: &Value) -> Option<Value> {
        self.ask("PATCH", path, Some(patch), "application/merge-patch+json")
    }

    /// Makes changes, 50 a second from the beginning on, with all pauses.
    pub(crate) fn make(&mut self, count: usize) {
        for _ in 0..count {
            self.runtime.block_on(self.ticks.tick());
            let is_done = self.change();
            self.made += 1;
            self.refused += usize::from(!is_done);
        }
    }

    /// Makes a change. Returns whether the server took it.
    fn change(&mut self) -> bool {
        let at = self.dice.below(self.kinds.len());
        if self.kinds[at].first.is_empty() {
            return true;
        }
        match self.dice.below(10) {
            0 | 1 => self.create(at),
            2 => self.delete(at),
            _ => self.modify(at),
        }
    }

    fn pick(&mut self, at: usize) -> Value {
        let kind = &self.kinds[at];
        let many = kind.first.len() + kind.made.len();
        let number = self.dice.below(many);
        let kind = &self.kinds[at];
        kind.first.iter().chain(&kind.made).nth(number).unwrap().clone()
    }

    /// A copy of another object.
    fn create(&mut self, at: usize) -> bool {
        if self.kinds[at].made.len() >= MAX_MADE || self.kinds[at].called == "Nodes" {
            return self.delete(at);
        }
        // One that was there at first: its status is whole.
        let first = &self.kinds[at].first;
        let like = first[self.dice.below(first.len())].clone();
        self.number += 1;
        let mut object = like.clone();
        let meta = object["metadata"].as_object_mut().unwrap();
        let gone = ["uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"];
        gone.iter().for_each(|field| drop(meta.remove(*field)));
        // Some sort before what is there, some behind.
        let before = if self.number.is_multiple_of(2) { "a" } else { "z" };
        meta.insert("name".into(), format!("{before}-made-{}", self.number).into());
        if let Some(spec) = object["spec"].as_object_mut() {
            let given = ["clusterIP", "clusterIPs", "healthCheckNodePort"];
            given.iter().for_each(|field| drop(spec.remove(*field)));
            for port in spec.get_mut("ports").and_then(Value::as_array_mut).into_iter().flatten() {
                port.as_object_mut().unwrap().remove("nodePort");
            }
        }
        let path = self.kinds[at].path(&object);
        let (list, _) = path.rsplit_once('/').unwrap();
        let Some(mut new) = self.ask("POST", list, Some(&object), "") else { return false };
        if self.kinds[at].called == "Pods" {
            // With the address of another, as after a restart of its node.
            let status = json!({"status": like["status"]});
            new = self.patch(&format!("{path}/status"), &status).expect("a status");
        }
        self.kinds[at].made.push(new);
        true
    }

    fn delete(&mut self, at: usize) -> bool {
        if self.kinds[at].made.is_empty() {
            return self.modify(at);
        }
        let number = self.dice.below(self.kinds[at].made.len());
        let object = self.kinds[at].made.swap_remove(number);
        let path = format!("{}?gracePeriodSeconds=0", self.kinds[at].path(&object));
        self.ask("DELETE", &path, None, "").is_some()
    }

    fn modify(&mut self, at: usize) -> bool {
        let object = self.pick(at);
        let path = self.kinds[at].path(&object);
        let on = self.dice.below(2) == 0;
        let label = || json!({"metadata": {"labels": {"changed": if on { "yes" } else { "no" }}}});
        let patch = match (self.kinds[at].called, self.dice.below(4)) {
            ("Pods", 0 | 1) => {
                let ready = if on { "True" } else { "False" };
                let status = json!({"conditions": [{"type": "Ready", "status": ready}]});
                return self.patch(&format!("{path}/status"), &json!({"status": status})).is_some();
            }
            ("Services", 0) => {
                let policy = if on { "Local" } else { "Cluster" };
                json!({"spec": {"internalTrafficPolicy": policy}})
            }
            ("Services", 1) => {
                let selector = &self.pick(at)["spec"]["selector"];
                json!({"spec": {"selector": selector}})
            }
            ("Services", 2) => {
                json!({"spec": {"sessionAffinity": if on { "ClientIP" } else { "None" }}})
            }
            ("EndpointSlices", 0..=2) => {
                let mut endpoints = object["endpoints"].clone();
                for endpoint in endpoints.as_array_mut().into_iter().flatten() {
                    let ready = self.dice.below(3) > 0;
                    endpoint["conditions"] = json!({"ready": ready, "serving": ready});
                }
                json!({"endpoints": endpoints})
            }
            ("Nodes", 0) => json!({"spec": {"unschedulable": on}}),
            ("Deployments", 0 | 1) => json!({"spec": {"replicas": self.dice.below(4)}}),
            ("Ingresses", 0) => {
                let rules = &self.pick(at)["spec"]["rules"];
                json!({"spec": {"rules": rules}})
            }
            _ => label(),
        };
        self.patch(&path, &patch).is_some()
    }

    /// Changes an object of each kind. Returns the versions of these: what happened before to the
    /// kind has a lesser one.
    pub(crate) fn mark(&self, number: usize) -> Vec<(String, u64)> {
        let kinds = self.kinds.iter().filter(|kind| !kind.first.is_empty());
        let mark = |kind: &Kind| {
            let patch = json!({"metadata": {"annotations": {"mark": number.to_string()}}});
            let marked = self.patch(&kind.path(&kind.first[0]), &patch).unwrap();
            let version = marked["metadata"]["resourceVersion"].as_str().unwrap();
            (kind.called.to_owned(), version.parse().unwrap())
        };
        kinds.map(mark).collect()
    }

    /// Changes what CoreDNS is told, or makes its ConfigMap.
    pub(crate) fn change_corefile(&self, number: usize) {
        let folder = "/api/v1/namespaces/kube-system/configmaps";
        let text = format!(
            ".:53 {{\n  kubernetes cluster.local\n  forward . 192.0.2.{}\n}}\n",
            number % 250
        );
        let data = json!({"Corefile": text});
        let patch =
            json!({"metadata": {"annotations": {"mark": number.to_string()}}, "data": data});
        if number.is_multiple_of(3) {
            self.ask("DELETE", &format!("{folder}/coredns"), None, "").unwrap();
        } else if self.patch(&format!("{folder}/coredns"), &patch).is_none() {
            let object = json!({"metadata": {"name": "coredns"}, "data": data});
            self.ask("POST", folder, Some(&object), "").unwrap();
        }
    }
}
