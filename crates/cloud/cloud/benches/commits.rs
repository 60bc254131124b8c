//! How writes scale with the clients that write at the same time: `cargo bench -p uturn-cloud
//! --bench commits`. A client that writes alone has a commit for each write, which is what the
//! others are compared with.

#![expect(clippy::print_stdout, reason = "a program that talks to people")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{fs, thread};

use jiff::Timestamp;
use serde_json::{Value, json};
use uturn_cloud::authorization::Received;
use uturn_cloud::cloud::{Batch, Cloud, Settings, Storage, StorageError};
use uturn_cloud::credentials::Credentials;
use uturn_cloud::ids::IdSource;
use uturn_cloud::inventory::Inventory;
use uturn_cloud::store::Store;
use uturn_cloud_api::wire::tc3::{self, Payload, Signable};

/// Writes of each measurement, by all of its clients together.
const WRITES: usize = 1_024;

/// A store whose commits are counted.
struct Counted {
    store: Store,
    commits: Arc<AtomicUsize>,
}

impl Storage for Counted {
    fn commit(&self, batch: &Batch) -> Result<(), StorageError> {
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.store.commit(batch)
    }
}

fn main() {
    let mut alone = None;
    for clients in [1, 4, 16, 64] {
        let (seconds, commits) = measure(clients);
        let alone = *alone.get_or_insert(seconds);
        println!(
            "{clients:>2} clients: {:>6.0} writes a second, {:.2} commits a write, {:.1} times as \
             fast as one commit a write",
            WRITES as f64 / seconds,
            commits as f64 / WRITES as f64,
            alone / seconds,
        );
    }
}

/// How many seconds the writes of so many clients take, and how many commits there are.
fn measure(clients: usize) -> (f64, usize) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("commits");
    let _ = fs::remove_dir_all(&folder);
    let (store, accounts) = Store::open(&folder).expect("a folder that can be written");
    let commits = Arc::new(AtomicUsize::new(0));
    let cloud = Cloud::new(
        Credentials::parse("id key").expect("a line of credentials"),
        Inventory::Open,
        Settings { task_time: Some(Duration::ZERO), ..Settings::default() },
        Box::new(Counted { store, commits: Arc::clone(&commits) }),
        IdSource::random(),
        accounts,
    );
    let balancers: Vec<String> = (0..clients)
        .map(|_| {
            let created =
                send(&cloud, "CreateLoadBalancer", &json!({ "LoadBalancerType": "OPEN" }));
            created["LoadBalancerIds"][0].as_str().expect("an id").to_owned()
        })
        .collect();
    let before = commits.load(Ordering::Relaxed);
    let start = Instant::now();
    thread::scope(|scope| {
        for balancer in &balancers {
            let cloud = &cloud;
            scope.spawn(move || {
                for number in 0..WRITES / clients {
                    let name = format!("{balancer}-{number}");
                    let renamed = json!({ "LoadBalancerId": balancer, "LoadBalancerName": name });
                    send(cloud, "ModifyLoadBalancerAttributes", &renamed);
                }
            });
        }
    });
    let seconds = start.elapsed().as_secs_f64();
    let commits = commits.load(Ordering::Relaxed) - before;
    drop(cloud);
    // What is left is in the folder for temporary files, and the next run removes it.
    let _ = fs::remove_dir_all(&folder);
    (seconds, commits)
}

/// Sends a signed request; it has to succeed.
fn send(cloud: &Cloud, action: &str, parameters: &Value) -> Value {
    let (now, body) = (Timestamp::now(), parameters.to_string());
    let signable = Signable {
        method: "POST",
        query: "",
        headers: vec![("content-type", "application/json"), ("host", "clb")],
        payload: Payload::Signed(body.as_bytes()),
    };
    let authorization = tc3::authorization("id", "key", &signable, now, "clb");
    let headers = [
        ("Host", "clb"),
        ("Content-Type", "application/json"),
        ("Authorization", &*authorization),
        ("X-TC-Action", action),
        ("X-TC-Version", "2018-03-17"),
        ("X-TC-Region", "ap-guangzhou"),
        ("X-TC-Timestamp", &now.as_second().to_string()),
    ];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned()));
    let request = Received { method: "POST", query: "", headers: &headers, body: body.as_bytes() };
    let answer: Value =
        serde_json::from_slice(&cloud.answer(&request, now)).expect("answers are JSON");
    let response = &answer["Response"];
    assert!(response.get("Error").is_none(), "{response}");
    response.clone()
}
