//! Objects of several tenants that name the same load balancers: whatever one writes, what another
//! has stays as it is.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};
use uturn_kube::metrics::Metrics;
use uturn_kube::sync::{Controllers, Settings};
use uturn_operator::shares::Share;

use crate::stage::Stage;
use crate::world::World;

pub(crate) const EXISTING: &str = "service.kubernetes.io/tke-existed-lbid";
const CURRENT: &str = "service.kubernetes.io/loadbalance-id";
const FINALIZER: &str = "service.k8s.tencent/resources";

/// Controllers of a cluster, which know nothing yet, with what `--share-load-balancer` says.
pub(crate) fn controllers(
    world: &World,
    cluster: &str,
    shares: &[&str],
) -> Controllers<Arc<Stage>> {
    let shares = shares.iter().map(|text| text.parse::<Share>().unwrap()).collect();
    let (cluster, network) = (cluster.to_owned(), "vpc-aaaaaaaa".to_owned());
    let settings = Settings { cluster, network, shares, ..Settings::default() };
    let (client, cloud) = (world.server.client(), Arc::clone(&world.cloud));
    Controllers::new(client, cloud, settings, world.shared.clone(), Arc::new(Metrics::default()))
}

/// A Service of type LoadBalancer with a port. `age` is the second in which it was created.
pub(crate) fn service(at: &str, age: usize, port: u16, annotations: &Value) -> Value {
    let (namespace, name) = at.split_once('/').unwrap();
    json!({ "apiVersion": "v1", "kind": "Service",
        "metadata": { "name": name, "namespace": namespace, "uid": format!("uid-{at}"),
            "creationTimestamp": format!("2026-01-01T00:00:{age:02}Z"),
            "annotations": annotations },
        "spec": { "type": "LoadBalancer", "clusterIP": format!("172.16.1.{}", 10 + age),
            "ports": [{ "name": "web", "port": port, "protocol": "TCP", "targetPort": 8080,
                "nodePort": 30100 + age }] } })
}

/// An Ingress of a group, with a rule for each host.
fn grouped(at: &str, age: usize, lb: &str, backend: &str, hosts: &[&str]) -> Value {
    let (namespace, name) = at.split_once('/').unwrap();
    let rule = |host: &&str| {
        json!({ "host": host, "http": { "paths": [{ "path": "/", "pathType": "Prefix",
            "backend": { "service": { "name": backend, "port": { "number": 80 } } } }] } })
    };
    json!({ "apiVersion": "networking.k8s.io/v1", "kind": "Ingress",
        "metadata": { "name": name, "namespace": namespace, "uid": format!("uid-{at}"),
            "creationTimestamp": format!("2026-01-01T00:00:{age:02}Z"),
            "annotations": { "kubernetes.io/ingress.existLbId": lb,
                "ingress.cloud.tencent.com/enable-group": "true" } },
        "spec": { "rules": hosts.iter().map(rule).collect::<Vec<_>>() } })
}

/// A load balancer that was made by hand.
pub(crate) fn by_hand(world: &World, tags: &Value) -> String {
    let make = json!({ "LoadBalancerType": "OPEN", "LoadBalancerName": "mine", "Tags": tags });
    let made = world.cloud.by_hand("CreateLoadBalancer", make);
    made["LoadBalancerIds"][0].as_str().unwrap().to_owned()
}

/// All that the cloud has of a load balancer.
pub(crate) fn all_of(world: &World, id: &str) -> Value {
    let accounts = world.cloud.accounts();
    let mut found = accounts.values().filter_map(|account| account.load_balancers.get(id));
    found.next().map(|found| serde_json::to_value(found).unwrap()).unwrap_or_default()
}

/// The ports of a load balancer, with those of their targets.
fn ports(world: &World, id: &str) -> BTreeMap<u64, Vec<u64>> {
    let found = all_of(world, id);
    let listeners = found["listeners"].as_array().cloned().unwrap_or_default();
    let port = |value: &Value| value["port"].as_u64().unwrap();
    let targets = |listener: &Value| -> Vec<u64> {
        listener["targets"].as_array().into_iter().flatten().map(port).collect()
    };
    listeners.iter().map(|listener| (port(listener), targets(listener))).collect()
}

