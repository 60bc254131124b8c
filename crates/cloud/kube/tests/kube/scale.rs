//! Large clusters: how many calls there are, and how long they take at the rate that the API
//! allows. Time is the test's: what the rate makes longer takes no time.

mod apart;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::sync::Arc;
use std::time::{Duration, Instant as Clock};

use serde_json::json;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};
use uturn_kube::kinds::WATCHED;
use uturn_kube::sync::Controllers;
use uturn_kube::watch::{Shared, watch};
use uturn_testing::variables;

use crate::stage::Stage;
use crate::world::World;

/// How many requests a second the API takes of each action.
const RATE: u32 = 20;

/// How long nothing is written at the end, in the test's time.
const QUIET: Duration = Duration::from_secs(5);
/// How long a part may take, in real time.
const LIMIT: Duration = Duration::from_secs(900);

type Calls = BTreeMap<&'static str, usize>;

/// A large cluster, and its controllers.
struct Large {
    world: World,
    controllers: Controllers<Arc<Stage>>,
    services: usize,
    ingresses: usize,
    _watches: JoinSet<()>,
}

/// What something took.
struct Taken {
    calls: Calls,
    writes: usize,
    /// As long as the API's rate makes it.
    time: Duration,
    /// The time on processors of this process, with the API server and the cloud, in seconds.
    work: f64,
}

impl Large {
    async fn new(services: usize, ingresses: usize, nodes: usize) -> Self {
        let world = World::with(Stage::large(RATE), nodes);
        fill(&world, services, ingresses, nodes);
        Self::of(world, services, ingresses).await
    }

    /// Controllers that know nothing yet, with watches of their own.
    async fn of(world: World, services: usize, ingresses: usize) -> Self {
        let mut watches = JoinSet::new();
        for kind in WATCHED {
            let (client, metrics) = (world.server.client(), Arc::default());
            watches.spawn(watch(client, kind, world.shared.clone(), metrics));
        }
        while !world.shared.with(|store| store.is_complete()) {
            world.shared.changed.notified().await;
        }
        let controllers = world.controllers();
        Self { world, controllers, services, ingresses, _watches: watches }
    }

    /// The same cluster and cloud, with controllers that start anew.
    async fn anew(&self) -> Self {
        let world = World {
            server: self.world.server.clone(),
            cloud: Arc::clone(&self.world.cloud),
            shared: Shared::default(),
        };
        Self::of(world, self.services, self.ingresses).await
    }

    /// How many writes there were, to objects and to the cloud.
    fn writes(&self) -> (usize, usize) {
        (self.world.server.writes(), self.world.cloud.writes())
    }

    /// Follows what changed, until nothing is left to be done and nothing is written for some
    /// time.
    async fn follow(&mut self) -> Taken {
        let (since, real, work) = (Instant::now(), Clock::now(), worked());
        let before = self.writes();
        self.world.cloud.take_calls();
        let (mut calls, mut seen, mut rest) = (Calls::new(), before, None);
        loop {
            assert!(real.elapsed() < LIMIT, "not done after {} s: {seen:?}", LIMIT.as_secs());
            let step = match rest {
                None => Ok(self.controllers.step().await),
                Some(rest) => timeout_at(rest + QUIET, self.controllers.step()).await,
            };
            let Ok(step) = step else { break };
            let is_at_rest = step.unwrap().is_some();
            if self.writes() != seen {
                (seen, rest) = (self.writes(), None);
            }
            if is_at_rest && rest.is_none() {
                rest = Some(Instant::now());
                for (action, count) in self.world.cloud.take_calls() {
                    *calls.entry(action).or_default() += count;
                }
            }
        }
        let time = rest.unwrap_or(since) - since;
        Taken { calls, writes: seen.0 - before.0, time, work: worked() - work }
    }

