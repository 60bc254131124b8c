//! Random tenants: whatever one namespace writes, no call changes what another one's objects have,
//! and what is done does not depend on names.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use uturn_dice::Dice;

use crate::stage::Stage;
use crate::tenants::{EXISTING, all_of, by_hand, controllers};
use crate::world::World;

/// How many cases there are of each property.
const CASES: u64 = 12;
const PORTS: [u16; 3] = [80, 81, 443];
const HOSTS: [&str; 3] = ["a.example.com", "b.example.com", "c.example.com"];
const CURRENT: &str = "service.kubernetes.io/loadbalance-id";
const INGRESS_CURRENT: &str = "kubernetes.io/ingress.qcloud-loadbalance-id";
const FINALIZER: &str = "service.k8s.tencent/resources";

/// An object before it has a name: `tenant` and `number` tell it apart.
#[derive(Clone, Debug)]
struct Drawn {
    tenant: usize,
    number: usize,
    age: usize,
    is_ingress: bool,
    value: Value,
}

/// Draws an object that may name any of the load balancers. A hostile one has what only the
/// controllers write, and all that may go wrong.
fn draw(dice: &mut Dice, tenant: usize, number: usize, ids: &[String], is_hostile: bool) -> Drawn {
    let age = dice.below(60);
    let is_ingress = dice.once_in(3);
    let cloud = if is_ingress { "ingress.cloud.tencent.com" } else { "service.cloud.tencent.com" };
    let existing = if is_ingress { "kubernetes.io/ingress.existLbId" } else { EXISTING };
    let mut annotations = Map::new();
    if !dice.once_in(4) {
        annotations.insert(existing.to_owned(), dice.pick(ids).as_str().into());
    }
    for (key, values) in [
        ("pass-to-target", &["true", "false"][..]),
        ("security-groups", &["sg-aaaaaaaa", "sg-bbbbbbbb"]),
    ] {
        if dice.once_in(3) {
            annotations.insert(format!("{cloud}/{key}"), dice.choose(values).into());
        }
    }
    if is_ingress && !dice.once_in(4) {
        annotations.insert(format!("{cloud}/enable-group"), "true".into());
    }
    if is_hostile {
        let current = if is_ingress { INGRESS_CURRENT } else { CURRENT };
        if dice.once_in(2) {
            annotations.insert(current.to_owned(), dice.pick(ids).as_str().into());
        }
        if dice.once_in(6) {
            annotations.insert(format!("{cloud}/mode"), "skip".into());
        }
        if dice.once_in(4) {
            let key =
                if is_ingress { "kubernetes.io/ingress" } else { "service.kubernetes.io/service" };
            let tag = dice.choose(&["tke-lb-serviceuuid", "tke-lb-ingress-uuid", "tke-clusterId"]);
            let text = json!({ "Number": 2, "Tags": [{ "TagKey": tag, "TagValue": "uid-0-0" }] });
            annotations.insert(format!("{key}.extensiveParameters"), text.to_string().into());
        }
    }
    let port = dice.choose(&PORTS);
    let node_port = 30_000 + 100 * tenant + number;
    let mut port = json!({ "name": "web", "port": port, "targetPort": 8080, "nodePort": node_port,
        "protocol": "TCP" });
    let mut metadata = json!({ "annotations": annotations, "uid": format!("uid-{tenant}-{number}"),
        "creationTimestamp": format!("2026-01-01T00:00:{age:02}Z") });
    let mut kind = "LoadBalancer";
    if is_hostile {
        if dice.once_in(3) {
            metadata["finalizers"] = json!([FINALIZER]);
            if dice.once_in(3) {
                metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
            }
        }
        if dice.once_in(4) {
            kind = "ClusterIP";
        }
        if dice.once_in(8) && !is_ingress {
            port["port"] = "none".into();
        }
    }
    let spec = if is_ingress {
        let rules: Vec<Value> = (0..dice.between(1, 2))
            .map(|_| {
                let mut rule = json!({ "http": { "paths": [{ "path": "/", "pathType": "Prefix",
                        "backend": null }] } });
                rule["host"] = dice.choose(&HOSTS).into();
                rule
            })
            .collect();
        json!({ "rules": rules })
    } else {
        json!({ "type": kind, "clusterIP": format!("172.16.{tenant}.{}", 10 + number),
            "ports": [port] })
    };
    let value = json!({ "metadata": metadata, "spec": spec });
    Drawn { tenant, number, age, is_ingress, value }
}