/// The codes of the events of an object.
pub(crate) fn codes(world: &World, at: &str) -> Vec<String> {
    let (namespace, name) = at.split_once('/').unwrap();
    let events = world.server.objects("events").into_iter().filter(|event| {
        event["involvedObject"]["namespace"] == namespace && event["involvedObject"]["name"] == name
    });
    let code = |event: Value| event["message"].as_str().unwrap()[..5].to_owned();
    events.map(code).collect()
}

/// Nothing is left to be done, and nothing is called.
async fn rests(world: &World, controllers: &mut Controllers<Arc<Stage>>) {
    world.settle(controllers).await;
    world.cloud.take_log();
    world.round(controllers).await.unwrap();
    assert_eq!(world.cloud.take_log(), [""; 0]);
}

fn intruder(id: &str) -> Value {
    json!({ EXISTING: id, "service.cloud.tencent.com/pass-to-target": "true",
        "service.cloud.tencent.com/security-groups": "sg-aaaaaaaa" })
}

#[tokio::test]
async fn who_has_a_port_keeps_it() {
    for shares in [&[][..], &["=prod,aaa"], &["=*"]] {
        let world = World::new();
        let id = by_hand(&world, &json!([]));
        let shares: Vec<String> = shares.iter().map(|share| format!("{id}{share}")).collect();
        let shares: Vec<&str> = shares.iter().map(String::as_str).collect();
        world.server.apply("services", service("prod/web", 5, 80, &json!({ EXISTING: id })));
        let mut own = controllers(&world, "cls-aaaaaaaa", &shares);
        world.settle(&mut own).await;
        let before = all_of(&world, &id);
        assert!(ports(&world, &id).contains_key(&80), "{before}");
        // One that is older, and comes first by its name, kind and UID.
        world.server.apply("services", service("aaa/a", 1, 80, &intruder(&id)));
        rests(&world, &mut own).await;
        assert_eq!(all_of(&world, &id), before, "{shares:?}");
        let expected = if shares.is_empty() { "E9002" } else { "E4014" };
        assert_eq!(codes(&world, "aaa/a"), [expected]);
        assert_eq!(codes(&world, "prod/web"), [""; 0]);
        // The same after a new start, and without the record of it, after which statuses tell.
        for is_forgotten in [false, true] {
            if is_forgotten {
                world.server.remove_all("configmaps");
            }
            rests(&world, &mut controllers(&world, "cls-aaaaaaaa", &shares)).await;
            assert_eq!(all_of(&world, &id), before, "{shares:?}, forgotten: {is_forgotten}");
        }
        // Once it is free, the next one gets it.
        world.server.delete_in("services", "prod", "web");
        let mut own = controllers(&world, "cls-aaaaaaaa", &shares);
        world.settle(&mut own).await;
        world.settle(&mut own).await;
        let ports = ports(&world, &id);
        assert_eq!(ports[&80], [30101, 30101], "{ports:?}");
    }
}

