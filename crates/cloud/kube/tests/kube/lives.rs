//! Objects come, change and go.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;
use uturn_kube::sync::Synced;

use crate::world::{World, ready};

const FINALIZER: &str = "service.k8s.tencent/resources";
const CURRENT: &str = "service.kubernetes.io/loadbalance-id";

#[tokio::test]
async fn objects_become_load_balancers_and_learn_their_addresses() {
    let world = World::new();
    world.service("web", json!({}));
    world.ingress("front", "web", json!({}));
    let mut controllers = world.controllers();
    world.settle(&mut controllers).await;
    let names: Vec<String> = world.seen().into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["cls-aaaaaaaa_shop_front", "cls-aaaaaaaa_shop_web"]);

    let service = world.server.object("services", "web").unwrap();
    assert_eq!(service["metadata"]["finalizers"], json!([FINALIZER]));
    assert_eq!(service["status"]["loadBalancer"]["ingress"][0]["ipMode"], "VIP");
    assert_eq!(ready(&service), ("True".to_owned(), "Success".to_owned()));
    let id = service["metadata"]["annotations"][CURRENT].as_str().unwrap();
    let accounts = world.cloud.accounts();
    let found = accounts.values().find_map(|account| account.load_balancers.get(id)).unwrap();
    let address = found.addresses[0].to_string();
    assert_eq!(service["status"]["loadBalancer"]["ingress"][0]["ip"], *address);

    let ingress = world.server.object("ingresses", "front").unwrap();
    assert_eq!(ingress["metadata"]["finalizers"], json!([FINALIZER]));
    let address = &ingress["status"]["loadBalancer"]["ingress"][0];
    assert!(address["ip"].is_string() && address.get("ipMode").is_none(), "{address}");
    let conditions =
        &ingress["metadata"]["annotations"]["ingress.cloud.tencent.com/status.conditions"];
    let conditions: Value = serde_json::from_str(conditions.as_str().unwrap()).unwrap();
    assert_eq!(
        (&conditions[0]["type"], &conditions[0]["status"]),
        (&json!("Ready"), &json!("True"))
    );
    assert_eq!(world.events(), [].into());

    // At rest nothing is written, also by controllers that start anew.
    world.server.stop_at(None);
    assert_eq!(world.round(&mut controllers).await.unwrap(), Synced::default());
    assert_eq!(world.round(&mut world.controllers()).await.unwrap(), Synced::default());
    assert_eq!(world.server.writes(), 0);
}

#[tokio::test(start_paused = true)]
async fn the_first_rest_is_reported_also_with_nothing_to_do() {
    let world = World::new();
    world.list();
    let mut controllers = world.controllers();
    let first = async {
        loop {
            if let Some(synced) = controllers.step().await.unwrap() {
                return synced;
            }
        }
    };
    let first = timeout(Duration::from_secs(3600), first).await;
    assert_eq!(first, Ok(Synced::default()));
}

#[tokio::test]
async fn a_load_balancer_goes_before_its_object() {
    let world = World::new();
    world.service("web", json!({}));
    world.ingress("front", "web", json!({}));
    let mut controllers = world.controllers();
    world.settle(&mut controllers).await;
    world.server.delete("services", "web");
    assert!(world.server.object("services", "web").is_some(), "the finalizer holds it");
    world.server.delete("ingresses", "front");
    world.settle(&mut controllers).await;
    assert_eq!(world.seen(), []);
    assert!(world.server.object("services", "web").is_none());
    assert!(world.server.object("ingresses", "front").is_none());
}

#[tokio::test]
async fn a_service_that_wants_no_load_balancer_any_more_is_cleaned() {
    let world = World::new();
    world.service("web", json!({ "other": "kept" }));
    let mut controllers = world.controllers();
    world.settle(&mut controllers).await;
    world.server.edit("services", "web", |service| service["spec"]["type"] = "ClusterIP".into());
    world.settle(&mut controllers).await;
    assert_eq!(world.seen(), []);
    let service = world.server.object("services", "web").unwrap();
    assert_eq!(service["metadata"]["annotations"], json!({ "other": "kept" }));
    assert_eq!(service["metadata"]["finalizers"], json!([]));
    assert_eq!(service["status"], json!({ "loadBalancer": {}, "conditions": [] }));
}

