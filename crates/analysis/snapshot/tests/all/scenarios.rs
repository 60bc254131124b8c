//! Scenario documents.

#![allow(clippy::unwrap_used, reason = "a helper of a test may fail like the test")]

use std::path::PathBuf;
use std::time::Duration;

use uturn_document::gather;
use uturn_model::network::NetworkMode;
use uturn_model::{Mechanism, Outcome, Share};
use uturn_snapshot::scenario::{Case, Scenario, read_all};
use uturn_snapshot::{Source, load, read};

fn ours() -> Vec<Scenario> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../scenarios"));
    let (sources, faults) = gather(&[folder]);
    assert_eq!(faults, []);
    match read_all(sources) {
        Ok(scenarios) => scenarios,
        Err(faults) => {
            panic!("{}", faults.iter().map(|fault| format!("{fault}\n")).collect::<String>())
        }
    }
}

fn source(text: &str) -> Vec<Source> {
    vec![Source { name: "s.yaml".into(), text: text.into() }]
}

fn messages(text: &str) -> String {
    let faults = read_all(source(text)).map(|_| "read").unwrap_err();
    faults.iter().map(|fault| format!("{fault}\n")).collect()
}

const LATE: Outcome = Outcome::Answered { after: Duration::from_secs(4) };

#[test]
fn every_scenario_is_complete() {
    let scenarios = ours();
    assert!(scenarios.len() >= 2);
    for scenario in &scenarios {
        assert!(!scenario.shows.is_empty() && !scenario.cases.is_empty(), "{}", scenario.name);
        for Case { label, cluster, flows, .. } in &scenario.cases {
            // Where a name has an address for each zone, which one that is cannot be stated.
            let is_open = |about: &str| !about.starts_with("addresses of ");
            let supposed =
                cluster.supposed.iter().filter(|item| is_open(&item.subject.to_string()));
            assert_eq!(supposed.collect::<Vec<_>>(), [] as [&_; 0], "{} {label}", scenario.name);
            assert!(!flows.is_empty(), "{} {label}", scenario.name);
            for flow in flows {
                let shares = flow.outcomes.iter().map(|(_, share)| *share);
                assert!(Share::add_up_to_all(shares), "{} {label}", scenario.name);
            }
        }
    }
}

#[test]
fn the_loop_by_number_of_nodes() {
    let scenarios = ours();
    let scenario = scenarios.iter().find(|scenario| &*scenario.name == "l7-loop").unwrap();
    let labels: Vec<&str> = scenario.cases.iter().map(|case| case.label.as_str()).collect();
    assert_eq!(
        labels,
        [
            "2 nodes, iptables",
            "2 nodes, nftables",
            "2 nodes, ipvs",
            "3 nodes, iptables",
            "3 nodes, nftables",
            "3 nodes, ipvs",
            "5 nodes, iptables",
            "5 nodes, nftables",
            "5 nodes, ipvs",
        ]
    );
    let alone = scenarios.iter().find(|scenario| &*scenario.name == "l7-loop-one-node").unwrap();
    let alone = &alone.cases[0].flows[0];
    let failed = Outcome::Status { code: 504, after: Duration::from_secs(4) };
    assert_eq!(alone.outcomes, [(failed, Share::ALL)]);
    let case = &scenario.cases[3];
    let clients: Vec<String> = case.flows.iter().map(|flow| flow.flow.from.to_string()).collect();
    assert_eq!(clients, ["pod/shop/client-1", "pod/shop/client-2", "pod/shop/client-3"]);
    let third = Share::of(1, 3);
    assert_eq!(case.flows[1].outcomes, [(LATE, third), (Outcome::AT_ONCE, third.complement())]);
    assert_eq!(case.flows[1].mechanisms, Some(vec![Mechanism::AsymmetricReturn]));
    let cluster = &case.cluster;
    assert_eq!(cluster.nodes["n3"].internal_ips[0].to_string(), "10.0.0.13");
    assert_eq!(cluster.nodes["n3"].pod_cidrs[0].to_string(), "10.1.3.0/24");
    let web = &cluster.slices(&"shop/web".parse().unwrap())[0].endpoints;
    assert_eq!(web.len(), 1);
    assert_eq!(web[0].node.as_ref().unwrap().as_str(), "n3", "the last node");
}

#[test]
fn a_single_scenario_is_a_cluster_too() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../scenarios/l7-loop.yaml");
    let loaded = load(&[path.into()]).unwrap();
    assert_eq!(loaded.cluster.nodes.len(), 5, "its largest case");
    assert_eq!(loaded.scenarios.len(), 1);
    assert_eq!(loaded.seen["Scenario"], 1);
}

const SMALL: &str = "
apiVersion: uturn.dev/v1alpha1
kind: Scenario
metadata: {name: small}
spec:
  shows: Something.
  nodes: [2]
  modes: [iptables, nftables]
  shape: {network: vpc-cni, backends: each, clients: host}
  flows:
  - {from: clients, to: svc/shop/web, protocol: udp}
  - from: pod/shop/web-1
    to: 10.0.0.1:80
    expect:
    - when: {nodes: [1, 2]}
      outcomes:
      - {outcome: hangs, share: 0.25}
      - {outcome: refused, share: 1/4}
      - {outcome: name-not-found, share: rest}
";

