//! Large clusters: how many calls there are, and how long they take at the rate that the API
//! allows. Time is the test's.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;
use std::time::{Duration, Instant as Clock};
use std::{env, fs};

use serde_json::json;
use tokio::time::{Instant, timeout};
use uturn_kube::sync::{Controllers, Synced};

use crate::stage::Stage;
use crate::world::World;

/// How many requests a second the API takes of each action.
const RATE: u32 = 20;

type Calls = BTreeMap<&'static str, usize>;

/// A large cluster, and its controllers.
struct Large {
    world: World,
    controllers: Controllers<Arc<Stage>>,
    services: usize,
    ingresses: usize,
}

/// What something took.
struct Taken {
    calls: Calls,
    writes: usize,
    /// As long as the API's rate makes it.
    time: Duration,
    /// Of this process, with the API server and the cloud.
    work: Duration,
}

impl Large {
    fn new(services: usize, ingresses: usize, nodes: usize) -> Self {
        let world = World::with(Stage::large(RATE), nodes);
        for number in 0..services {
            world.server.apply(
                "services",
                json!({ "apiVersion": "v1", "kind": "Service",
                    "metadata": { "name": format!("s{number}"), "namespace": "shop" },
                    "spec": { "type": "LoadBalancer",
                        "clusterIP": format!("172.16.{}.{}", number / 250, 1 + number % 250),
                        "ports": [{ "name": "web", "port": 80, "protocol": "TCP",
                            "targetPort": 8080, "nodePort": 30000 + number % 2767 }] } }),
            );
        }
        for number in 0..ingresses {
            world.ingress(&format!("i{number}"), &format!("s{}", number % services), json!({}));
        }
        let controllers = world.controllers();
        Self { world, controllers, services, ingresses }
    }

    /// Follows what changed, until nothing is left to be done.
    async fn follow(&mut self) -> Taken {
        let (since, work) = (Instant::now(), Clock::now());
        let before = self.world.server.writes();
        self.world.cloud.take_calls();
        self.world.list();
        let mut listed = Instant::now();
        while self.controllers.step().await.unwrap().is_none() {
            // As a watch does.
            if listed.elapsed() >= Duration::from_secs(1) {
                self.world.list();
                listed = Instant::now();
            }
        }
        // What was written comes back, and changes nothing.
        loop {
            self.world.list();
            let synced = self.controllers.follow().await.unwrap();
            assert_eq!(synced.left, 0);
            if synced == Synced::default() {
                break;
            }
        }
        Taken {
            calls: self.world.cloud.take_calls(),
            writes: self.world.server.writes() - before,
            time: since.elapsed(),
            work: work.elapsed(),
        }
    }

    /// Ten minutes in which nothing changes.
    async fn rest(&mut self) -> Taken {
        let (since, work) = (Instant::now(), Clock::now());
        let before = self.world.server.writes();
        self.world.cloud.take_calls();
        let controllers = &mut self.controllers;
        let forever = async {
            loop {
                controllers.step().await.unwrap();
            }
        };
        let ended: Result<(), _> = timeout(Duration::from_secs(600), forever).await;
        assert!(ended.is_err());
        Taken {
            calls: self.world.cloud.take_calls(),
            writes: self.world.server.writes() - before,
            time: since.elapsed(),
            work: work.elapsed(),
        }
    }

