//! The API server or the cloud is away, slow, busy or older than before. Time is the test's.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::sleep;
use uturn_kube::health;
use uturn_kube::metrics::Metrics;
use uturn_kube::watch::Shared;

use crate::processes::process;
use crate::stage::Trouble;
use crate::world::{World, ready};

/// A process that works, and what it says of itself.
struct Running {
    task: JoinHandle<()>,
    metrics: Arc<Metrics>,
    shared: Shared,
}

impl Running {
    fn new(world: &World, has_lease: bool) -> Self {
        let mut process = process(world, "a");
        if !has_lease {
            process.lease = None;
        }
        let (metrics, shared) = (Arc::clone(&process.metrics), process.shared.clone());
        let task = tokio::spawn(async move {
            // Where the lease is lost, the process is started again.
            drop(process.run(|_| {}).await);
        });
        Self { task, metrics, shared }
    }

    /// What `/readyz` answers.
    fn readiness(&self) -> (bool, String) {
        let (status, body) = health::readiness(&self.metrics, &self.shared);
        (status.starts_with("200"), body)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn seconds(seconds: u64) {
    sleep(Duration::from_secs(seconds)).await;
}

fn names(world: &World) -> Vec<String> {
    world.seen().into_iter().map(|(name, _)| name.replace("cls-aaaaaaaa_shop_", "")).collect()
}

fn is_ready(world: &World, name: &str) -> bool {
    world.server.object("services", name).is_some_and(|service| {
        let conditions = service["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|found| found["type"] == "Ready" && found["status"] == "True")
    })
}

#[tokio::test(start_paused = true)]
async fn the_api_server_is_gone_for_a_minute() {
    let world = World::new();
    world.service("web", json!({}));
    let running = Running::new(&world, false);
    seconds(30).await;
    world.server.go();
    // What is changed by hand meanwhile is mended, and nothing else happens.
    let before = world.seen();
    world.service("late", json!({}));
    seconds(60).await;
    assert_eq!(world.seen(), before);
    world.server.come_back();
    seconds(120).await;
    assert_eq!(names(&world), ["late", "web"]);
    assert!(is_ready(&world, "late"));
    assert_eq!(running.readiness(), (true, "ok\n".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_process_that_cannot_renew_its_lease_does_nothing_more() {
    let world = World::new();
    world.service("web", json!({}));
    let running = Running::new(&world, true);
    seconds(30).await;
    world.server.go();
    seconds(30).await;
    assert!(running.task.is_finished(), "another process may work");
    let id = world.server.object("services", "web").unwrap()["metadata"]["annotations"]
        ["service.kubernetes.io/loadbalance-id"]
        .clone();
    let deleted = json!({ "LoadBalancerIds": [id], "ForceDelete": true });
    world.cloud.by_hand("DeleteLoadBalancer", deleted);
    seconds(300).await;
    assert_eq!(world.seen(), [], "it works without the lease");
    world.server.come_back();
    let _again = Running::new(&world, true);
    seconds(60).await;
    assert_eq!(names(&world), ["web"]);
}

#[tokio::test(start_paused = true)]
async fn too_many_requests() {
    for has_lease in [true, false] {
        let world = World::new();
        world.service("web", json!({}));
        world.ingress("front", "web", json!({}));
        world.server.refuse(true);
        let _running = Running::new(&world, has_lease);
        seconds(60).await;
        world.server.refuse(false);
        seconds(120).await;
        assert_eq!(names(&world), ["front", "web"]);
        // Longer than that, and the lease would be lost.
        world.service("late", json!({}));
        world.server.refuse(true);
        seconds(10).await;
        world.server.refuse(false);
        seconds(60).await;
        assert_eq!(names(&world), ["front", "late", "web"]);
        assert!(is_ready(&world, "late") && is_ready(&world, "web"));
    }
}

#[tokio::test(start_paused = true)]
async fn an_api_server_with_an_older_revision() {
    let world = World::new();
    world.service("web", json!({}));
    let untouched = world.server.backup();
    let _running = Running::new(&world, false);
    seconds(30).await;
    let made = world.seen();
    let backup = world.server.backup();
    world.service("late", json!({}));
    seconds(30).await;
    assert_eq!(names(&world), ["late", "web"]);
    // Of what came after the backup, only the load balancer is left. It goes too.
    world.server.restore(&backup);
    seconds(120).await;
    assert_eq!(world.seen(), made);
    // From before the controllers wrote anything: the load balancer is found again.
    let id = |world: &World| {
        world.server.object("services", "web").unwrap()["metadata"]["annotations"]
            ["service.kubernetes.io/loadbalance-id"]
            .clone()
    };
    let before = id(&world);
    world.server.restore(&untouched);
    assert_eq!(id(&world), Value::Null);
    world.cloud.take_calls();
    seconds(120).await;
    assert_eq!((id(&world), world.seen()), (before, made));
    assert!(is_ready(&world, "web"));
    let calls = world.cloud.take_calls();
    assert!(calls.keys().all(|action| action.starts_with("Describe")), "{calls:?}");
}

#[tokio::test(start_paused = true)]
async fn what_hangs_does_not_hold_up_the_rest() {
    let world = World::new();
    world.cloud.trouble(Trouble { hangs: Some("shop_hangs".to_owned()), ..Trouble::default() });
    for name in ["hangs", "other1", "third-1"] {
        world.service(name, json!({}));
    }
    let _running = Running::new(&world, true);
    seconds(30).await;
    assert_eq!(names(&world), ["other1", "third-1"]);
    assert!(is_ready(&world, "other1") && is_ready(&world, "third-1"));
    // It goes on with changes too.
    world.server.delete("services", "other1");
    seconds(30).await;
    assert_eq!(names(&world), ["third-1"]);
}

#[tokio::test(start_paused = true)]
async fn a_busy_cloud_is_asked_again() {
    let codes = [
        "FailedOperation.ResourceInOperating",
        "RequestLimitExceeded",
        "InternalError",
        "FailedOperation.RequestTimeout",
    ];
    for code in codes {
        let world = World::new();
        world.cloud.trouble(Trouble { refuses: Some((code, 12)), ..Trouble::default() });
        world.service("web", json!({}));
        world.ingress("front", "web", json!({}));
        let _running = Running::new(&world, true);
        seconds(10).await;
        let service = world.server.object("services", "web").unwrap();
        assert_eq!(ready(&service), ("False".to_owned(), "E5003".to_owned()), "{code}");
        seconds(600).await;
        assert_eq!(names(&world), ["front", "web"], "{code}");
        assert!(is_ready(&world, "web"), "{code}");
        assert!(world.events().values().all(|times| *times == 1), "{:?}", world.events());
    }
}

#[tokio::test(start_paused = true)]
async fn a_batch_that_fails_halfway_is_completed() {
    let world = World::new();
    world.service("web", json!({}));
    world.ingress("front", "web", json!({}));
    world.cloud.trouble(Trouble { halves: 3, ..Trouble::default() });
    let _running = Running::new(&world, true);
    seconds(60).await;
    let targets = |world: &World| -> Vec<usize> {
        world.seen().iter().map(|(_, listeners)| listeners[0].2.len()).collect()
    };
    assert_eq!(targets(&world), [2, 2]);
    // A batch that unbinds fails halfway.
    for node in ["n1", "n2"] {
        world.server.edit_global("nodes", node, |node| {
            node["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        });
    }
    world.cloud.trouble(Trouble { halves: 1, ..Trouble::default() });
    seconds(60).await;
    assert_eq!(targets(&world), [0, 0]);
    assert!(is_ready(&world, "web"));
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_is_wrong_is_said_and_does_not_make_a_storm() {
    for is_at_start in [true, false] {
        let world = World::new();
        world.service("web", json!({}));
        let wrong = || world.cloud.trouble(Trouble { skew: 3600, ..Trouble::default() });
        if is_at_start {
            wrong();
        }
        let running = Running::new(&world, true);
        seconds(30).await;
        if !is_at_start {
            assert!(is_ready(&world, "web"));
            wrong();
            world.cloud.take_calls();
            world.service("late", json!({}));
        }
        seconds(3600).await;
        let (is_well, why) = running.readiness();
        assert!(!is_well && why.starts_with("cannot call the cloud's API: "), "{why}");
        assert!(why.contains("AuthFailure.SignatureExpire") && why.contains("clock"), "{why}");
        let calls = world.cloud.take_calls();
        assert!(calls.values().sum::<usize>() < 40, "{calls:?}");
        if !is_at_start {
            let service = world.server.object("services", "late").unwrap();
            assert_eq!(ready(&service), ("False".to_owned(), "E4001".to_owned()));
            assert!(service["status"].to_string().contains("AuthFailure.SignatureExpire"));
        }
        // The clock is set, and all goes on.
        world.cloud.trouble(Trouble::default());
        seconds(700).await;
        assert!(is_ready(&world, "web"));
        assert!(is_at_start || is_ready(&world, "late"));
        assert_eq!(running.readiness(), (true, "ok\n".to_owned()));
    }
}