#[test]
fn shapes_and_modes() {
    let scenario = read_all(source(SMALL)).unwrap().remove(0);
    let labels: Vec<&str> = scenario.cases.iter().map(|case| case.label.as_str()).collect();
    assert_eq!(labels, ["2 nodes, iptables", "2 nodes, nftables"]);
    let case = &scenario.cases[0];
    assert_eq!(case.cluster.network.mode.value, NetworkMode::VpcCni);
    assert_eq!(case.cluster.pods.len(), 2);
    let flows: Vec<String> = case
        .flows
        .iter()
        .map(|flow| format!("{} {}", flow.flow.from, flow.flow.protocol))
        .collect();
    assert_eq!(flows, ["node/n1 UDP", "node/n2 UDP", "pod/shop/web-1 TCP"]);
    assert_eq!(case.flows[0].outcomes, [], "nothing is expected");
    assert_eq!(
        case.flows[2].outcomes,
        [
            (Outcome::Hangs, Share::of(1, 4)),
            (Outcome::Refused, Share::of(1, 4)),
            (Outcome::NameNotFound, Share::HALF)
        ]
    );
}

#[test]
fn each_fault_is_reported_once() {
    let text = "
apiVersion: uturn.dev/v1alpha1
kind: Scenario
metadata: {name: bad}
spec:
  shows: Something.
  nodes: [1, 2, 3, 1000]
  modes: [iptables, ipvs]
  shape: {backend: last}
  objects:
  - {apiVersion: v1, kind: Service, metadata: {name: a}, spec: {}}
  flows:
  - from: web
    to: nowhere
    expect:
    - when: {nodes: 1}
      outcomes: [{outcome: answred}]
    - when: {nodes: 2}
      outcomes: [{outcome: hangs, share: 1/N}, {status: 504, share: 1/3}]
      mechanisms: [asymetric-return]
";
    assert_eq!(
        messages(text),
        "s.yaml:7:20: spec.nodes[3]: expected 1 to 200 nodes, found 1000\n\
         s.yaml:9:11: spec.shape.backend: unknown field\n  did you mean backends?\n\
         s.yaml:11:64: spec.objects[0].spec.ports: missing: expected at least one port, unless \
         the Service is headless or an ExternalName\n\
         s.yaml:13:11: spec.flows[0].from: \"web\" is not a client: expected pod/NAMESPACE/NAME, \
         deploy/NAMESPACE/NAME (or another workload), node/NAME, outside or outside/IP; or \
         `clients`, which means all clients of the shape\n\
         s.yaml:14:9: spec.flows[0].to: \"nowhere\" is not a target: expected a URL, HOST:PORT, \
         IP:PORT, svc/NAMESPACE/NAME[:PORT], ingress/NAMESPACE/NAME[/HOST/PATH], \
         httproute/NAMESPACE/NAME[/HOST/PATH], tcproute/NAMESPACE/NAME[:PORT], \
         tlsroute/NAMESPACE/NAME[:PORT][/HOST] or pod/NAMESPACE/NAME:PORT\n\
         s.yaml:16:5: spec.flows[0].expect: no entry applies to the case of 3 nodes\n\
         s.yaml:17:28: spec.flows[0].expect[0].outcomes[0].outcome: expected answered, status, \
         hangs, refused, reset, empty-reply, tls-error, unreachable or name-not-found, found \"answred\"\n\
         s.yaml:19:17: spec.flows[0].expect[1].outcomes: the shares add up to \
         0.8333333333333333, not to 1\n\
         s.yaml:20:20: spec.flows[0].expect[1].mechanisms[0]: expected a mechanism \
         (asymmetric-return?), found \"asymetric-return\"\n"
    );
}

#[test]
fn scenarios_have_names_of_their_own() {
    let twice = format!("{SMALL}---{SMALL}");
    assert_eq!(
        messages(&twice),
        "s.yaml:21:1: Scenario small is defined more than once, first at s.yaml:2:1\n"
    );
}

#[test]
fn scenarios_beside_objects_are_not_merged() {
    let text = format!("{SMALL}---\napiVersion: v1\nkind: Node\nmetadata: {{name: own}}\n");
    let loaded = read(source(&text)).unwrap();
    assert_eq!(loaded.scenarios.len(), 1);
    assert_eq!(loaded.cluster.nodes.len(), 1);
}

#[test]
fn sizes_and_modes_are_named_once() {
    let text = "apiVersion: uturn.dev/v1alpha1\nkind: Scenario\nmetadata: {name: x}\nspec:\n  \
                shows: all\n  nodes: [1, 2, 1]\n  modes: [ipvs, ipvs]\n  flows: []\n";
    let faults = read_all(source(text)).unwrap_err();
    let shown: Vec<String> = faults.iter().map(ToString::to_string).collect();
    assert_eq!(
        shown,
        [
            "s.yaml:6:17: spec.nodes[2]: 1 is listed twice",
            "s.yaml:7:17: spec.modes[1]: ipvs is listed twice",
        ]
    );
}

#[test]
fn an_expectation_may_be_for_some_modes_only() {
    let text = SMALL.replace("when: {nodes: [1, 2]}", "when: {mode: iptables}");
    assert_eq!(
        messages(&text),
        "s.yaml:15:5: spec.flows[1].expect: no entry applies to the case of 2 nodes in mode \
         nftables\n"
    );
    let text = SMALL.replace("when: {nodes: [1, 2]}", "when: {mode: [iptables, nftables]}");
    assert_eq!(read_all(source(&text)).unwrap().remove(0).cases.len(), 2);
}
