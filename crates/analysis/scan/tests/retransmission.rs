//! A first packet that is sent again: where a node kept nothing of the one before, it meets
//! the dice anew; else it goes the same way.

#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use std::time::Duration;

use uturn_model::{Flow, Outcome, Protocol};
use uturn_path::Engine;
use uturn_scan::Scanner;
use uturn_snapshot::Source;
use uturn_testing::manifests::{facts, node};

/// A client on n1, a Service with an endpoint there and one on n2.
const OBJECTS: &str = r#"---
apiVersion: v1
kind: Node
metadata: {name: n1}
spec: {podCIDR: 10.1.1.0/24}
status:
  nodeInfo: {kernelVersion: KERNEL}
  addresses: [{type: InternalIP, address: 10.0.0.11}]
---
apiVersion: v1
kind: Pod
metadata: {name: client, namespace: shop}
spec: {nodeName: n1, containers: [{name: client, image: client}]}
status: {phase: Running, podIPs: [{ip: 10.1.1.2}]}
---
apiVersion: v1
kind: Pod
metadata: {name: here, namespace: shop, labels: {app: web}}
spec: {nodeName: n1, containers: [{name: web, image: web, ports: [{containerPort: 8080}, {containerPort: 5353, protocol: UDP}]}]}
status: {phase: Running, podIPs: [{ip: 10.1.1.3}], conditions: [{type: Ready, status: "True"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: there, namespace: shop, labels: {app: web}}
spec: {nodeName: n2, containers: [{name: web, image: web, ports: [{containerPort: 8080}, {containerPort: 5353, protocol: UDP}]}]}
status: {phase: Running, podIPs: [{ip: 10.1.2.3}], conditions: [{type: Ready, status: "True"}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec:
  clusterIP: 172.16.0.10
  sessionAffinity: AFFINITY
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: 8080}, {name: dns, port: 53, targetPort: 5353, protocol: UDP}]
"#;

/// A rule on n1 that drops what is for the other node's pods.
const HERE: &str = r#"n1: {iptables: "*filter\n-A FORWARD -d 10.1.2.0/24 -j DROP\nCOMMIT\n"}"#;
/// The same on n2.
const THERE: &str = r#"n2: {iptables: "*filter\n-A FORWARD -d 10.1.2.0/24 -j DROP\nCOMMIT\n"}"#;

struct Case {
    mode: &'static str,
    facts: &'static str,
    kernel: &'static str,
    affinity: &'static str,
    protocol: Protocol,
}

const USUAL: Case = Case {
    mode: "iptables",
    facts: HERE,
    kernel: "5.4.119-19.0009",
    affinity: "None",
    protocol: Protocol::Tcp,
};

/// The outcomes, by how late: seconds, or nothing where it hangs.
fn waits(case: &Case) -> Vec<(Option<u64>, f64)> {
    let kube_proxy =
        format!("kubeProxy: {{mode: {}, version: v1.34.4, variant: upstream}}", case.mode);
    let nodes = format!("nodes: {{{}}}", case.facts);
    let objects = OBJECTS.replace("KERNEL", case.kernel).replace("AFFINITY", case.affinity);
    let text = [facts(&[&kube_proxy, &nodes]), objects, node(2)].concat();
    let source = Source { name: "cluster.yaml".into(), text };
    let cluster = uturn_snapshot::read(vec![source]).unwrap().cluster;
    let engine = Engine::new(&cluster).unwrap();
    let port = if case.protocol == Protocol::Udp { 53 } else { 80 };
    let flow = Flow {
        from: "pod/shop/client".parse().unwrap(),
        to: format!("172.16.0.10:{port}").parse().unwrap(),
        protocol: case.protocol,
    };
    let verdict = engine.verdict(&flow).unwrap();
    // A scan by classes has the same result.
    let scanner = Scanner::new(&engine);
    let target = scanner
        .targets()
        .into_iter()
        .find(|target| target.protocol == case.protocol && target.label == format!(":{port}"));
    let met = scanner.scan(&[target.unwrap()]).unwrap();
    let mine = met
        .iter()
        .find(|result| result.clients.pods.iter().any(|pod| pod.name.as_str() == "client"));
    let mut classes = mine.unwrap().verdicts[0].outcomes.clone();
    let mut alone = verdict.outcomes;
    classes.sort_by_key(|end| end.0);
    alone.sort_by_key(|end| end.0);
    assert_eq!(classes.len(), alone.len(), "{classes:?} {alone:?}");
    for (own, other) in classes.iter().zip(&alone) {
        assert!(own.0 == other.0 && own.1.is_rounded_from(other.1), "{classes:?} {alone:?}");
    }
    let seconds = |outcome: &Outcome| outcome.after().map(|after: Duration| after.as_secs());
    alone.iter().map(|(outcome, share)| (seconds(outcome), share.get())).collect()
}

fn half_hangs() -> Vec<(Option<u64>, f64)> {
    vec![(Some(0), 0.5), (None, 0.5)]
}

/// Each time half of what is left.
fn halved(seconds: &[u64]) -> Vec<(Option<u64>, f64)> {
    let mut left = 1.0;
    let mut all: Vec<(Option<u64>, f64)> = Vec::new();
    for second in seconds {
        left /= 2.0;
        all.push((Some(*second), left));
    }
    all.push((None, left));
    all
}

#[test]
fn what_was_dropped_before_it_was_kept_is_thrown_again() {
    let old = halved(&[0, 1, 3, 7, 15, 31, 63]);
    assert_eq!(waits(&USUAL), old);
    assert_eq!(waits(&Case { mode: "nftables", ..USUAL }), old);
    let new = halved(&[0, 1, 2, 3, 4, 5, 7, 11, 19, 35, 67]);
    assert_eq!(waits(&Case { kernel: "6.8.0-45-generic", ..USUAL }), new);
}

#[test]
fn what_was_kept_goes_the_same_way() {
    // On the other node: the client's has passed it on, and remembers where to.
    assert_eq!(waits(&Case { facts: THERE, ..USUAL }), half_hangs());
    assert_eq!(waits(&Case { facts: THERE, mode: "nftables", ..USUAL }), half_hangs());
    // A client with session affinity keeps its endpoint.
    assert_eq!(waits(&Case { affinity: "ClientIP", ..USUAL }), half_hangs());
    assert_eq!(waits(&Case { affinity: "ClientIP", mode: "nftables", ..USUAL }), half_hangs());
}

#[test]
fn a_datagram_is_sent_once() {
    assert_eq!(waits(&Case { protocol: Protocol::Udp, ..USUAL }), half_hangs());
}

#[test]
fn classes_of_clients_meet_the_same_dice() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../scenarios");
    let names = ["dice-thrown-again.yaml", "dice-thrown-again-l7.yaml"];
    let sources = names.map(|name| Source {
        name: name.into(),
        text: std::fs::read_to_string(folder.join(name)).unwrap(),
    });
    let mut late = 0;
    for scenario in uturn_snapshot::scenario::read_all(sources.into()).unwrap() {
        for case in &scenario.cases {
            let engine = Engine::new(&case.cluster).unwrap();
            let scanner = Scanner::new(&engine);
            for met in scanner.scan(&scanner.targets()).unwrap() {
                for pod in met.clients.pods.iter() {
                    let from = uturn_model::Client::Pod(pod.clone());
                    let alone = engine.verdict(&Flow { from, ..met.flow() }).unwrap();
                    let (mut scanned, mut walked) =
                        (met.verdicts[0].outcomes.clone(), alone.outcomes.clone());
                    scanned.sort_by_key(|end| end.0);
                    walked.sort_by_key(|end| end.0);
                    let what = format!("{} {pod} {}", case.label, met.target.label);
                    assert_eq!(scanned.len(), walked.len(), "{what}: {scanned:?} {walked:?}");
                    for (a, b) in scanned.iter().zip(&walked) {
                        let same = a.0 == b.0 && a.1.is_rounded_from(b.1);
                        assert!(same, "{what}: {scanned:?} {walked:?}");
                        late += usize::from(a.0.after() == Some(Duration::from_secs(1)));
                    }
                }
            }
        }
    }
    assert!(late > 3, "{late}");
}