#[tokio::test]
async fn the_other_ports_are_free_where_an_entry_says_so() {
    let world = World::new();
    let id = by_hand(&world, &json!([]));
    world.server.apply("services", service("prod/web", 5, 80, &json!({ EXISTING: id })));
    let share = format!("{id}=prod,aaa");
    let mut own = controllers(&world, "cls-aaaaaaaa", &[&share]);
    world.settle(&mut own).await;
    let before = all_of(&world, &id);
    world.server.apply("services", service("aaa/a", 1, 81, &intruder(&id)));
    world.server.apply("services", service("bbb/b", 0, 82, &intruder(&id)));
    rests(&world, &mut own).await;
    assert_eq!(ports(&world, &id).into_keys().collect::<Vec<_>>(), [80, 81]);
    assert_eq!(codes(&world, "bbb/b"), ["E9002"]);
    // What belongs to the whole of it is as it was.
    let after = all_of(&world, &id);
    let members = before.as_object().unwrap().keys();
    let members = members.filter(|name| !["listeners", "last_task"].contains(&name.as_str()));
    for name in members {
        assert_eq!(after[name], before[name], "{name}");
    }
    // Who may no longer use it keeps what it has, and gets nothing more.
    let mut own = controllers(&world, "cls-aaaaaaaa", &[]);
    let after = all_of(&world, &id);
    world.server.edit_in("services", "aaa", "a", |service| {
        service["spec"]["ports"][0]["port"] = 85.into();
    });
    rests(&world, &mut own).await;
    assert_eq!(all_of(&world, &id), after);
    // When it goes, so does its listener.
    world.server.delete_in("services", "aaa", "a");
    rests(&world, &mut own).await;
    assert_eq!(ports(&world, &id).into_keys().collect::<Vec<_>>(), [80]);
    assert!(!world.server.objects("services").iter().any(|found| found["metadata"]["name"] == "a"));
}

#[tokio::test]
async fn newcomers_get_ports_by_their_age() {
    for (first, second) in [("zzz", "aaa"), ("aaa", "zzz")] {
        let world = World::new();
        let id = by_hand(&world, &json!([]));
        let old = format!("shop/{first}");
        world.server.apply("services", service(&old, 1, 80, &json!({ EXISTING: id })));
        let young = format!("shop/{second}");
        world.server.apply("services", service(&young, 2, 80, &json!({ EXISTING: id })));
        rests(&world, &mut controllers(&world, "cls-aaaaaaaa", &[])).await;
        assert_eq!(ports(&world, &id)[&80], [30101, 30101]);
        assert_eq!(
            (codes(&world, &old), codes(&world, &young)),
            (vec![], vec!["E4014".to_owned()])
        );
    }
}

#[tokio::test]
async fn a_rule_of_a_group_stays_with_who_has_it() {
    let world = World::new();
    let id = by_hand(&world, &json!([]));
    for (at, age) in [("shop/mine", 20), ("shop/theirs", 21)] {
        let mut backend = service(at, age, 80, &json!({}));
        backend["spec"]["type"] = "NodePort".into();
        world.server.apply("services", backend);
    }
    world.server.apply("ingresses", grouped("shop/m", 5, &id, "mine", &["a.example.com"]));
    let mut own = controllers(&world, "cls-aaaaaaaa", &[]);
    world.settle(&mut own).await;
    let rules = || -> BTreeMap<String, Value> {
        let found = all_of(&world, &id);
        let rules = found["listeners"][0]["rules"].as_array().unwrap().clone();
        let name = |rule: &Value| rule["domains"].to_string() + &rule["domain"].to_string();
        rules.into_iter().map(|rule| (name(&rule), rule)).collect()
    };
    let before = rules();
    assert_eq!(before.len(), 1);
    // It is older, its name comes first, and it has a host of its own.
    let hosts = ["a.example.com", "b.example.com"];
    world.server.apply("ingresses", grouped("shop/a", 1, &id, "theirs", &hosts));
    rests(&world, &mut own).await;
    let after = rules();
    assert_eq!(after.len(), 2);
    assert!(before.iter().all(|(name, rule)| after[name] == *rule), "{after:?}");
    // Then the first one wants the other's host too.
    world.server.apply("ingresses", grouped("shop/m", 5, &id, "mine", &hosts));
    rests(&world, &mut own).await;
    assert_eq!(rules(), after);
    // Also for controllers that start anew.
    rests(&world, &mut controllers(&world, "cls-aaaaaaaa", &[])).await;
    assert_eq!(rules(), after);
}

/// Two clusters that use one load balancer.
fn two_clusters() -> (World, World, String) {
    let first = World::new();
    let mut second = World::new();
    second.cloud = Arc::clone(&first.cloud);
    let id = by_hand(&first, &json!([]));
    (first, second, id)
}

