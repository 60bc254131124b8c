//! TkeServiceConfigs that the controllers make, and users edit.

use serde_json::{Value, json};

use crate::world::World;

const NAME: &str = "front-auto-ingress-config";

fn keepalive(world: &World) -> bool {
    let accounts = world.cloud.accounts();
    let balancers = accounts.values().flat_map(|account| account.load_balancers.values());
    let mut listeners = balancers.flat_map(|balancer| &balancer.listeners);
    listeners.any(|listener| listener.keepalive)
}

fn front(world: &World) {
    world.service("web", json!({}));
    world.ingress("front", "web", json!({}));
    world.server.edit("ingresses", "front", |ingress| {
        let annotations = json!({ "ingress.cloud.tencent.com/tke-service-config-auto": "true" });
        ingress["metadata"]["annotations"] = annotations;
    });
}

fn listeners(world: &World) -> Value {
    world.server.object("tkeserviceconfigs", NAME).unwrap()["spec"]["loadBalancer"]["l7Listeners"]
        .clone()
}

#[tokio::test]
async fn a_configuration_appears_and_what_users_write_into_it_counts() {
    let world = World::new();
    front(&world);
    let mut controllers = world.controllers();
    world.settle(&mut controllers).await;
    let expected = json!([{ "protocol": "HTTP", "port": 80,
        "domains": [{ "domain": "a.example.com", "rules": [{ "url": "/" }] }] }]);
    assert_eq!(listeners(&world), expected);
    let owner =
        &world.server.object("tkeserviceconfigs", NAME).unwrap()["metadata"]["ownerReferences"][0];
    assert_eq!((&owner["kind"], &owner["name"]), (&json!("Ingress"), &json!("front")));
    assert!(!keepalive(&world));
    for (value, expected) in [(1, true), (0, false), (1, true)] {
        world.server.edit("tkeserviceconfigs", NAME, |config| {
            config["spec"]["loadBalancer"]["l7Listeners"][0]["keepaliveEnable"] = value.into();
        });
        world.settle(&mut controllers).await;
        assert_eq!(keepalive(&world), expected);
        assert_eq!(listeners(&world)[0]["keepaliveEnable"], value);
    }
}

#[tokio::test]
async fn segments_follow_listeners_and_rules() {
    let world = World::new();
    front(&world);
    let mut controllers = world.controllers();
    world.settle(&mut controllers).await;
    world.server.edit("tkeserviceconfigs", NAME, |config| {
        let listener = &mut config["spec"]["loadBalancer"]["l7Listeners"][0];
        listener["keepaliveEnable"] = 1.into();
        listener["domains"][0]["rules"][0]["scheduler"] = "LEAST_CONN".into();
    });
    let path = |path: &str| {
        json!({ "path": path, "pathType": "Prefix",
            "backend": { "service": { "name": "web", "port": { "number": 80 } } } })
    };
    // A rule and a domain more: what the user wrote stays.
    world.server.edit("ingresses", "front", |ingress| {
        ingress["spec"]["rules"] = json!([
            { "host": "a.example.com", "http": { "paths": [path("/"), path("/api")] } },
            { "host": "b.example.com", "http": { "paths": [path("/")] } },
        ]);
    });
    world.settle(&mut controllers).await;
    let expected = json!([{ "protocol": "HTTP", "port": 80, "keepaliveEnable": 1, "domains": [
        { "domain": "a.example.com", "rules": [{ "url": "/", "scheduler": "LEAST_CONN" }, { "url": "/api" }] },
        { "domain": "b.example.com", "rules": [{ "url": "/" }] },
    ] }]);
    assert_eq!(listeners(&world), expected);
    assert!(keepalive(&world));
    // They go, and their segments with them.
    world.server.edit("ingresses", "front", |ingress| {
        ingress["spec"]["rules"] =
            json!([{ "host": "b.example.com", "http": { "paths": [path("/")] } }]);
    });
    world.settle(&mut controllers).await;
    let expected = json!([{ "protocol": "HTTP", "port": 80, "keepaliveEnable": 1,
        "domains": [{ "domain": "b.example.com", "rules": [{ "url": "/" }] }] }]);
    assert_eq!(listeners(&world), expected);
}
