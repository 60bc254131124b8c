//! What is behind many failures is found once, however many there are, and all that is behind one
//! failure.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use crate::dice;

use std::fmt::Write as _;

use crate::dice::Dice;
use crate::evidence::assert_ends_at_its_security_groups;
use uturn_diagnose::analysis::Options;
use uturn_diagnose::{Code, Finding, Observation, analyze, diagnose};
use uturn_model::FailurePoint;
use uturn_path::Engine;
use uturn_scan::Scanner;
use uturn_snapshot::{Manifests, Source};
use uturn_testing::manifests::{RunningPod, facts, node};

/// So many Services, each with an endpoint on a node whose security group lets nothing in, and two
/// nodes with clients.
fn cluster(services: usize) -> String {
    let mut text = "\
apiVersion: uturn.dev/v1alpha1
kind: Facts
spec:
  kubeProxy: {mode: iptables, version: v1.34.4}
  network: {podCIDRs: [10.1.0.0/16], serviceCIDRs: [172.16.0.0/16]}
  nodes: {n3: {securityGroups: [closed]}}
  securityGroups: {closed: {inbound: []}}
"
    .to_owned();
    let pod = |name: &str, node: u32, host: usize| {
        let address = format!("10.1.{node}.{host}");
        RunningPod { name, app: name, node, address: &address, ..RunningPod::default() }.to_string()
    };
    for number in 1..=3 {
        text.push_str(&node(number));
        text.push_str(&pod(&format!("client-{number}"), number.into(), 250));
    }
    for number in 1..=services {
        let name = format!("s{number}");
        text.push_str(&pod(&name, 3, number));
        let _ = write!(
            text,
            "---
apiVersion: v1
kind: Service
metadata: {{name: {name}, namespace: shop}}
spec: {{clusterIP: 172.16.1.{number}, selector: {{app: {name}}}, ports: [{{port: 80, targetPort: 8080}}]}}
"
        );
    }
    text
}

#[test]
fn a_security_group_is_one_finding_however_many_services_are_behind_it() {
    for services in [2, 90] {
        let source = Source { name: "made.yaml".into(), text: cluster(services) };
        let manifests = Manifests::of(vec![source]);
        let loaded = manifests.load().unwrap();
        let analysis = analyze(&manifests, &loaded.cluster, &Options::default()).unwrap();
        let found: Vec<(Code, String, usize)> = analysis
            .findings
            .iter()
            .filter(|finding| finding.mechanism.is_some())
            .map(|finding| (finding.code, finding.subject.to_string(), finding.targets.len()))
            .collect();
        assert_eq!(found, [(Code::SecurityGroup, "SecurityGroup closed".to_owned(), services)]);
    }
}

/// Such findings of a cluster, each with what it rests on.
fn with_evidence(
    text: String,
    is_wanted: impl Fn(&Finding) -> bool,
) -> Vec<(Finding, Vec<Observation>)> {
    let source = Source { name: "made.yaml".into(), text };
    let cluster = Manifests::of(vec![source]).cluster().unwrap();
    let engine = Engine::new(&cluster).unwrap();
    let scanner = Scanner::new(&engine);
    let mut found = diagnose(&scanner, &scanner.scan(&scanner.targets()).unwrap()).unwrap();
    found.retain(is_wanted);
    let with_evidence = |finding: Finding| {
        let evidence = finding.evidence(&scanner).unwrap();
        (finding, evidence)
    };
    found.into_iter().map(with_evidence).collect()
}

