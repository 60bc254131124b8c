//! The controllers are stopped at every write, lose rights, or work twice at once: the end is
//! right.

use std::sync::Arc;

use serde_json::json;
use uturn_kube::sync::Controllers;

use crate::stage::{Stage, Stop};
use crate::world::{Seen, World};

/// A world with objects that come, change and go.
fn world() -> World {
    let world = World::new();
    world.service("web", json!({}));
    world.service("other", json!({ "service.cloud.tencent.com/pass-to-target": "true" }));
    world.ingress("front", "web", json!({}));
    world
}

fn change(world: &World) {
    world.server.delete("services", "other");
    world.server.delete("ingresses", "front");
    world.service("late", json!({}));
}

fn check(world: &World, expected: &Seen, what: &str) {
    assert_eq!(world.seen(), *expected, "{what}");
    let left: Vec<_> = world.server.objects("services");
    assert_eq!(left.len(), 2, "{what}");
    for service in left {
        assert_eq!(service["metadata"]["finalizers"].as_array().unwrap().len(), 1, "{what}");
        assert!(service["status"]["loadBalancer"]["ingress"][0]["ip"].is_string(), "{what}");
    }
    assert!(world.server.objects("ingresses").is_empty(), "{what}");
}

async fn expected() -> Seen {
    let world = world();
    let mut controllers = world.controllers();
    world.settle(&mut controllers).await;
    change(&world);
    world.settle(&mut controllers).await;
    let seen = world.seen();
    assert_eq!(seen.len(), 2);
    check(&world, &seen, "without a fault");
    seen
}

/// Rounds with what fails, then a new process. What waits after a failure waits in the process
/// that is gone.
async fn go_on(world: &World, mut controllers: Controllers<Arc<Stage>>) {
    for _ in 0..2 {
        // A round may fail as a whole.
        let _ = world.round(&mut controllers).await;
    }
    world.cloud.stop(Stop::Never);
    world.server.stop_at(None);
    world.server.allow_all();
    world.settle(&mut world.controllers()).await;
}

#[tokio::test]
async fn it_goes_on_from_every_call_of_the_cloud() {
    let expected = expected().await;
    let mut stops = 0;
    for is_first in [true, false] {
        for number in 0.. {
            let mut has_stopped = false;
            for stop in [Stop::Before(number), Stop::After(number)] {
                let world = world();
                let mut controllers = world.controllers();
                if !is_first {
                    world.settle(&mut controllers).await;
                    change(&world);
                }
                world.cloud.stop(stop);
                let _ = world.round(&mut controllers).await;
                has_stopped |= world.cloud.writes() > number;
                go_on(&world, controllers).await;
                if is_first {
                    change(&world);
                    world.settle(&mut world.controllers()).await;
                }
                check(&world, &expected, &format!("{stop:?}, first {is_first}"));
            }
            if !has_stopped {
                break;
            }
            stops += 2;
        }
    }
    assert!(stops > 20, "{stops} stops");
}

#[tokio::test]
async fn it_goes_on_from_every_write_to_an_object() {
    let expected = expected().await;
    let mut stops = 0;
    for is_first in [true, false] {
        for number in 0.. {
            let world = world();
            let mut controllers = world.controllers();
            if !is_first {
                world.settle(&mut controllers).await;
                change(&world);
            }
            world.server.stop_at(Some(number));
            let _ = world.round(&mut controllers).await;
            let is_over = world.server.writes() < number;
            go_on(&world, controllers).await;
            if is_first {
                change(&world);
                world.settle(&mut world.controllers()).await;
            }
            check(&world, &expected, &format!("write {number}, first {is_first}"));
            if is_over {
                break;
            }
            stops += 1;
        }
    }
    assert!(stops > 12, "{stops} stops");
}

#[tokio::test]
async fn rights_are_taken_away_one_by_one() {
    let expected = expected().await;
    let rights = [
        ("patch", "services"),
        ("patch", "services/status"),
        ("patch", "ingresses"),
        ("patch", "ingresses/status"),
        ("create", "events"),
    ];
    for (verb, resource) in rights {
        let world = world();
        world.server.forbid(verb, resource);
        let mut controllers = world.controllers();
        for _ in 0..2 {
            world.round(&mut controllers).await.unwrap();
        }
        if (verb, resource) == ("patch", "services") {
            let names: Vec<String> = world.seen().into_iter().map(|(name, _)| name).collect();
            assert_eq!(names, ["cls-aaaaaaaa_shop_front"], "nothing without its finalizer");
            let events = world.events();
            assert!(events.keys().any(|message| message.contains("finalizer")), "{events:?}");
        }
        go_on(&world, controllers).await;
        change(&world);
        world.settle(&mut world.controllers()).await;
        check(&world, &expected, &format!("{verb} {resource}"));
    }
}

#[tokio::test]
async fn two_processes_at_once_create_nothing_twice() {
    let expected = expected().await;
    let world = world();
    let (mut one, mut other) = (world.controllers(), world.controllers());
    for is_changed in [false, true] {
        if is_changed {
            change(&world);
        }
        for _ in 0..4 {
            world.list();
            let (_, _) = tokio::join!(one.sync(), other.sync());
        }
        world.settle(&mut world.controllers()).await;
    }
    check(&world, &expected, "two at once");
}