#[tokio::test]
async fn two_clusters_on_a_load_balancer_come_to_rest() {
    for port in [80, 81] {
        let (first, second, id) = two_clusters();
        first.server.apply("services", service("prod/web", 5, 80, &json!({ EXISTING: id })));
        second.server.apply("services", service("prod/web", 1, port, &json!({ EXISTING: id })));
        let mut of_first = controllers(&first, "cls-aaaaaaaa", &[]);
        let mut of_second = controllers(&second, "cls-bbbbbbbb", &[]);
        for _ in 0..3 {
            first.settle(&mut of_first).await;
            second.settle(&mut of_second).await;
        }
        rests(&first, &mut of_first).await;
        rests(&second, &mut of_second).await;
        assert_eq!(ports(&first, &id)[&80], [30105, 30105]);
        let expected = if port == 80 { vec!["E4014".to_owned()] } else { Vec::new() };
        assert_eq!(codes(&second, "prod/web"), expected);
        // Without their records both know their own listeners again, by statuses and targets.
        let before = all_of(&first, &id);
        first.server.remove_all("configmaps");
        second.server.remove_all("configmaps");
        of_second = controllers(&second, "cls-bbbbbbbb", &[]);
        rests(&second, &mut of_second).await;
        of_first = controllers(&first, "cls-aaaaaaaa", &[]);
        rests(&first, &mut of_first).await;
        assert_eq!(all_of(&first, &id), before);
        // One goes: the other one's listener stays.
        second.server.delete_in("services", "prod", "web");
        rests(&second, &mut of_second).await;
        assert_eq!(ports(&first, &id).into_keys().collect::<Vec<_>>(), [80]);
        assert_eq!(second.server.objects("services"), Vec::<Value>::new());
        rests(&first, &mut of_first).await;
    }
}