    /// Ten minutes in which nothing changes.
    async fn rest(&mut self) -> Taken {
        let (since, work) = (Instant::now(), worked());
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
            work: worked() - work,
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

/// Creates Services with endpoints, and Ingresses for them.
fn fill(world: &World, services: usize, ingresses: usize, nodes: usize) {
    for number in 0..services {
        let name = format!("s{number}");
        world.server.apply(
            "services",
            json!({ "apiVersion": "v1", "kind": "Service",
                "metadata": { "name": name, "namespace": "shop" },
                "spec": { "type": "LoadBalancer",
                    "clusterIP": format!("172.16.{}.{}", number / 250, 1 + number % 250),
                    "ports": [{ "name": "web", "port": 80, "protocol": "TCP",
                        "targetPort": 8080, "nodePort": 30000 + number % 2767 }] } }),
        );
        let endpoint = |pod: usize| {
            let node = 1 + (number + pod) % nodes;
            json!({ "addresses": [format!("10.1.{node}.{}", 1 + number % 250)],
                "nodeName": format!("n{node}"),
                "conditions": { "ready": true, "serving": true, "terminating": false },
                "targetRef": { "kind": "Pod", "namespace": "shop",
                    "name": format!("{name}-{pod}") } })
        };
        world.server.apply(
            "endpointslices",
            json!({ "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice",
                "metadata": { "name": format!("{name}-x"), "namespace": "shop",
                    "labels": { "kubernetes.io/service-name": name } },
                "addressType": "IPv4",
                "ports": [{ "name": "web", "port": 8080, "protocol": "TCP" }],
                "endpoints": (0..3).map(endpoint).collect::<Vec<_>>() }),
        );
    }
    for number in 0..ingresses {
        world.ingress(&format!("i{number}"), &format!("s{}", number % services), json!({}));
    }
}

/// How long this process was on processors, in seconds.
fn worked() -> f64 {
    apart::used(std::process::id()).seconds
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
    let mut large = Large::new(300, 60, 20).await;
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
    // Those that are being created are asked for together.
    let asked = of(&made.calls, "DescribeLoadBalancers");
    assert!((all..all + all / 10 + 10).contains(&asked), "{:?}", made.calls);
    // A listener, the rules of an Ingress, and a batch of targets have tasks.
    assert_eq!(of(&made.calls, "DescribeTaskStatus"), 2 * all + large.ingresses);
    assert_eq!(made.writes, 3 * all, "a finalizer, annotations and a status");
    // A node goes: a call for each load balancer. It is not looked at before; what is asked for
    // meanwhile is the list, and some load balancers whose time it is.
    large.lose_a_node();
    let lost = large.follow().await;
    assert_eq!(writes(&lost.calls), [("BatchDeregisterTargets", all)].into());
    assert_eq!(of(&lost.calls, "DescribeTaskStatus"), all);
    assert!(reads(&lost.calls) <= 60 + all, "{:?}", lost.calls);
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
    let anew = large.anew().await.follow().await;
    assert_eq!((writes(&anew.calls), anew.writes), (Calls::new(), 0));
    assert_eq!(of(&anew.calls, "DescribeListeners"), all);
    assert_eq!(of(&anew.calls, "DescribeTargets"), all);
    assert_eq!(of(&anew.calls, "DescribeLoadBalancers"), all.div_ceil(100));
}

/// How many Services, Ingresses and nodes there are in the large cluster.
fn sizes() -> (usize, usize, usize) {
    let number = |name, usual| variables::number(name).unwrap_or(usual);
    (
        number(variables::SERVICES, 5000),
        number(variables::INGRESSES, 1000),
        number(variables::NODES, 200),
    )
}

/// `cargo xtask bench operator` runs this and prints the file that it writes.
#[tokio::test(start_paused = true)]
#[ignore = "it takes minutes: cargo xtask bench operator runs it"]
async fn five_thousand_services() {
    let (services, ingresses, nodes) = sizes();
    let mut large = Large::new(services, ingresses, nodes).await;
    let mut text = format!(
        "{services} Services, {ingresses} Ingresses, {nodes} nodes; at most {RATE} requests a second \
         of each action\n"
    );
    let mut add = |what: &str, taken: &Taken| {
        let Taken { calls, writes, time, work } = taken;
        let all: usize = calls.values().sum();
        let _ = writeln!(
            text,
            "{what}: {all} calls in {} s, {writes} writes to objects; {work:.1} s of work\n  {calls:?}",
            time.as_secs(),
        );
        fs::write(concat!(env!("CARGO_TARGET_TMPDIR"), "/operator-scale.txt"), &text).unwrap();
    };
    add("from nothing", &large.follow().await);
    large.lose_a_node();
    add("a node lost", &large.follow().await);
    large.change_a_service();
    add("a Service changed", &large.follow().await);
    add("ten minutes at rest", &large.rest().await);
    add("started anew", &large.anew().await.follow().await);
}
