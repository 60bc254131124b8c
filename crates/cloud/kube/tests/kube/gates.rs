//! Pods that wait for their load balancers.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::sleep;
use uturn_kube::gates::{Gates, Opened};
use uturn_kube::health;
use uturn_kube::kinds::POD;
use uturn_kube::metrics::Metrics;
use uturn_kube::sync::{Controllers, Synced};
use uturn_operator::shares::Shares;

use crate::processes::{is_allowed, process};
use crate::stage::Stage;
use crate::world::World;

const GATE: &str = "cloud.tencent.com/load-balancer-backendgroup-ready";

impl World {
    /// A pod of the Service `web`, and its EndpointSlice.
    fn pod(&self, has_gate: bool) {
        let gates = if has_gate { json!([{ "conditionType": GATE }]) } else { json!([]) };
        self.server.apply(
            "pods",
            json!({ "apiVersion": "v1", "kind": "Pod",
                "metadata": { "name": "web-0", "namespace": "shop", "labels": { "app": "web" } },
                "spec": { "nodeName": "n1", "readinessGates": gates,
                    "containers": [{ "name": "main", "image": "x" }] },
                "status": { "phase": "Running", "podIP": "10.1.1.5",
                    "podIPs": [{ "ip": "10.1.1.5" }],
                    "conditions": [
                        { "type": "ContainersReady", "status": "True" },
                        { "type": "Ready", "status": if has_gate { "False" } else { "True" } }] } }),
        );
        self.slice(&json!({ "ready": !has_gate, "serving": !has_gate, "terminating": false }));
    }

    fn slice(&self, conditions: &Value) {
        self.server.apply(
            "endpointslices",
            json!({ "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
                "metadata": { "name": "web-x", "namespace": "shop",
                    "labels": { "kubernetes.io/service-name": "web" } },
                "addressType": "IPv4",
                "ports": [{ "name": "web", "port": 8080, "protocol": "TCP" }],
                "endpoints": [{ "addresses": ["10.1.1.5"], "nodeName": "n1",
                    "conditions": conditions,
                    "targetRef": { "kind": "Pod", "name": "web-0", "namespace": "shop" } }] }),
        );
    }

    fn gates(&self) -> Gates<Arc<Stage>> {
        Gates {
            client: self.server.client(),
            api: Arc::clone(&self.cloud),
            shared: self.shared.clone(),
            metrics: Arc::new(Metrics::default()),
            records: self.controllers().records(),
            shares: Shares::default(),
        }
    }

    /// Checks that a round does nothing and the pod is a target.
    async fn is_at_rest(&self, controllers: &mut Controllers<Arc<Stage>>) {
        assert_eq!(self.round(controllers).await.unwrap(), Synced::default());
        assert_eq!(self.seen()[0].1[0].2, ["8080"]);
    }

    fn is_open(&self) -> bool {
        let pod = self.server.object("pods", "web-0").unwrap();
        let conditions = pod["status"]["conditions"].as_array().unwrap();
        conditions
            .iter()
            .any(|condition| condition["type"] == GATE && condition["status"] == "True")
    }
}

fn direct() -> Value {
    json!({ "service.cloud.tencent.com/direct-access": "true" })
}

#[tokio::test]
async fn a_gate_opens_when_the_load_balancer_serves_the_pod() {
    let world = World::new();
    world.service("web", direct());
    world.pod(true);
    let mut controllers = world.controllers();
    world.settle(&mut controllers).await;
    world.list();
    let gates = world.gates();
    let pending = gates.open().await.unwrap();
    assert_eq!((pending.opened, pending.pending.len()), (0, 1), "nothing is known of it");
    assert!(!world.is_open());

    world.cloud.set_alive(&["10.1.1.5:8080"]);
    assert_eq!(gates.open().await.unwrap(), Opened { opened: 1, ..Opened::default() });
    assert!(world.is_open());
    let pod = world.server.object("pods", "web-0").unwrap();
    assert_eq!(pod["status"]["conditions"].as_array().unwrap().len(), 3, "others are kept: {pod}");

    // It stays a target until the kubelet and then its EndpointSlice say that it is ready, and
    // nothing is asked or written, whatever the load balancer says.
    world.is_at_rest(&mut controllers).await;
    world.server.edit("pods", "web-0", |pod| {
        let conditions = pod["status"]["conditions"].as_array_mut().unwrap();
        let ready = conditions.iter_mut().find(|condition| condition["type"] == "Ready");
        ready.unwrap()["status"] = "True".into();
    });
    world.is_at_rest(&mut controllers).await;
    world.slice(&json!({ "ready": true, "serving": true, "terminating": false }));
    world.is_at_rest(&mut controllers).await;
    world.cloud.set_alive(&[]);
    world.server.stop_at(None);
    assert_eq!(gates.open().await.unwrap(), Opened::default());
    assert_eq!(world.server.writes(), 0);
    assert!(world.is_open());
}