/// Names of tenants and objects. The order of the names is turned around by `is_turned`.
struct Names {
    is_turned: bool,
}

impl Names {
    fn of(&self, tenant: usize, number: usize) -> (String, String) {
        let turn = |number: usize| if self.is_turned { 30 - number } else { number };
        (format!("t{:02}", turn(tenant)), format!("o{:02}", turn(number)))
    }
}

/// Writes an object under its name. An Ingress has a Service of its own behind it.
fn write(world: &World, names: &Names, drawn: &Drawn) {
    let (namespace, name) = names.of(drawn.tenant, drawn.number);
    let mut value = drawn.value.clone();
    value["metadata"]["name"] = name.as_str().into();
    value["metadata"]["namespace"] = namespace.as_str().into();
    if !drawn.is_ingress {
        value["apiVersion"] = "v1".into();
        value["kind"] = "Service".into();
        return world.server.apply("services", value);
    }
    value["apiVersion"] = "networking.k8s.io/v1".into();
    value["kind"] = "Ingress".into();
    let backend = format!("{name}-backend");
    for rule in value["spec"]["rules"].as_array_mut().unwrap() {
        rule["http"]["paths"][0]["backend"] =
            json!({ "service": { "name": backend, "port": { "number": 80 } } });
    }
    world.server.apply("ingresses", value);
    let (tenant, number) = (drawn.tenant, drawn.number);
    world.server.apply(
        "services",
        json!({ "apiVersion": "v1", "kind": "Service",
            "metadata": { "name": backend, "namespace": namespace,
                "uid": format!("uid-{tenant}-{number}-backend") },
            "spec": { "type": "NodePort", "clusterIP": format!("172.17.{tenant}.{}", 10 + number),
                "ports": [{ "name": "web", "port": 80, "targetPort": 8080,
                    "nodePort": 30_000 + 100 * tenant + number }] } }),
    );
}

/// What a tenant's objects have: everything that sends to them, and what encloses that. Which
/// task was the last one of a load balancer is nobody's.
fn possessions(world: &World, tenant: usize) -> BTreeMap<String, Value> {
    let is_own =
        |port: &Value| port.as_u64().is_some_and(|port| (port as usize - 30_000) / 100 == tenant);
    let sends = |value: &Value| {
        value["targets"].as_array().into_iter().flatten().any(|target| is_own(&target["port"]))
    };
    let without = |value: &Value, members: &[&str]| {
        let mut value = value.clone();
        members.iter().for_each(|member| drop(value.as_object_mut().unwrap().remove(*member)));
        value
    };
    let mut all = BTreeMap::new();
    let accounts = world.cloud.accounts();
    for balancer in accounts.values().flat_map(|account| account.load_balancers.values()) {
        let id = &balancer.id;
        let value = serde_json::to_value(balancer).unwrap();
        for listener in value["listeners"].as_array().unwrap() {
            let at = format!("{id} {}", listener["id"]);
            if sends(listener) {
                all.insert(at.clone(), listener.clone());
            }
            for rule in listener["rules"].as_array().into_iter().flatten() {
                if sends(rule) {
                    all.insert(format!("{at} {}", rule["id"]), rule.clone());
                    let rest = without(listener, &["rules"]);
                    all.insert(at.clone(), rest);
                }
            }
        }
        // The first user of a load balancer decides what belongs to the whole of it.
        let uid = format!("\"uid-{tenant}-");
        let is_owner = value["tags"].to_string().contains(&uid)
            || record_of(world, id)["owner"]["uid"].to_string().starts_with(&uid);
        if is_owner {
            all.insert(id.clone(), without(&value, &["listeners", "last_task"]));
        }
    }
    all
}

fn record_of(world: &World, id: &str) -> Value {
    let maps = world.server.objects("configmaps");
    let text = maps.iter().find_map(|map| map["data"][id].as_str());
    text.map(|text| serde_json::from_str(text).unwrap()).unwrap_or_default()
}