#[tokio::test]
async fn what_is_the_users_outlives_the_objects_that_use_it() {
    let world = World::new();
    let make = json!({ "LoadBalancerType": "OPEN", "LoadBalancerName": "mine" });
    let made = world.cloud.by_hand("CreateLoadBalancer", make);
    let id = made["LoadBalancerIds"][0].clone();
    world.cloud.by_hand(
        "CreateListener",
        json!({ "LoadBalancerId": id, "Ports": [9000],
        "Protocol": "TCP", "ListenerNames": ["mine"] }),
    );
    let before = world.seen();
    world.service("web", json!({ "service.kubernetes.io/tke-existed-lbid": id }));
    let mut controllers = world.controllers();
    world.settle(&mut controllers).await;
    assert_eq!(world.seen()[0].1.len(), 2);
    let service = world.server.object("services", "web").unwrap();
    assert_eq!(service["metadata"]["annotations"][CURRENT], id);
    assert!(service["status"]["loadBalancer"]["ingress"][0]["ip"].is_string());
    // Another one cannot use its port, and says so once.
    world.service("other", json!({ "service.kubernetes.io/tke-existed-lbid": id }));
    world.settle(&mut controllers).await;
    world.settle(&mut controllers).await;
    let events = world.events();
    assert_eq!(events.values().copied().collect::<Vec<_>>(), [1], "{events:?}");
    assert!(events.keys().all(|message| message.starts_with("E4014: ")), "{events:?}");
    let other = [("web", "False"), ("other", "True")]
        .map(|(name, _)| ready(&world.server.object("services", name).unwrap()));
    assert!(other.contains(&("False".to_owned(), "E4014".to_owned())), "{other:?}");
    for name in ["web", "other"] {
        world.server.delete("services", name);
    }
    world.settle(&mut controllers).await;
    assert_eq!(world.seen(), before);
    assert_eq!(world.server.objects("services"), Vec::<Value>::new());
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_told_once_and_tried_again() {
    let world = World::new();
    world.service("web", json!({}));
    // No such instance: the load balancer and its listener are made, and its targets are not.
    let provider_id = |id: &str| json!({ "providerID": format!("qcloud:///1/{id}") });
    world.server.apply(
        "nodes",
        json!({ "apiVersion": "v1", "kind": "Node",
        "metadata": { "name": "n3" }, "spec": provider_id("ins-ffffffff"),
        "status": { "addresses": [{ "type": "InternalIP", "address": "10.0.0.13" }] } }),
    );
    let mut controllers = world.controllers();
    let mut calls = 0;
    for _ in 0..20 {
        calls += world.round(&mut controllers).await.unwrap().calls;
        tokio::time::advance(Duration::from_millis(500)).await;
    }
    assert_eq!(calls, 2);
    let events = world.events();
    assert_eq!(events.values().copied().collect::<Vec<_>>(), [1], "{events:?}");
    assert!(events.keys().all(|message| message.starts_with("E5003: ")), "{events:?}");
    assert_eq!(
        ready(&world.server.object("services", "web").unwrap()),
        ("False".to_owned(), "E5003".to_owned())
    );
    world.server.stop_at(None);
    world.round(&mut controllers).await.unwrap();
    assert_eq!(world.server.writes(), 0, "what is as it was is not written again");
    // The node goes, and the pause is waited for.
    world.server.edit_global("nodes", "n3", |node| {
        node["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    });
    tokio::time::advance(Duration::from_secs(300)).await;
    world.settle(&mut controllers).await;
    let service = world.server.object("services", "web").unwrap();
    assert_eq!(ready(&service), ("True".to_owned(), "Success".to_owned()));
}

#[tokio::test]
async fn secrets_are_read_only_where_they_are_named() {
    let world = World::new();
    let id = world.cloud.certificate();
    world.server.apply_certificate("shop", "unnamed", "A");
    world.service("web", json!({}));
    let mut controllers = world.controllers();
    world.settle(&mut controllers).await;
    let has_read = || world.server.used().iter().any(|(_, _, resource)| resource == "secrets");
    assert!(!has_read());
    world.ingress("front", "web", json!({ "tls": [{ "secretName": "cert" }] }));
    world.settle(&mut controllers).await;
    assert!(has_read());
    assert_eq!(world.events().keys().collect::<Vec<_>>(), ["E4010: there is no Secret shop/cert"]);
    world.server.apply_certificate("shop", "cert", &id);
    world.settle(&mut controllers).await;
    let front = world.seen().into_iter().find(|(name, _)| name.ends_with("front")).unwrap();
    assert_eq!(front.1[0].0, 443);
    assert!(world.server.used().contains(&("get".into(), String::new(), "secrets".into())));
    assert!(!world.server.used().contains(&("list".into(), String::new(), "secrets".into())));
}
