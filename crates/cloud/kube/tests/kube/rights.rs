//! Each right of the manifests is taken away: what is missing is said, and once it is back, all
//! goes on.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::time::sleep;
use uturn_kube::health;
use uturn_kube::manifests::RIGHTS;

use crate::processes::process;
use crate::world::World;

/// All verbs and resources of the manifests.
fn rights() -> BTreeSet<(String, String)> {
    let list = |rule: &str, key: &str| -> Vec<String> {
        let line = rule.lines().find_map(|line| line.trim().strip_prefix(key)).unwrap();
        let line = line.trim().trim_start_matches('[').trim_end_matches(']');
        line.split(", ").map(str::to_owned).collect()
    };
    let mut rights = BTreeSet::new();
    for rule in RIGHTS.split("- apiGroups: ").skip(1) {
        for verb in list(rule, "verbs:") {
            rights.extend(list(rule, "resources:").into_iter().map(|own| (verb.clone(), own)));
        }
    }
    rights
}

/// A world in which every right is needed.
fn world() -> World {
    let world = World::new();
    let id = world.cloud.certificate();
    world.service("web", json!({ "service.cloud.tencent.com/tke-service-config-auto": "true" }));
    world.ingress("front", "web", json!({ "tls": [{ "secretName": "cert" }] }));
    let mine = crate::tenants::by_hand(&world, &json!([]));
    world.service("shared", json!({ crate::tenants::EXISTING: mine }));
    world.server.apply_certificate("shop", "cert", &id);
    world
}

/// Changes that need what was not needed at first.
fn change(world: &World) {
    world.server.edit("services", "web", |service| {
        service["spec"]["ports"][0]["port"] = 81.into();
    });
    world.server.edit("ingresses", "front", |ingress| {
        ingress["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]["port"]["number"] =
            81.into();
    });
    world.server.edit("services", "shared", |service| {
        service["spec"]["ports"][0]["port"] = 82.into();
    });
    let auto = json!({ "service.cloud.tencent.com/tke-service-config-auto": "true" });
    world.service("newer", auto);
    // No such Service: an event.
    world.ingress("lost", "nowhere", json!({}));
}

#[tokio::test(start_paused = true)]
async fn a_right_that_is_missing_is_named() {
    let rights = rights();
    assert!(rights.len() > 20, "{rights:?}");
    for is_late in [false, true] {
        for (verb, resource) in &rights {
            // A lease that is held is not created, nor is a record that is there, which is read
            // once; and a configuration is changed after that.
            let right = format!("{verb} {resource}");
            let unused: &[&str] = if is_late {
                &["create leases", "create configmaps", "get configmaps"]
            } else {
                &["patch tkeserviceconfigs"]
            };
            // Pods with the readiness gate have tests of their own.
            if unused.contains(&&*right) || right == "patch pods/status" {
                continue;
            }
            let world = world();
            if !is_late {
                world.server.forbid(verb, resource);
                change(&world);
            }
            let mut process = process(&world, "a");
            let (metrics, shared) = (Arc::clone(&process.metrics), process.shared.clone());
            if resource != "leases" {
                process.lease = None;
            }
            let mut task = tokio::spawn(process.run(|_| {}));
            sleep(Duration::from_secs(60)).await;
            if is_late {
                world.server.forbid(verb, resource);
                // Watches that stand go on; they end from time to time.
                world.server.forget();
                change(&world);
                sleep(Duration::from_secs(30)).await;
            }
            let what = format!("{verb} {resource}, late: {is_late}");
            let (status, body) = health::readiness(&metrics, &shared);
            assert!(status.starts_with("503"), "{what}: {body}");
            let words = format!("cannot {verb} resource \"{resource}\"");
            assert!(body.contains(&words), "{what}: {body}");
            let is_told = ["patch services", "patch ingresses", "get secrets"]
                .contains(&&*format!("{verb} {resource}"));
            if is_told && !is_late {
                let events = world.events();
                assert!(events.keys().any(|event| event.contains(&words)), "{what}: {events:?}");
            }
            if (verb.as_str(), resource.as_str()) == ("get", "secrets") {
                let front = world.server.object("ingresses", "front").unwrap();
                let conditions = front["metadata"]["annotations"].to_string();
                assert!(conditions.contains("cannot get resource"), "{what}: {conditions}");
            }
            // The right is given back. A process that lost its lease is started again.
            world.server.allow_all();
            if task.is_finished() {
                task = tokio::spawn(crate::processes::process(&world, "b").run(|_| {}));
            }
            sleep(Duration::from_secs(700)).await;
            let seen: Vec<String> = world.seen().into_iter().map(|(name, _)| name).collect();
            let expected = ["front", "lost", "newer", "web"];
            let expected = expected.map(|name| format!("cls-aaaaaaaa_shop_{name}"));
            let expected = expected.into_iter().chain(["mine".to_owned()]).collect::<Vec<_>>();
            assert_eq!(seen, expected, "{what}");
            for service in world.server.objects("services") {
                let ready = crate::world::ready(&service);
                assert_eq!(ready, ("True".to_owned(), "Success".to_owned()), "{what}");
            }
            let (status, body) = health::readiness(&metrics, &shared);
            assert!(resource == "leases" || status.starts_with("200"), "{what}: {body}");
            task.abort();
        }
    }
}