/// A Service with endpoints on two nodes, each with a security group of its own that lets nothing in.
const TWO_CLOSED: &str = "\
apiVersion: uturn.dev/v1alpha1
kind: Facts
spec:
  kubeProxy: {mode: iptables, version: v1.34.4}
  network: {podCIDRs: [10.1.0.0/16], serviceCIDRs: [172.16.0.0/16]}
  nodes: {n2: {securityGroups: [closed]}, n3: {securityGroups: [shut]}}
  securityGroups: {closed: {inbound: []}, shut: {inbound: []}}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {clusterIP: 172.16.1.1, selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
";

#[test]
fn calls_that_end_alike_at_two_objects_are_a_finding_for_each() {
    let mut text = TWO_CLOSED.to_owned();
    for number in 1..=3 {
        text.push_str(&node(number));
    }
    for (name, app, node) in [("client", "client", 1), ("web-2", "web", 2), ("web-3", "web", 3)] {
        let address = format!("10.1.{node}.1");
        let pod = RunningPod { name, app, node, address: &address, ..RunningPod::default() };
        text.push_str(&pod.to_string());
    }
    let found = with_evidence(text, |finding| finding.code == Code::SecurityGroup);
    let objects: Vec<String> = found.iter().map(|(one, _)| one.subject.to_string()).collect();
    assert_eq!(objects, ["SecurityGroup closed", "SecurityGroup shut"]);
    for (finding, evidence) in &found {
        assert_eq!(finding.targets, ["svc/shop/web :80"]);
        assert_ends_at_its_security_groups(finding, evidence);
    }
}

/// Nodes pass health checks on to the node that has the endpoint, and no security group keeps out checks
/// that come from the load balancer.
#[test]
fn the_security_group_that_stops_health_checks_is_not_that_of_the_node_they_are_sent_to() {
    let mut text = facts(&[
        "provider: tke",
        "kubeProxy: {mode: iptables, version: v1.34.4}",
        "nodes: {n1: {securityGroups: [open]}, n2: {securityGroups: [closed]}}",
        "securityGroups: {open: {inbound: [{action: accept, protocol: all, ports: all, peer: all}]}, \
         closed: {inbound: []}}",
    ]);
    text.push_str(&node(1));
    text.push_str(&node(2));
    let pod = RunningPod {
        name: "web",
        app: "web",
        node: 2,
        address: "10.1.2.1",
        ..RunningPod::default()
    };
    text.push_str(&pod.to_string());
    text.push_str(
        "---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec:
  type: LoadBalancer
  clusterIP: 172.16.1.1
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080, nodePort: 30080}]
status: {loadBalancer: {ingress: [{ip: 203.0.113.1}]}}
",
    );
    let found = with_evidence(text, |finding| finding.code == Code::ProbeBlackhole);
    let [(finding, evidence)] = found.as_slice() else { panic!("{found:#?}") };
    assert_eq!(finding.subject.to_string(), "SecurityGroup closed");
    let [observation] = evidence.as_slice() else { panic!("{evidence:#?}") };
    assert_eq!(
        &*observation.what,
        "no answer from 10.0.0.11:30080: security group closed has no rule that accepts TCP port 8080 \
         from 10.0.0.11"
    );
    assert_ends_at_its_security_groups(finding, evidence);
}

/// However many ways of a call end alike, a finding about one of the objects shows a way that ends there.
#[test]
fn the_evidence_of_a_finding_about_an_object_ends_at_that_object() {
    let (mut shown, mut among_several) = (0, 0);
    for seed in 1..=60 {
        let found = with_evidence(dice::cluster(&mut Dice::new(seed)), |_| true);
        for (finding, evidence) in &found {
            let Some(point) = &finding.failure else { continue };
            let what = format!("seed {seed}: {} {point:?}\n{evidence:#?}", finding.subject);
            let observed = evidence.len() - finding.other_evidence.len();
            let by = evidence[..observed].last().expect(&what).by.clone();
            let end = FailurePoint::new(point.mechanism, point.place.clone(), by);
            assert_eq!(end, *point, "{what}");
            shown += 1;
            let is_another = |(other, _): &(Finding, Vec<Observation>)| {
                other.code == finding.code
                    && other.subject != finding.subject
                    && other.targets.iter().any(|target| finding.targets.contains(target))
            };
            among_several += usize::from(found.iter().any(is_another));
        }
    }
    assert!(shown > 50 && among_several > 20, "{shown} shown, {among_several} among several");
}
