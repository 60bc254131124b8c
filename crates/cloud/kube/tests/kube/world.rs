//! A cluster, a cloud, and controllers that stand between them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use uturn_kube::kinds::WATCHED;
use uturn_kube::metrics::Metrics;
use uturn_kube::sync::{Controllers, Settings, SyncError, Synced};
use uturn_kube::watch::Shared;

use crate::server::Server;
use crate::stage::Stage;

pub(crate) struct World {
    pub(crate) server: Server,
    pub(crate) cloud: Arc<Stage>,
    pub(crate) shared: Shared,
}

/// What stands in the cloud: names of load balancers, and what each serves, without ids.
pub(crate) type Seen = Vec<(String, Vec<(u16, String, Vec<String>)>)>;

impl World {
    /// A world with two nodes.
    pub(crate) fn new() -> Self {
        Self::with(Stage::new(), 2)
    }

    /// A world with so many nodes.
    pub(crate) fn with(cloud: Stage, nodes: usize) -> Self {
        let world =
            Self { server: Server::new(), cloud: Arc::new(cloud), shared: Shared::default() };
        for number in 1..=nodes {
            world.server.apply(
                "nodes",
                json!({ "apiVersion": "v1", "kind": "Node",
                    "metadata": { "name": format!("n{number}") },
                    "spec": { "podCIDR": format!("10.1.{number}.0/24") },
                    "status": {
                        "addresses": [
                            { "type": "InternalIP", "address": format!("10.0.0.{}", 10 + number) }],
                        "conditions": [{ "type": "Ready", "status": "True" }] } }),
            );
        }
        world
    }

    /// Creates a Service of type LoadBalancer.
    #[expect(clippy::needless_pass_by_value, reason = "callers write the annotations in place")]
    pub(crate) fn service(&self, name: &str, annotations: Value) {
        self.server.apply(
            "services",
            json!({ "apiVersion": "v1", "kind": "Service",
                "metadata": { "name": name, "namespace": "shop", "annotations": annotations },
                "spec": { "type": "LoadBalancer", "clusterIP": format!("172.16.0.{}", 10 + name.len()),
                    "ports": [{ "name": "web", "port": 80, "protocol": "TCP", "targetPort": 8080,
                        "nodePort": 30080 + name.len() }] } }),
        );
    }

    /// Creates an Ingress for a Service.
    pub(crate) fn ingress(&self, name: &str, service: &str, spec: Value) {
        let mut spec = spec;
        spec["rules"] = json!([{ "host": "a.example.com", "http": { "paths": [
            { "path": "/", "pathType": "Prefix",
              "backend": { "service": { "name": service, "port": { "number": 80 } } } }] } }]);
        self.server.apply(
            "ingresses",
            json!({ "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
                "metadata": { "name": name, "namespace": "shop" }, "spec": spec }),
        );
    }

    /// Controllers that know nothing yet, as after a start.
    pub(crate) fn controllers(&self) -> Controllers<Arc<Stage>> {
        let settings = Settings {
            cluster: "cls-aaaaaaaa".to_owned(),
            network: "vpc-aaaaaaaa".to_owned(),
            ..Settings::default()
        };
        let (client, cloud) = (self.server.client(), Arc::clone(&self.cloud));
        Controllers::new(client, cloud, settings, self.shared.clone(), Arc::new(Metrics::default()))
    }

    /// Lists everything.
    pub(crate) fn list(&self) {
        for kind in WATCHED {
            let objects = self.server.listed(kind);
            self.shared.with(|store| store.list(kind, objects));
        }
    }

    /// A round with the objects as they are now.
    pub(crate) async fn round(
        &self,
        controllers: &mut Controllers<Arc<Stage>>,
    ) -> Result<Synced, SyncError> {
        self.list();
        controllers.sync().await
    }

    /// Rounds until nothing is left to be done.
    pub(crate) async fn settle(&self, controllers: &mut Controllers<Arc<Stage>>) {
        for _ in 0..6 {
            if self.round(controllers).await.unwrap() == Synced::default() {
                return;
            }
        }
        panic!("there is no rest: {:?}", self.round(controllers).await);
    }

    /// What stands in the cloud.
    pub(crate) fn seen(&self) -> Seen {
        let accounts = self.cloud.accounts();
        let balancers = accounts.values().flat_map(|account| account.load_balancers.values());
        let mut seen: Seen = balancers
            .map(|balancer| {
                let listener = |listener: &uturn_cloud::state::Listener| {
                    let targets = listener.groups().into_iter().flat_map(|group| group.targets);
                    let mut targets: Vec<String> =
                        targets.map(|target| format!("{}", target.port)).collect();
                    targets.sort();
                    (listener.port, listener.name.clone(), targets)
                };
                (balancer.name.clone(), balancer.listeners.iter().map(listener).collect())
            })
            .collect();
        seen.sort();
        seen
    }

    /// The messages of events, and how often each was told.
    pub(crate) fn events(&self) -> BTreeMap<String, usize> {
        let mut events = BTreeMap::new();
        for event in self.server.objects("events") {
            *events.entry(event["message"].as_str().unwrap().to_owned()).or_default() += 1;
        }
        events
    }
}

/// The condition `Ready` of a Service: its status and its reason.
pub(crate) fn ready(service: &Value) -> (String, String) {
    let conditions = service["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let ready = conditions.iter().find(|condition| condition["type"] == "Ready").unwrap();
    let text = |key: &str| ready[key].as_str().unwrap().to_owned();
    (text("status"), text("reason"))
}