/// Time is the test's: it passes when nothing else is to be done.
#[tokio::test(start_paused = true)]
async fn a_process_opens_gates_with_the_rights_of_the_manifests() {
    let world = World::new();
    world.service("web", direct());
    let running = tokio::spawn(process(&world, "a").run(|_| {}));
    sleep(Duration::from_secs(30)).await;
    // The pod comes while watches stand.
    world.pod(true);
    sleep(Duration::from_secs(30)).await;
    assert_eq!(world.seen()[0].1[0].2, ["8080"]);
    assert!(!world.is_open());
    world.cloud.set_alive(&["10.1.1.5:8080"]);
    sleep(Duration::from_secs(10)).await;
    assert!(world.is_open());
    let used = world.server.used();
    assert!(used.contains(&("patch".into(), String::new(), "pods/status".into())), "{used:?}");
    for (verb, group, resource) in used {
        assert!(is_allowed(&verb, &group, &resource), "{verb} {group} {resource}");
    }
    running.abort();
}

#[tokio::test]
async fn a_pod_without_the_gate_is_not_kept() {
    let world = World::new();
    world.service("web", direct());
    world.pod(false);
    world.list();
    assert_eq!(world.shared.with(|store| store.of(&POD).count()), 0);
    assert_eq!(world.gates().open().await.unwrap(), Opened::default());
}

#[tokio::test]
async fn a_gate_that_may_not_be_opened_is_tried_again() {
    let world = World::new();
    world.service("web", direct());
    world.pod(true);
    world.settle(&mut world.controllers()).await;
    world.list();
    world.cloud.set_alive(&["10.1.1.5:8080"]);
    world.server.forbid("patch", "pods/status");
    let gates = world.gates();
    let refused = gates.open().await.unwrap();
    assert_eq!((refused.opened, refused.pending.len()), (0, 1));
    // What is missing is named, and counted.
    let (status, body) = health::readiness(&gates.metrics, &world.shared);
    assert!(status.starts_with("503"), "{body}");
    assert!(body.starts_with("cannot patch pods/status: "), "{body}");
    assert!(body.contains("cannot patch resource \"pods/status\""), "{body}");
    assert!(gates.metrics.text().contains("failed_object_writes_total 1\n"));
    world.server.allow_all();
    assert_eq!(gates.open().await.unwrap().opened, 1);
    assert_eq!(health::readiness(&gates.metrics, &world.shared).0, "200 OK");
}

#[tokio::test]
async fn a_pod_that_ends_is_unbound_when_it_is_gone() {
    let world = World::new();
    world.service("web", direct());
    world.pod(false);
    let mut controllers = world.controllers();
    world.settle(&mut controllers).await;
    assert_eq!(world.seen()[0].1[0].2, ["8080"]);
    world.slice(&json!({ "ready": false, "serving": true, "terminating": true }));
    assert_eq!(world.round(&mut controllers).await.unwrap().calls, 1);
    assert_eq!(world.seen()[0].1[0].2, ["8080"], "it is bound, with weight 0");
    world.server.stop_at(None);
    assert_eq!(world.round(&mut controllers).await.unwrap(), Synced::default());
    world.server.edit("endpointslices", "web-x", |slice| slice["endpoints"] = json!([]));
    assert_eq!(world.round(&mut controllers).await.unwrap().calls, 1);
    assert_eq!(world.seen()[0].1[0].2, [""; 0]);
}

#[tokio::test]
async fn sessions_that_client_ip_began_end_with_it() {
    let world = World::new();
    world.service("web", json!({}));
    let mut controllers = world.controllers();
    let affinity = |value: &str| {
        world.server.edit("services", "web", |service| {
            service["spec"]["sessionAffinity"] = value.into();
        });
    };
    let session = || -> i64 {
        let accounts = world.cloud.accounts();
        let balancers = accounts.values().flat_map(|account| account.load_balancers.values());
        balancers
            .flat_map(|balancer| &balancer.listeners)
            .map(|own| i64::from(own.session_seconds))
            .sum()
    };
    let note = || {
        let service = world.server.object("services", "web").unwrap();
        service["metadata"]["annotations"]["uturn.dev/session-affinity"].clone()
    };
    for (value, seconds, noted) in
        [("None", 0, Value::Null), ("ClientIP", 3600, json!("ClientIP")), ("None", 0, Value::Null)]
    {
        affinity(value);
        world.settle(&mut controllers).await;
        assert_eq!((session(), note()), (seconds, noted));
    }
}
