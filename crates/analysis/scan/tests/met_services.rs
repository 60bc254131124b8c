//! Random clusters: calls end in the same way, step by step, where nodes have the rules of those Services only
//! that packets meet, and where an engine keeps few kernels.

#[path = "classes/dice.rs"]
mod dice;
#[path = "classes/ends.rs"]
mod ends;

use std::net::SocketAddr;

use dice::Dice;
use ends::{end, is_same};
use uturn_model::{Client, Cluster, Destination, Flow, Protocol, Verdict};
use uturn_path::{Engine, Health, WalkError, what_if};
use uturn_scan::{FewCalls, Scanner};
use uturn_snapshot::{Source, read};

const CLUSTERS: u64 = 24;

/// Of the flows of a cluster, about this many are walked.
const FLOWS: usize = 150;

fn random_cluster(seed: u64) -> Cluster {
    let text = dice::cluster_with(&mut Dice::new(seed), seed.is_multiple_of(2));
    let source = Source { name: "random.yaml".into(), text };
    read(vec![source]).unwrap_or_else(|why| panic!("{seed}: {why:?}")).cluster
}

/// Every client against everything that can be called, with ports of nodes that are asked directly.
fn flows(cluster: &Cluster, engine: &Engine<'_>) -> Vec<Flow> {
    let pods = cluster.pods.keys().map(|name| Client::Pod(name.clone()));
    let nodes = cluster.nodes.keys().map(|name| Client::Node(name.clone()));
    let clients: Vec<Client> = pods.chain(nodes).chain([Client::Outside(None)]).collect();
    let targets = Scanner::new(engine).targets();
    let mut called: Vec<(Destination, Protocol)> =
        targets.into_iter().map(|target| (target.to, target.protocol)).collect();
    let ports = cluster.services.values().flat_map(|service| &service.ports);
    for port in ports.filter_map(|port| port.node_port) {
        let addresses = cluster.nodes.values().flat_map(|node| &node.internal_ips);
        let to = addresses.map(|ip| Destination::Address((*ip, port.number()).into()));
        called.extend(to.map(|to| (to, Protocol::Tcp)));
    }
    let pairs = clients.iter().flat_map(|from| called.iter().map(move |to| (from, to)));
    let all: Vec<Flow> = pairs
        .map(|(from, (to, protocol))| Flow {
            from: from.clone(),
            to: to.clone(),
            protocol: *protocol,
        })
        .collect();
    let step = all.len() / FLOWS + 1;
    all.into_iter().step_by(step).collect()
}

/// What becomes of the health checks of a listener, without the lines of generated rules.
fn health(
    engine: &Engine<'_>,
    at: SocketAddr,
    protocol: Protocol,
) -> Result<Option<Vec<Health>>, WalkError> {
    let mut all = engine.health(at, protocol)?;
    for step in all.iter_mut().flatten().filter_map(|health| health.stop.as_mut()) {
        step.by.clear_generated_line();
    }
    Ok(all)
}

/// What becomes of a flow, without the lines of generated rules.
fn cases(engine: &Engine<'_>, flow: &Flow) -> Result<Vec<Verdict>, WalkError> {
    let mut verdicts = engine.cases(flow)?;
    let routes = verdicts.iter_mut().flat_map(|verdict| &mut verdict.routes);
    for step in routes.flat_map(|route| &mut route.hops).flat_map(|hop| &mut hop.steps) {
        step.by.clear_generated_line();
    }
    Ok(verdicts)
}

#[test]
fn calls_end_alike_with_the_rules_that_packets_meet() {
    let (mut walked, mut fewer) = (0, 0);
    for seed in 1..=CLUSTERS {
        let cluster = random_cluster(seed);
        let engine = Engine::new(&cluster).unwrap_or_else(|why| panic!("{seed}: {why:?}"));
        let shared = engine.with_met_services();
        for flow in flows(&cluster, &engine) {
            let all = cases(&engine, &flow);
            let what = format!("seed {seed}: {} to {}", flow.from, flow.to);
            let alone = engine.with_met_services();
            assert_eq!(cases(&alone, &flow), all, "{what}");
            assert_eq!(cases(&shared, &flow), all, "{what}, after others");
            walked += 1;
            let mean =
                |engine: &Engine<'_>| engine.kernels().entries / engine.kernels().kept.max(1);
            fewer += usize::from(mean(&alone) < mean(&engine));
        }
    }
    assert!(walked > 2_000, "{walked}");
    assert!(2 * fewer > walked, "fewer rules for {fewer} flows of {walked}");
}

#[test]
fn health_checks_end_alike_with_the_rules_that_packets_meet() {
    for seed in 1..=CLUSTERS {
        let cluster = random_cluster(seed);
        let engine = Engine::new(&cluster).unwrap_or_else(|why| panic!("{seed}: {why:?}"));
        for balancer in engine.balancers() {
            for listener in &balancer.listeners {
                let at = (balancer.vip, listener.port.number()).into();
                let protocol = listener.protocol.transport();
                let few = engine.with_met_services();
                let [few, all] = [&few, &engine].map(|engine| health(engine, at, protocol));
                assert_eq!(few, all, "{seed}: {at}");
            }
        }
    }
}

fn are_same(own: &[Verdict], other: &[Verdict]) -> bool {
    let is_same = |(own, other): (&Verdict, &Verdict)| {
        own.conditions == other.conditions && is_same(&end(own), &end(other))
    };
    own.len() == other.len() && own.iter().zip(other).all(is_same)
}

#[test]
fn calls_end_alike_in_reduced_clusters() {
    let (mut walked, mut reduced) = (0, 0);
    for seed in 1..=CLUSTERS {
        let cluster = random_cluster(seed);
        let engine = Engine::new(&cluster).unwrap_or_else(|why| panic!("{seed}: {why:?}"));
        let calls = FewCalls::new(&engine).reducing_always();
        for flow in flows(&cluster, &engine) {
            let what = format!("seed {seed}: {} to {}", flow.from, flow.to);
            let [whole, own] = [engine.cases(&flow), calls.cases(&flow)];
            match (whole, own) {
                (Ok(whole), Ok(own)) => {
                    assert!(are_same(&own, &whole), "{what}: {own:?} for {whole:?}");
                }
                (whole, own) => assert_eq!(own, whole, "{what}"),
            }
            walked += 1;
            reduced += usize::from(what_if::has_one_case(&cluster, &flow));
        }
    }
    assert!(walked > 2_000, "{walked}");
    assert!(4 * reduced > walked, "{reduced} calls of {walked} have one case");
}

/// What is not kept is made again.
#[test]
fn calls_end_alike_however_few_kernels_are_kept() {
    for seed in 1..=CLUSTERS / 4 {
        let cluster = random_cluster(seed);
        let engine = Engine::new(&cluster).unwrap_or_else(|why| panic!("{seed}: {why:?}"));
        let limit = 200;
        let few = Engine::new(&cluster).unwrap().limited_to(limit);
        let none = Engine::new(&cluster).unwrap().limited_to(0);
        for flow in flows(&cluster, &engine).into_iter().step_by(4) {
            let all = cases(&engine, &flow);
            assert_eq!(cases(&few, &flow), all, "seed {seed}");
            assert_eq!(cases(&none, &flow), all, "seed {seed}");
            assert!(none.kernels().kept <= 2);
        }
        assert!(engine.kernels().made <= cluster.nodes.len() + 1);
        assert!(none.kernels().made >= engine.kernels().made);
    }
}