async fn rounds(world: &World, shares: &[&str], is_new: bool) {
    let mut own = controllers(world, "cls-aaaaaaaa", shares);
    for round in 0..4 {
        if is_new && round == 2 {
            own = controllers(world, "cls-aaaaaaaa", shares);
        }
        // A round in which no object can be read says so.
        let _ = world.round(&mut own).await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_others_write_changes_nothing_that_an_object_has() {
    let (mut compared, mut shared) = (0, 0);
    for case in 0..CASES {
        let dice = &mut Dice::of_case(40, case);
        let world = World::new();
        let mut ids: Vec<String> = (0..2).map(|_| by_hand(&world, &json!([]))).collect();
        let share: Vec<String> = ids.iter().map(|id| format!("{id}=*")).collect();
        let share: Vec<&str> =
            share.iter().map(String::as_str).filter(|_| dice.once_in(2)).collect();
        let names = Names { is_turned: dice.once_in(2) };
        for number in 0..dice.between(1, 4) {
            write(&world, &names, &draw(dice, 1, number, &ids, false));
        }
        rounds(&world, &share, false).await;
        // Others may name the load balancers that were made for the first tenant too.
        let accounts = world.cloud.accounts();
        ids =
            accounts.values().flat_map(|account| account.load_balancers.keys().cloned()).collect();
        let before = possessions(&world, 1);
        for step in 0..3 {
            for number in 0..dice.between(1, 4) {
                let tenant = dice.choose(&[0, 2]);
                write(&world, &names, &draw(dice, tenant, number, &ids, true));
            }
            rounds(&world, &share, dice.once_in(2)).await;
            let after = possessions(&world, 1);
            for (what, value) in &before {
                assert_eq!(after.get(what), Some(value), "case {case}, step {step}: {what}");
            }
        }
        compared += before.len();
        shared += possessions(&world, 0).len() + possessions(&world, 2).len();
    }
    assert!(compared > 20 && shared > 8, "{compared} things were compared, {shared} shared");
}

/// What stands on load balancers, without ids.
fn outline(world: &World, ids: &[String]) -> Vec<Value> {
    let rule = |rule: &Value| json!([rule["domains"], rule["domain"], rule["url"], targets(rule)]);
    let listener = |listener: &Value| {
        let mut rules: Vec<Value> =
            listener["rules"].as_array().into_iter().flatten().map(rule).collect();
        rules.sort_by_key(Value::to_string);
        json!([listener["port"], listener["protocol"], targets(listener), rules])
    };
    let outline = |id: &String| {
        let found = all_of(world, id);
        let mut listeners: Vec<Value> =
            found["listeners"].as_array().unwrap().iter().map(listener).collect();
        listeners.sort_by_key(Value::to_string);
        json!([listeners, found["passes_to_target"], found["security_groups"]])
    };
    ids.iter().map(outline).collect()
}

fn targets(of: &Value) -> Vec<Value> {
    let mut targets: Vec<Value> = of["targets"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|target| target["port"].clone())
        .collect();
    targets.sort_by_key(Value::to_string);
    targets
}

#[tokio::test(start_paused = true)]
async fn what_is_done_does_not_depend_on_names() {
    let mut listeners = 0;
    for case in 0..CASES {
        let mut seen: Vec<(Vec<Value>, usize)> = Vec::new();
        for is_turned in [false, true] {
            let dice = &mut Dice::of_case(41, case);
            let names = Names { is_turned };
            let world = World::with(Stage::new(), 2);
            let ids: Vec<String> = (0..2).map(|_| by_hand(&world, &json!([]))).collect();
            let share: Vec<String> = ids.iter().map(|id| format!("{id}=*")).collect();
            let share: Vec<&str> =
                share.iter().map(String::as_str).filter(|_| dice.once_in(2)).collect();
            for _ in 0..2 {
                for number in 0..dice.between(2, 5) {
                    let tenant = dice.below(3);
                    let drawn = draw(dice, tenant, number, &ids, false);
                    assert!(drawn.age < 60);
                    write(&world, &names, &drawn);
                }
                rounds(&world, &share, true).await;
            }
            let events = world.server.objects("events").len();
            seen.push((outline(&world, &ids), events));
        }
        assert_eq!(seen[0], seen[1], "case {case}");
        let count = |outline: &Value| outline[0].as_array().unwrap().len();
        listeners += seen[0].0.iter().map(count).sum::<usize>();
    }
    assert!(listeners > 12, "only {listeners} listeners");
}
