//! One of several processes works.

use std::sync::Arc;
use std::time::Duration;

use kube::Client;
use tokio::time::{Instant, sleep, timeout};
use uturn_kube::lease::{Lease, LeaseSettings};
use uturn_kube::metrics::Metrics;

use crate::server::Server;

fn lease(client: Client, identity: &str) -> Lease {
    let settings = LeaseSettings::new("shop".to_owned(), identity.to_owned());
    Lease::new(client, settings, Arc::new(Metrics::default()))
}

fn holder(server: &Server) -> String {
    let lease = server.object("leases", "uturn-operator").unwrap();
    lease["spec"]["holderIdentity"].as_str().unwrap().to_owned()
}

#[tokio::test(start_paused = true)]
async fn a_lease_is_taken_over_when_its_holder_is_gone() {
    let server = Server::new();
    let (mut first, mut second) = (lease(server.client(), "a"), lease(server.client(), "b"));
    first.acquire().await;
    assert_eq!(holder(&server), "a");
    // As long as it is renewed, it is kept.
    let waiting = timeout(Duration::from_secs(300), second.acquire());
    tokio::select! {
        lost = first.keep() => panic!("{lost}"),
        result = waiting => assert!(result.is_err(), "taken from a live process"),
    }
    assert_eq!(holder(&server), "a");
    drop(first);
    let since = Instant::now();
    second.acquire().await;
    assert_eq!(holder(&server), "b");
    let waited = since.elapsed();
    assert!((11..=24).contains(&waited.as_secs()), "{waited:?}");
    let spec = server.object("leases", "uturn-operator").unwrap()["spec"].clone();
    assert_eq!(spec["leaseTransitions"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_process_that_cannot_renew_stops() {
    let server = Server::new();
    let mut first = lease(server.client(), "a");
    first.acquire().await;
    server.forbid("update", "leases");
    let since = Instant::now();
    let lost = first.keep().await;
    let held = since.elapsed();
    assert!(held <= Duration::from_secs(20), "{held:?}: {lost}");
    server.allow_all();
    // One that lost it to another process sees that at once.
    let mut second = lease(server.client(), "b");
    second.acquire().await;
    first.acquire().await;
    assert_eq!(holder(&server), "a");
    assert_eq!(second.keep().await.to_string(), "the lease was lost: another process holds it");
}

#[tokio::test(start_paused = true)]
async fn of_many_one_has_it() {
    let server = Server::new();
    let mut all = tokio::task::JoinSet::new();
    for number in 0..8 {
        let mut lease = lease(server.client(), &format!("p{number}"));
        all.spawn(async move {
            lease.acquire().await;
            number
        });
    }
    let first = all.join_next().await.unwrap().unwrap();
    // Its holder does not renew it, and within its time nobody else has it.
    let second = timeout(Duration::from_secs(10), all.join_next()).await;
    assert!(second.is_err(), "{first} and {second:?}");
    sleep(Duration::from_secs(1)).await;
    assert_eq!(holder(&server), format!("p{first}"));
}

#[tokio::test(start_paused = true)]
async fn clocks_are_not_compared() {
    let server = Server::new();
    let (mut first, mut second) = (lease(server.client(), "a"), lease(server.client(), "b"));
    first.acquire().await;
    // The holder's clock is years behind, and it renews the lease.
    let renewed = |time: &str| {
        server.edit("leases", "uturn-operator", |lease| lease["spec"]["renewTime"] = time.into());
    };
    let renewals = async {
        for second in 0..60 {
            renewed(&format!("2000-01-01T00:00:{second:02}.000000Z"));
            sleep(Duration::from_secs(4)).await;
        }
    };
    tokio::select! {
        () = renewals => {}
        () = second.acquire() => panic!("taken from a live process"),
    }
    // Its clock is years ahead, and it is gone.
    renewed("2100-01-01T00:00:00.000000Z");
    let since = Instant::now();
    second.acquire().await;
    assert_eq!(holder(&server), "b");
    assert!(since.elapsed() <= Duration::from_secs(24), "{:?}", since.elapsed());
}
