//! Ingresses that change hands, and Secrets that change their content.

use serde_json::{Value, json};

use crate::world::World;

const CURRENT: &str = "kubernetes.io/ingress.qcloud-loadbalance-id";

#[tokio::test]
async fn an_ingress_of_another_class_is_released_and_taken_again() {
    let world = World::new();
    world.service("web", json!({}));
    world.ingress("front", "web", json!({ "ingressClassName": "qcloud" }));
    let mut controllers = world.controllers();
    world.settle(&mut controllers).await;
    let names =
        |world: &World| -> Vec<String> { world.seen().into_iter().map(|(name, _)| name).collect() };
    let both = ["cls-aaaaaaaa_shop_front", "cls-aaaaaaaa_shop_web"];
    assert_eq!(names(&world), both);
    let class = |name: &str| {
        world.server.edit("ingresses", "front", |ingress| {
            ingress["spec"]["ingressClassName"] = name.into();
        });
    };
    class("nginx");
    world.settle(&mut controllers).await;
    assert_eq!(names(&world), both[1..]);
    let front = world.server.object("ingresses", "front").unwrap();
    assert_eq!(front["metadata"]["finalizers"], json!([]));
    assert_eq!(front["metadata"]["annotations"], json!({}));
    class("qcloud");
    world.settle(&mut controllers).await;
    assert_eq!(names(&world), both);
    let front = world.server.object("ingresses", "front").unwrap();
    assert!(front["metadata"]["annotations"][CURRENT].is_string(), "{front}");
}

#[tokio::test]
async fn a_secret_that_names_another_certificate_changes_the_listener() {
    let world = World::new();
    let ids = [world.cloud.certificate(), world.cloud.certificate()];
    let secret = |id: &str| world.server.apply_certificate("shop", "cert", id);
    let served = || -> Vec<String> {
        let accounts = world.cloud.accounts();
        let balancers = accounts.values().flat_map(|account| account.load_balancers.values());
        let listeners = balancers.flat_map(|balancer| &balancer.listeners);
        let named = listeners.filter_map(|listener| listener.certificate.as_ref());
        named.map(|certificate| format!("{certificate:?}")).collect()
    };
    world.service("web", json!({}));
    world.ingress("front", "web", json!({ "tls": [{ "secretName": "cert" }] }));
    let mut controllers = world.controllers();
    for id in [&ids[0], &ids[1], &ids[0]] {
        secret(id);
        world.settle(&mut controllers).await;
        let found = served();
        assert!(found.len() == 1 && found[0].contains(id.as_str()), "{found:?} {id}");
    }
    assert_eq!(world.server.objects("events"), Vec::<Value>::new());
}
