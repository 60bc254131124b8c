//! What a tenant may write, one thing after the other: whatever it is, the load balancers, the status
//! and the events of another tenant's objects stay as they are.

use serde_json::{Value, json};

use crate::tenants::{EXISTING, all_of, by_hand, codes, controllers, service};
use crate::world::World;

const CURRENT: &str = "service.kubernetes.io/loadbalance-id";
const INGRESS_CURRENT: &str = "kubernetes.io/ingress.qcloud-loadbalance-id";
const INGRESS_EXISTING: &str = "kubernetes.io/ingress.existLbId";
const PARAMETERS: &str = "service.kubernetes.io/service.extensiveParameters";
const INGRESS_PARAMETERS: &str = "kubernetes.io/ingress.extensiveParameters";
const FINALIZER: &str = "service.k8s.tencent/resources";

/// A world in which `prod` has a load balancer of its own, one that it names, and a Secret.
struct Victim {
    world: World,
    /// The one that it names.
    existing: String,
    /// The one that was made for it.
    own: String,
    /// The address of that.
    address: String,
}

impl Victim {
    async fn new() -> Self {
        let world = World::new();
        let existing = by_hand(&world, &json!([]));
        world.server.apply("services", service("prod/web", 5, 80, &json!({ EXISTING: existing })));
        world.server.apply("services", service("prod/own", 6, 80, &json!({})));
        world.server.apply_certificate("prod", "cert", &world.cloud.certificate());
        let mut own = controllers(&world, "cls-aaaaaaaa", &[]);
        world.settle(&mut own).await;
        let made = world.server.object_in("services", "prod", "own").unwrap();
        let own = made["metadata"]["annotations"][CURRENT].as_str().unwrap().to_owned();
        let address = made["status"]["loadBalancer"]["ingress"][0]["ip"].as_str().unwrap();
        Self { existing, own, address: address.to_owned(), world }
    }

    /// All that it has.
    fn has(&self) -> Value {
        let objects = ["web", "own"].map(|name| {
            let object = self.world.server.object_in("services", "prod", name).unwrap();
            json!([
                object["metadata"]["annotations"],
                object["metadata"]["finalizers"],
                object["status"]
            ])
        });
        let told = ["prod/web", "prod/own"].map(|at| codes(&self.world, at));
        json!([all_of(&self.world, &self.existing), all_of(&self.world, &self.own), objects, told])
    }
}

fn edited(mut object: Value, edit: impl FnOnce(&mut Value)) -> Value {
    edit(&mut object);
    object
}

/// An Ingress of `aaa`.
fn ingress(name: &str, annotations: Value, spec: Value) -> Value {
    let mut object = json!({ "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": { "name": name, "namespace": "aaa", "uid": format!("uid-aaa/{name}"),
            "creationTimestamp": "2025-01-01T00:00:00Z" },
        "spec": { "rules": [{ "host": "a.example.com", "http": { "paths": [
            { "path": "/", "pathType": "Prefix",
              "backend": { "service": { "name": "back", "port": { "number": 80 } } } }] } }] } });
    object["metadata"]["annotations"] = annotations;
    let Value::Object(spec) = spec else { panic!("{spec}") };
    object["spec"].as_object_mut().unwrap().extend(spec);
    object
}

