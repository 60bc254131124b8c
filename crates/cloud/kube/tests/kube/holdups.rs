//! Objects of several tenants on one load balancer: what fails for one holds up no other.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::advance;
use uturn_cloud_api::unserved::Unserved;
use uturn_kube::sync::Controllers;

use crate::stage::Stage;
use crate::tenants::{EXISTING, all_of, by_hand, codes, controllers, service};
use crate::world::{World, ready};

/// A load balancer of `prod/web`, and of `aaa/front`, an Ingress whose certificate does not exist.
struct Shared {
    world: World,
    id: String,
    own: Controllers<Arc<Stage>>,
}

/// An Ingress with TLS at a port, for a Service of its namespace.
fn secure(at: &str, id: &str, port: u16, host: &str, more: &Value) -> Value {
    let (namespace, name) = at.split_once('/').unwrap();
    let mut annotations = json!({
        "kubernetes.io/ingress.existLbId": id,
        "ingress.cloud.tencent.com/listen-ports": json!([{ "HTTPS": port }]).to_string(),
    });
    for (key, value) in more.as_object().unwrap() {
        annotations[key] = value.clone();
    }
    json!({ "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": { "name": name, "namespace": namespace, "uid": format!("uid-{at}"),
            "creationTimestamp": "2026-01-01T00:00:01Z", "annotations": annotations },
        "spec": { "tls": [{ "secretName": "cert" }],
            "rules": [{ "host": host, "http": { "paths": [{ "path": "/", "pathType": "Prefix",
                "backend": { "service": { "name": "back", "port": { "number": 80 } } } }] } }] } })
}

/// The id of a certificate that the cloud does not have.
const UNKNOWN: &str = "Abcd1234";

impl Shared {
    async fn new() -> Self {
        let world = World::new();
        let id = by_hand(&world, &json!([]));
        let mut back = service("aaa/back", 3, 80, &json!({}));
        back["spec"]["type"] = "NodePort".into();
        world.server.apply("services", back);
        world.server.apply_certificate("aaa", "cert", UNKNOWN);
        // Its calls come first: those on the lowest port do.
        world.server.apply("ingresses", secure("aaa/front", &id, 443, "a.example.com", &json!({})));
        world.server.apply("services", service("prod/web", 5, 8080, &json!({ EXISTING: id })));
        let mut own = controllers(&world, "cls-aaaaaaaa", &[&format!("{id}=*")]);
        // The pauses of what fails become long.
        for _ in 0..10 {
            world.round(&mut own).await.unwrap();
            advance(Duration::from_secs(600)).await;
        }
        world.round(&mut own).await.unwrap();
        Self { world, id, own }
    }

    fn ports(&self) -> Vec<u64> {
        let found = all_of(&self.world, &self.id);
        let listeners = found["listeners"].as_array().cloned().unwrap_or_default();
        let mut ports: Vec<u64> =
            listeners.iter().map(|listener| listener["port"].as_u64().unwrap()).collect();
        ports.sort_unstable();
        ports
    }

    fn service(&self) -> Value {
        self.world.server.object_in("services", "prod", "web").unwrap()
    }

    /// A round in which no time passes, so that nothing is tried again that has to wait.
    async fn round(&mut self) {
        self.world.round(&mut self.own).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_that_fails_holds_up_no_other_tenant() {
    let mut shared = Shared::new().await;
    assert_eq!(shared.ports(), [8080], "the call before it failed");
    assert_eq!(ready(&shared.service()), ("True".to_owned(), "Success".to_owned()));
    assert_eq!(codes(&shared.world, "aaa/front"), ["E5003"]);
    assert_eq!(codes(&shared.world, "prod/web"), [""; 0]);
    // The other one's changes are done at once, however long the first one waits.
    shared.world.server.edit_in("services", "prod", "web", |service| {
        service["spec"]["ports"][0]["port"] = 9090.into();
    });
    shared.round().await;
    assert_eq!(shared.ports(), [9090]);
    assert_eq!(ready(&shared.service()), ("True".to_owned(), "Success".to_owned()));
    // So is a node that goes: its targets.
    shared.world.server.edit_global("nodes", "n1", |node| {
        node["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    });
    shared.round().await;
    let found = all_of(&shared.world, &shared.id);
    assert_eq!(found["listeners"][0]["targets"].as_array().unwrap().len(), 1, "{found}");
    // And its end.
    shared.world.server.delete_in("services", "prod", "web");
    shared.round().await;
    assert!(shared.world.server.object_in("services", "prod", "web").is_none());
    assert_eq!(shared.ports(), [0; 0]);
    // It is told once.
    assert_eq!(codes(&shared.world, "aaa/front"), ["E5003"]);
}

#[tokio::test(start_paused = true)]
async fn what_is_mended_is_done_although_others_fail() {
    let mut shared = Shared::new().await;
    let mut other = service("bbb/back", 4, 80, &json!({}));
    other["spec"]["type"] = "NodePort".into();
    shared.world.server.apply("services", other);
    shared.world.server.apply_certificate("bbb", "cert", UNKNOWN);
    let id = shared.id.clone();
    shared
        .world
        .server
        .apply("ingresses", secure("bbb/front", &id, 444, "b.example.com", &json!({})));
    shared.round().await;
    assert_eq!(codes(&shared.world, "bbb/front"), ["E5003"]);
    // Its certificate comes to exist; the first one's does not.
    let certificate = shared.world.cloud.certificate();
    shared.world.server.apply_certificate("bbb", "cert", &certificate);
    advance(Duration::from_secs(600)).await;
    shared.round().await;
    assert_eq!(shared.ports(), [444, 8080]);
    let front = shared.world.server.object_in("ingresses", "bbb", "front").unwrap();
    let conditions =
        &front["metadata"]["annotations"]["ingress.cloud.tencent.com/status.conditions"];
    assert!(conditions.as_str().unwrap().contains("\"Success\""), "{conditions}");
    assert_eq!(codes(&shared.world, "aaa/front"), ["E5003"]);
}

#[tokio::test(start_paused = true)]
async fn a_listener_that_is_not_served_holds_up_no_other_tenant() {
    let mut shared = Shared::new().await;
    shared.world.server.apply_certificate("aaa", "cert", &shared.world.cloud.certificate());
    advance(Duration::from_secs(600)).await;
    shared.round().await;
    assert_eq!(shared.ports(), [443, 8080]);
    let found = all_of(&shared.world, &shared.id);
    let listeners = found["listeners"].as_array().unwrap();
    let secure = listeners.iter().find(|listener| listener["port"] == 443).unwrap();
    shared.world.cloud.set_unserved(&[(secure["id"].as_str().unwrap(), Unserved::PortInUse)]);
    for _ in 0..10 {
        advance(Duration::from_secs(600)).await;
        shared.round().await;
    }
    assert_eq!(ready(&shared.service()), ("True".to_owned(), "Success".to_owned()));
    assert_eq!(codes(&shared.world, "prod/web"), [""; 0]);
    shared.world.server.edit_in("services", "prod", "web", |service| {
        service["spec"]["ports"][0]["port"] = 9090.into();
    });
    shared.round().await;
    assert_eq!(shared.ports(), [443, 9090]);
}