#[tokio::test]
async fn what_is_not_recorded_is_not_deleted() {
    let world = World::new();
    let id = by_hand(&world, &json!([]));
    let key = "TKE-DEDICATED-LISTENER";
    world.cloud.by_hand(
        "CreateListener",
        json!({ "LoadBalancerId": id, "Ports": [80, 443], "Protocol": "TCP",
            "ListenerNames": [key, key] }),
    );
    world.server.apply("services", service("prod/web", 5, 8080, &json!({ EXISTING: id })));
    let mut own = controllers(&world, "cls-aaaaaaaa", &[]);
    world.settle(&mut own).await;
    let all: Vec<u64> = ports(&world, &id).into_keys().collect();
    assert_eq!(all, [80, 443, 8080]);
    let before = all_of(&world, &id);
    // Objects that want nothing, with the finalizer and annotations as if they had something.
    for (position, kind) in ["ClusterIP", "NodePort", "LoadBalancer"].into_iter().enumerate() {
        let at = format!("aaa/a{position}");
        let mut fake = service(&at, 1 + position, 80, &json!({ EXISTING: id, CURRENT: id }));
        fake["metadata"]["finalizers"] = json!([FINALIZER]);
        fake["spec"]["type"] = kind.into();
        if position == 2 {
            fake["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        }
        world.server.apply("services", fake);
    }
    rests(&world, &mut own).await;
    assert_eq!(all_of(&world, &id), before);
    rests(&world, &mut controllers(&world, "cls-aaaaaaaa", &[])).await;
    assert_eq!(all_of(&world, &id), before);
}

#[tokio::test]
async fn of_load_balancers_with_the_same_tags_none_is_deleted() {
    let tag = |key: &str, value: &str| json!({ "TagKey": key, "TagValue": value });
    for (has_both, name) in [(false, "aaa"), (true, "aaa"), (false, "zzz")] {
        let world = World::new();
        // Made before and after the Service's own: the smallest id wins no more.
        let mut tags = vec![
            tag("tke-createdBy-flag", "yes"),
            tag("tke-clusterId", "cls-aaaaaaaa"),
            tag("tke-lb-serviceuuid", "uid-prod/web"),
        ];
        if has_both {
            tags.push(tag("tke-lb-ingress-uuid", "uid-aaa/i"));
        }
        let before = (name == "aaa").then(|| by_hand(&world, &json!([])));
        world.server.apply("services", service("prod/web", 5, 80, &json!({})));
        let mut own = controllers(&world, "cls-aaaaaaaa", &[]);
        world.settle(&mut own).await;
        let web = world.server.object_in("services", "prod", "web").unwrap();
        let mine = web["metadata"]["annotations"][CURRENT].as_str().unwrap().to_owned();
        let other = match before {
            Some(id) => {
                for tag in &tags {
                    let [key, value] =
                        ["TagKey", "TagValue"].map(|name| tag[name].as_str().unwrap());
                    world.cloud.tag(&id, key, value);
                }
                id
            }
            None => by_hand(&world, &json!(tags)),
        };
        let both = [all_of(&world, &mine), all_of(&world, &other)];
        rests(&world, &mut own).await;
        rests(&world, &mut controllers(&world, "cls-aaaaaaaa", &[])).await;
        assert_eq!([all_of(&world, &mine), all_of(&world, &other)], both);
        assert!(codes(&world, "prod/web").iter().all(|code| code == "W9003"), "{name}");
        assert!(!codes(&world, "prod/web").is_empty(), "{name}");
        // The Service goes: neither goes with it, since nothing proves which was made for it.
        world.server.delete_in("services", "prod", "web");
        world.settle(&mut own).await;
        rests(&world, &mut controllers(&world, "cls-aaaaaaaa", &[])).await;
        assert_eq!([all_of(&world, &mine), all_of(&world, &other)], both);
        assert_eq!(world.server.objects("services"), Vec::<Value>::new());
    }
}

#[tokio::test]
async fn a_load_balancer_that_a_status_names_is_not_deleted() {
    let world = World::new();
    world.server.apply("services", service("prod/web", 5, 80, &json!({})));
    let mut own = controllers(&world, "cls-aaaaaaaa", &[]);
    world.settle(&mut own).await;
    let web = world.server.object_in("services", "prod", "web").unwrap();
    let mine = web["metadata"]["annotations"][CURRENT].as_str().unwrap().to_owned();
    let before = all_of(&world, &mine)["listeners"].clone();
    // Somebody changes its tag with the UID: it is not an orphan's for that.
    world.cloud.tag(&mine, "tke-lb-serviceuuid", "uid-of-nobody");
    rests(&world, &mut own).await;
    rests(&world, &mut controllers(&world, "cls-aaaaaaaa", &[])).await;
    assert_eq!(all_of(&world, &mine)["listeners"], before);
    assert!(codes(&world, "prod/web").contains(&"E9003".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn an_object_that_cannot_be_read_holds_up_no_other() {
    let world = World::new();
    let id = by_hand(&world, &json!([]));
    let share = format!("{id}=*");
    world.server.apply("services", service("prod/web", 5, 80, &json!({ EXISTING: id })));
    world.server.apply("services", service("aaa/a", 6, 81, &json!({ EXISTING: id })));
    let mut own = controllers(&world, "cls-aaaaaaaa", &[&share]);
    world.settle(&mut own).await;
    assert_eq!(ports(&world, &id).into_keys().collect::<Vec<_>>(), [80, 81]);
    // Objects that the API server would refuse, but that it had before.
    world.server.edit_in("services", "aaa", "a", |service| {
        service["spec"]["ports"][0]["port"] = "none".into();
    });
    let mut broken = service("bbb/b", 7, 82, &json!({ EXISTING: id }));
    broken["spec"]["ports"][0]["port"] = (-1).into();
    world.server.apply("services", broken);
    world.server.edit_in("services", "prod", "web", |service| {
        service["spec"]["ports"][0]["port"] = 8080.into();
    });
    // Nothing is waited for: what cannot be read is no failure of the others.
    for _ in 0..3 {
        world.round(&mut own).await.unwrap();
    }
    assert_eq!(ports(&world, &id).into_keys().collect::<Vec<_>>(), [81, 8080]);
    world.server.edit_in("services", "prod", "web", |service| {
        service["spec"]["ports"][0]["port"] = 8443.into();
    });
    world.round(&mut own).await.unwrap();
    assert_eq!(ports(&world, &id).into_keys().collect::<Vec<_>>(), [81, 8443]);
    assert_eq!(
        (codes(&world, "aaa/a"), codes(&world, "bbb/b")),
        (vec!["E5009".to_owned()], vec!["E5009".to_owned()])
    );
    assert_eq!(codes(&world, "prod/web"), [""; 0]);
    // A new start knows the same.
    let mut own = controllers(&world, "cls-aaaaaaaa", &[&share]);
    for _ in 0..3 {
        world.round(&mut own).await.unwrap();
    }
    assert_eq!(ports(&world, &id).into_keys().collect::<Vec<_>>(), [81, 8443]);
}

#[tokio::test(start_paused = true)]
async fn a_record_that_is_deleted_or_spoiled_changes_nothing() {
    for is_spoiled in [false, true] {
        let world = World::new();
        let id = by_hand(&world, &json!([]));
        world.server.apply("services", service("prod/web", 5, 80, &json!({ EXISTING: id })));
        let mut own = controllers(&world, "cls-aaaaaaaa", &[]);
        world.settle(&mut own).await;
        let before = all_of(&world, &id);
        let map = world.server.objects("configmaps").remove(0);
        let name = map["metadata"]["name"].as_str().unwrap().to_owned();
        let record = map["data"][&id].clone();
        assert!(record.is_string(), "{map}");
        if is_spoiled {
            world.server.edit_in("configmaps", "kube-system", &name, |map| {
                map["data"][&id] = "{}}".into();
            });
            // Who starts anew does not know who has which port, and says so.
            let mut anew = controllers(&world, "cls-aaaaaaaa", &[]);
            world.round(&mut anew).await.unwrap();
            assert_eq!(all_of(&world, &id), before);
            assert_eq!(codes(&world, "prod/web"), ["E5009"]);
        } else {
            world.server.remove_all("configmaps");
        }
        // Who goes on knows it, and writes it again when it changes.
        world.server.edit_in("services", "prod", "web", |service| {
            service["spec"]["ports"][0]["port"] = 81.into();
        });
        for _ in 0..4 {
            world.round(&mut own).await.unwrap();
            tokio::time::advance(std::time::Duration::from_secs(600)).await;
        }
        let expected = if is_spoiled { 80 } else { 81 };
        assert_eq!(ports(&world, &id).into_keys().collect::<Vec<_>>(), [expected]);
    }
}

#[tokio::test]
async fn parameters_make_nothing_that_is_another_objects() {
    let world = World::new();
    world.server.apply("services", service("prod/web", 5, 80, &json!({})));
    let mut own = controllers(&world, "cls-aaaaaaaa", &[]);
    world.settle(&mut own).await;
    let before = world.seen();
    for (position, text) in [
        r#"{"Tags":[{"TagKey":"tke-lb-serviceuuid","TagValue":"uid-prod/web"}]}"#,
        r#"{"Number":20}"#,
        r#"{"VpcId":"vpc-bbbbbbbb"}"#,
        r#"{"ClientToken":"uid-prod/web"}"#,
        r#"{"LoadBalancerName":"cls-aaaaaaaa_prod_web"}"#,
    ]
    .into_iter()
    .enumerate()
    {
        let at = format!("aaa/a{position}");
        let key = "service.kubernetes.io/service.extensiveParameters";
        world.server.apply("services", service(&at, 1, 80, &json!({ key: text })));
        rests(&world, &mut own).await;
        assert_eq!(world.seen(), before, "{text}");
        assert_eq!(codes(&world, &at), ["E4005"], "{text}");
    }
}
