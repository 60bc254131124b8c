//! Whole processes: watches, lease, rounds and HTTP.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::sleep;
use uturn_kube::controller::Process;
use uturn_kube::health;
use uturn_kube::kinds::WATCHED;
use uturn_kube::lease::LeaseSettings;
use uturn_kube::manifests::RIGHTS;
use uturn_kube::metrics::Metrics;
use uturn_kube::sync::Settings;
use uturn_kube::watch::{Shared, watch};

use crate::stage::Stage;
use crate::world::World;

pub(crate) fn process(world: &World, identity: &str) -> Process<Arc<Stage>> {
    Process {
        client: world.server.client(),
        api: Arc::clone(&world.cloud),
        settings: Settings {
            cluster: "cls-aaaaaaaa".to_owned(),
            network: "vpc-aaaaaaaa".to_owned(),
            ..Settings::default()
        },
        lease: Some(LeaseSettings::new("kube-system".to_owned(), identity.to_owned())),
        metrics: Arc::new(Metrics::default()),
        shared: Shared::default(),
    }
}

/// Time is the test's: it passes when nothing else is to be done.
#[tokio::test(start_paused = true)]
async fn a_process_follows_the_cluster_and_another_takes_over() {
    let world = World::new();
    world.service("web", json!({}));
    let first = tokio::spawn(process(&world, "a").run(|_| {}));
    let second = tokio::spawn(process(&world, "b").run(|_| {}));
    sleep(Duration::from_secs(30)).await;
    assert_eq!(world.seen().len(), 1);
    // An object that comes while watches stand, and one after they expired.
    world.service("late", json!({}));
    sleep(Duration::from_secs(30)).await;
    assert_eq!(world.seen().len(), 2);
    world.server.forget();
    world.service("later", json!({}));
    sleep(Duration::from_secs(120)).await;
    assert_eq!(world.seen().len(), 3);
    // What is changed by hand is mended without a change of an object.
    let id = world.server.object("services", "web").unwrap()["metadata"]["annotations"]
        ["service.kubernetes.io/loadbalance-id"]
        .clone();
    let before = world.seen();
    world
        .cloud
        .by_hand("DeleteLoadBalancer", json!({ "LoadBalancerIds": [id], "ForceDelete": true }));
    sleep(Duration::from_secs(120)).await;
    assert_eq!(world.seen(), before);
    // The holder of the lease dies, and the other one works.
    let lease = || world.server.objects("leases").remove(0);
    let holder = lease()["spec"]["holderIdentity"].as_str().unwrap().to_owned();
    let (dead, alive) = if holder == "a" { (first, second) } else { (second, first) };
    dead.abort();
    world.server.delete("services", "late");
    sleep(Duration::from_secs(60)).await;
    assert_ne!(lease()["spec"]["holderIdentity"], *holder);
    assert_eq!(world.seen().len(), 2);
    assert!(world.server.object("services", "late").is_none());
    // Nothing was asked that the manifests do not allow.
    for (verb, group, resource) in world.server.used() {
        assert!(is_allowed(&verb, &group, &resource), "{verb} {group} {resource}");
    }
    // An API server that fails for a while.
    world.server.stop_at(Some(0));
    world.service("web2", json!({}));
    sleep(Duration::from_secs(5)).await;
    world.server.stop_at(None);
    sleep(Duration::from_secs(180)).await;
    assert_eq!(world.seen().len(), 3);
    alive.abort();
}

/// Whether a rule of the manifests has these.
pub(crate) fn is_allowed(verb: &str, group: &str, resource: &str) -> bool {
    let group = if group.is_empty() { "\"\"" } else { group };
    let rules = RIGHTS.split("- apiGroups: ").skip(1);
    let list = |rule: &str, key: &str| -> Vec<String> {
        let line = rule.lines().find_map(|line| line.trim().strip_prefix(key)).unwrap_or_default();
        let line = line.trim().trim_start_matches('[').trim_end_matches(']');
        line.split(", ").map(str::to_owned).collect()
    };
    rules.into_iter().any(|rule| {
        rule.starts_with(&format!("[{group}]"))
            && list(rule, "resources:").iter().any(|own| own == resource)
            && list(rule, "verbs:").iter().any(|own| own == verb)
    })
}

async fn asked(address: std::net::SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    answer
}

#[tokio::test]
async fn what_is_missing_is_said_over_http() {
    let world = World::new();
    let metrics = Arc::new(Metrics::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(health::serve(listener, Arc::clone(&metrics), world.shared.clone()));
    assert!(asked(address, "/healthz").await.starts_with("HTTP/1.1 200 OK\r\n"));
    assert!(asked(address, "/none").await.starts_with("HTTP/1.1 404 "));
    let answer = asked(address, "/readyz").await;
    assert!(
        answer.starts_with("HTTP/1.1 503 ") && answer.contains("Node is not listed\n"),
        "{answer}"
    );
    world.server.forbid("list", "services");
    for kind in WATCHED {
        let (client, metrics) = (world.server.client(), Arc::clone(&metrics));
        tokio::spawn(watch(client, kind, world.shared.clone(), metrics));
    }
    while metrics.watch_failures().is_empty()
        || world.shared.with(|store| store.missing().len()) > 1
    {
        world.shared.changed.notified().await;
        tokio::task::yield_now().await;
    }
    let answer = asked(address, "/readyz").await;
    assert!(answer.contains("Service is not listed: ") && answer.contains("Forbidden"), "{answer}");
    assert!(!answer.contains("Node is not listed"), "{answer}");
    let answer = asked(address, "/metrics").await;
    assert!(answer.contains("uturn_operator_watch_failures_total{kind=\"Service\"}"), "{answer}");
}