    fn lose_a_node(&self) {
        self.world.server.edit_global("nodes", "n1", |node| {
            node["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        });
    }

    fn change_a_service(&self) {
        self.world.server.edit("services", "s0", |service| {
            service["spec"]["ports"][0]["nodePort"] = 32_767.into();
        });
    }
}

/// How often an action was called.
fn of(calls: &Calls, action: &str) -> usize {
    calls.get(action).copied().unwrap_or_default()
}

/// The calls that change something.
fn writes(calls: &Calls) -> Calls {
    let writes = calls.iter().filter(|(action, _)| !action.starts_with("Describe"));
    writes.map(|(action, count)| (*action, *count)).collect()
}

/// How many calls change nothing.
fn reads(calls: &Calls) -> usize {
    calls.values().sum::<usize>() - writes(calls).values().sum::<usize>()
}

#[tokio::test(start_paused = true)]
async fn a_change_costs_calls_for_what_it_concerns() {
    let mut large = Large::new(300, 60, 20);
    let all = large.services + large.ingresses;
    // From nothing: each load balancer is made, looked at once, and told to its object.
    let made = large.follow().await;
    let expected = [
        ("BatchRegisterTargets", all),
        ("CreateListener", all),
        ("CreateLoadBalancer", all),
        ("CreateRule", large.ingresses),
    ];
    assert_eq!(writes(&made.calls), expected.into());
    assert_eq!(of(&made.calls, "DescribeListeners"), all);
    assert_eq!(of(&made.calls, "DescribeTargets"), all);
    assert!(
        (all..all + 10).contains(&of(&made.calls, "DescribeLoadBalancers")),
        "{:?}",
        made.calls
    );
    assert_eq!(made.writes, 3 * all, "a finalizer, annotations and a status");
    // A node goes: a call for each load balancer. It is not looked at before; what is asked for
    // meanwhile is the list, and some load balancers whose time it is.
    large.lose_a_node();
    let lost = large.follow().await;
    assert_eq!(writes(&lost.calls), [("BatchDeregisterTargets", all)].into());
    assert!(reads(&lost.calls) <= 60, "{:?}", lost.calls);
    assert_eq!(lost.writes, 0);
    // A Service changes, and with it the Ingress that sends to it: no other load balancer is
    // asked for.
    large.change_a_service();
    let changed = large.follow().await;
    let expected = [("BatchDeregisterTargets", 2), ("BatchRegisterTargets", 2)];
    assert_eq!(writes(&changed.calls), expected.into());
    assert!(reads(&changed.calls) <= 60, "{:?}", changed.calls);
    // At rest nothing is written, and what is known is looked at again bit by bit.
    let rest = large.rest().await;
    assert_eq!((writes(&rest.calls), rest.writes), (Calls::new(), 0));
    let looks = of(&rest.calls, "DescribeListeners");
    assert!((2 * all..=1210).contains(&looks), "{looks} looks");
    assert!(of(&rest.calls, "DescribeLoadBalancers") <= 50, "{:?}", rest.calls);
    // A process that starts anew reads all of it once.
    large.controllers = large.world.controllers();
    let anew = large.follow().await;
    assert_eq!((writes(&anew.calls), anew.writes), (Calls::new(), 0));
    assert_eq!(of(&anew.calls, "DescribeListeners"), all);
    assert_eq!(of(&anew.calls, "DescribeTargets"), all);
    assert_eq!(of(&anew.calls, "DescribeLoadBalancers"), all.div_ceil(100));
}

/// `cargo xtask bench operator` runs this and prints the file that it writes.
#[tokio::test(start_paused = true)]
#[ignore = "it takes minutes: cargo xtask bench operator runs it"]
async fn five_thousand_services() {
    let number = |name: &str, usual: usize| {
        env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
    };
    let services = number("UTURN_SERVICES", 5000);
    let (ingresses, nodes) = (number("UTURN_INGRESSES", 1000), number("UTURN_NODES", 200));
    let mut large = Large::new(services, ingresses, nodes);
    let mut text = format!("{services} Services, {ingresses} Ingresses, {nodes} nodes\n");
    let mut add = |what: &str, taken: &Taken| {
        let Taken { calls, writes, time, work } = taken;
        let all: usize = calls.values().sum();
        let _ = writeln!(
            text,
            "{what}: {all} calls in {} s, {writes} writes to objects; {:.1} s of work\n  {calls:?}",
            time.as_secs(),
            work.as_secs_f64()
        );
    };
    add("from nothing", &large.follow().await);
    large.lose_a_node();
    add("a node lost", &large.follow().await);
    large.change_a_service();
    add("a Service changed", &large.follow().await);
    add("ten minutes at rest", &large.rest().await);
    // Beside the first one, which keeps what it has.
    let before = resident();
    let world = World {
        server: large.world.server.clone(),
        cloud: Arc::clone(&large.world.cloud),
        shared: uturn_kube::watch::Shared::default(),
    };
    let controllers = world.controllers();
    let mut second = Large { world, controllers, services, ingresses };
    add("started anew", &second.follow().await);
    let more = resident().saturating_sub(before);
    let _ = writeln!(text, "memory of the one that was started anew: {more} MiB");
    fs::write(concat!(env!("CARGO_TARGET_TMPDIR"), "/operator-scale.txt"), text).unwrap();
}

/// The memory of this process, in MiB.
fn resident() -> usize {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<usize>().ok());
    kib.unwrap_or_default() / 1024
}