/// What a tenant writes: a resource and an object.
fn attacks(victim: &Victim) -> Vec<(&'static str, &'static str, Value)> {
    let Victim { existing, own, address, .. } = victim;
    let of = |annotations: &Value| service("aaa/a", 0, 80, annotations);
    let tag = |key: &str, value: &str| {
        json!({ "Tags": [{ "TagKey": key, "TagValue": value }] }).to_string()
    };
    let status = json!({ "loadBalancer": { "ingress": [{ "ip": address, "ipMode": "VIP" }] } });
    let deleted = |object: Value| {
        edited(object, |object| {
            object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
            object["metadata"]["finalizers"] = json!([FINALIZER]);
        })
    };
    let cluster_ip =
        |object: Value| edited(object, |object| object["spec"]["type"] = "ClusterIP".into());
    vec![
        // 1.1: ports of a load balancer.
        ("the same port", "services", of(&json!({ EXISTING: existing }))),
        ("the one that was made for another", "services", of(&json!({ EXISTING: own }))),
        ("an id with spaces", "services", of(&json!({ EXISTING: format!(" {existing} ") }))),
        ("an id in capitals", "services", of(&json!({ EXISTING: existing.to_uppercase() }))),
        ("an id and more", "services", of(&json!({ EXISTING: format!("{existing},{own}") }))),
        (
            "an Ingress at the port",
            "ingresses",
            ingress("a", json!({ INGRESS_EXISTING: existing }), json!({})),
        ),
        (
            "an Ingress of a group",
            "ingresses",
            ingress(
                "a",
                json!({ INGRESS_EXISTING: existing,
                    "ingress.cloud.tencent.com/enable-group": "true" }),
                json!({}),
            ),
        ),
        (
            "the annotation of the other kind",
            "ingresses",
            ingress("a", json!({ EXISTING: existing, CURRENT: existing }), json!({})),
        ),
        (
            "settings of the whole load balancer",
            "services",
            of(&json!({ EXISTING: existing,
                "service.cloud.tencent.com/pass-to-target": "true",
                "service.cloud.tencent.com/security-groups": "sg-aaaaaaaa",
                "service.cloud.tencent.com/snat-pro-info": "{\"snatIps\":[]}" })),
        ),
        (
            "a UDP port beside it",
            "services",
            edited(of(&json!({ EXISTING: existing })), |object| {
                object["spec"]["ports"][0]["protocol"] = "UDP".into();
            }),
        ),
        // 1.2: load balancers of others, by parameters, tags and status.
        ("an id as its own", "services", of(&json!({ CURRENT: own }))),
        (
            "an id as its own, for an Ingress",
            "ingresses",
            ingress("a", json!({ INGRESS_CURRENT: own }), json!({})),
        ),
        (
            "an address in its status",
            "services",
            edited(of(&json!({ CURRENT: own })), |object| object["status"] = status.clone()),
        ),
        (
            "the UID's tag",
            "services",
            of(&json!({ PARAMETERS: tag("tke-lb-serviceuuid", "uid-prod/own") })),
        ),
        (
            "the tag in capitals",
            "services",
            of(&json!({ PARAMETERS: tag("TKE-LB-SERVICEUUID", "uid-prod/own") })),
        ),
        (
            "the tag after a tab",
            "services",
            of(&json!({ PARAMETERS: tag("\ttke-clusterId", "cls-bbbbbbbb") })),
        ),
        (
            "the member twice",
            "services",
            of(
                &json!({ PARAMETERS: r#"{"Tags":[],"Tags":[{"TagKey":"tke-lb-serviceuuid","TagValue":"uid-prod/own"}]}"# }),
            ),
        ),
        (
            "an address of another",
            "services",
            of(&json!({ PARAMETERS: json!({ "Vip": address }).to_string() })),
        ),
        (
            "an Ingress's parameters",
            "ingresses",
            ingress(
                "a",
                json!({ INGRESS_PARAMETERS: tag("tke-lb-ingress-uuid", "uid-prod/own") }),
                json!({}),
            ),
        ),
        // 1.3: what is taken for released.
        (
            "a ClusterIP Service that is deleted",
            "services",
            cluster_ip(deleted(of(&json!({ CURRENT: own })))),
        ),
        (
            "one that named another",
            "services",
            cluster_ip(deleted(of(&json!({ EXISTING: existing, CURRENT: existing })))),
        ),
        ("a Service that is deleted", "services", deleted(of(&json!({ CURRENT: own })))),
        (
            "with a finalizer, and not deleted",
            "services",
            cluster_ip(edited(of(&json!({ CURRENT: existing })), |object| {
                object["metadata"]["finalizers"] = json!([FINALIZER]);
            })),
        ),
        (
            "an Ingress of another class",
            "ingresses",
            deleted(ingress(
                "a",
                json!({ INGRESS_CURRENT: existing }),
                json!({ "ingressClassName": "nginx" }),
            )),
        ),
        (
            "a class of the tenant's for this controller's name",
            "ingresses",
            ingress(
                "a",
                json!({ "kubernetes.io/ingress.class": "qcloud\nnginx", INGRESS_EXISTING: existing }),
                json!({}),
            ),
        ),
        // 1.4: what cannot be read, and what is another's.
        (
            "a port that is none",
            "services",
            edited(of(&json!({ EXISTING: existing })), |object| {
                object["spec"]["ports"][0]["port"] = 70_000.into();
            }),
        ),
        (
            "ports that are a text",
            "services",
            edited(of(&json!({ EXISTING: existing })), |object| {
                object["spec"]["ports"] = "none".into();
            }),
        ),
        (
            "a Secret of another namespace",
            "ingresses",
            ingress("a", json!({}), json!({ "tls": [{ "secretName": "prod/cert" }] })),
        ),
        (
            "a Secret above its namespace",
            "ingresses",
            ingress(
                "a",
                json!({}),
                json!({ "tls": [{ "secretName": "../../prod/secrets/cert" }] }),
            ),
        ),
        (
            "a configuration of another namespace",
            "services",
            of(&json!({ EXISTING: existing,
                "service.cloud.tencent.com/tke-service-config": "prod/web" })),
        ),
        ("an id after a path", "services", of(&json!({ EXISTING: format!("../{existing}") }))),
        ("an id and a line", "services", of(&json!({ EXISTING: format!("{existing}\n") }))),
    ]
}

#[tokio::test]
async fn whatever_a_tenant_writes_another_one_keeps_what_it_has() {
    let victim = Victim::new().await;
    let before = victim.has();
    let mut back = service("aaa/back", 3, 80, &json!({}));
    back["spec"]["type"] = "NodePort".into();
    victim.world.server.apply("services", back);
    let mut own = controllers(&victim.world, "cls-aaaaaaaa", &[]);
    for (what, resource, object) in attacks(&victim) {
        victim.world.server.apply(resource, object);
        for _ in 0..3 {
            // An object that cannot be read is no failure of the others.
            let _ = victim.world.round(&mut own).await;
        }
        assert_eq!(victim.has(), before, "{what}");
        // It goes again, as its tenant deletes it.
        if victim.world.server.object_in(resource, "aaa", "a").is_some() {
            victim.world.server.delete_in(resource, "aaa", "a");
        }
        for _ in 0..3 {
            let _ = victim.world.round(&mut own).await;
        }
        assert_eq!(victim.has(), before, "after {what}");
        victim.world.server.remove(resource, "aaa", "a");
    }
    // A process that starts anew sees nothing else in it.
    victim.world.settle(&mut controllers(&victim.world, "cls-aaaaaaaa", &[])).await;
    assert_eq!(victim.has(), before);
    // Nothing was read of a Secret that no object of its namespace names.
    let used = victim.world.server.used();
    assert!(!used.iter().any(|(verb, _, resource)| verb == "list" && resource == "secrets"));
}
