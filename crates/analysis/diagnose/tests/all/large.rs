//! A cluster too large for the rules of every node to be written: each finding still has what
//! it rests on, and findings with the same cause are one group.

use std::collections::HashSet;
use std::fmt::Write as _;

use crate::evidence::assert_ends_at_its_security_groups;
use uturn_diagnose::group::group;
use uturn_diagnose::{Code, Finding, GroupCure, diagnose};
use uturn_model::{Mechanism, NamespacedName};
use uturn_path::Engine;
use uturn_scan::Scanner;
use uturn_snapshot::{Manifests, Source};

const NODES: usize = 120;
const SERVICES: usize = 180;
const INGRESSES: usize = 50;

/// Every node has a client; each Ingress leads to a Service of its own with pods on three nodes.
fn cluster() -> String {
    let mut text = "apiVersion: uturn.dev/v1alpha1
kind: Facts
spec:
  provider: tke
  kubeProxy: {mode: iptables, version: v1.34.4}
  network: {mode: global-router, podCIDRs: [10.1.0.0/16], vpcCIDRs: [10.0.0.0/16], serviceCIDRs: [172.16.0.0/16]}
"
    .to_owned();
    let mut pod = |name: String, app: String, node: usize, host: usize| {
        let _ = write!(
            text,
            "---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: shop, labels: {{app: {app}}}}}
spec: {{nodeName: n{node}, containers: [{{name: c, image: c, ports: [{{containerPort: 8080}}]}}]}}
status: {{phase: Running, podIP: 10.1.{node}.{host}, conditions: [{{type: Ready, status: \"True\"}}]}}
"
        );
    };
    for node in 1..=NODES {
        pod(format!("client-{node}"), "client".to_owned(), node, 10);
    }
    for at in 0..INGRESSES {
        for turn in 0..3 {
            let node = 1 + (at + 40 * turn) % NODES;
            pod(format!("app-{at}-{turn}"), format!("app-{at}"), node, 20 + at);
        }
    }
    for node in 1..=NODES {
        let _ = write!(
            text,
            "---
apiVersion: v1
kind: Node
metadata: {{name: n{node}}}
spec: {{podCIDR: 10.1.{node}.0/24}}
status: {{addresses: [{{type: InternalIP, address: 10.0.1.{node}}}]}}
"
        );
    }
    for at in 0..SERVICES {
        let _ = write!(
            text,
            "---
apiVersion: v1
kind: Service
metadata: {{name: app-{at}, namespace: shop}}
spec:
  type: NodePort
  clusterIP: 172.16.0.{at}
  selector: {{app: app-{at}}}
  ports: [{{port: 80, targetPort: 8080, nodePort: {}}}]
",
            30_000 + at
        );
    }
    for at in 0..INGRESSES {
        let _ = write!(
            text,
            "---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {{name: web-{at}, namespace: shop, annotations: {{kubernetes.io/ingress.subnetId: s}}}}
spec: {{rules: [{{http: {{paths: [{{path: /, pathType: Prefix, backend: {{service: {{name: app-{at}, port: {{number: 80}}}}}}}}]}}}}]}}
status: {{loadBalancer: {{ingress: [{{ip: 10.0.9.{at}}}]}}}}
"
        );
    }
    text
}

#[test]
fn every_finding_has_its_evidence_and_its_like() {
    let source = Source { name: "large.yaml".into(), text: cluster() };
    let cluster = Manifests::of(vec![source]).complete_if(true).cluster().unwrap();
    let engine = Engine::new(&cluster).unwrap();
    assert!(Scanner::new(&engine).is_large());
    let scanner = Scanner::new(&engine);
    let found = diagnose(&scanner, &scanner.scan(&scanner.targets()).unwrap()).unwrap();
    let loops = |finding: &&Finding| finding.mechanism == Some(Mechanism::AsymmetricReturn);
    assert!(found.iter().filter(loops).count() >= INGRESSES, "{found:#?}");
    for finding in &found {
        let evidence = finding.evidence(&scanner).unwrap();
        assert!(!evidence.is_empty(), "{finding:?}");
        // What the finding is about is what the evidence ends with.
        if loops(&finding) {
            let last = evidence.last().unwrap();
            assert!(last.what.contains("knows no connection with"), "{evidence:#?}");
        }
    }
    every_cause_is_a_group(&found);
}

/// Targets of one load balancer on two nodes, each with a security group of its own that lets nothing in.
#[test]
fn each_object_at_which_calls_end_is_found_with_a_way_that_ends_there() {
    let groups = "  nodes: {n1: {securityGroups: [closed]}, n41: {securityGroups: [shut]}}
  securityGroups: {closed: {inbound: []}, shut: {inbound: []}}
---
apiVersion: v1
kind: Pod
";
    let text = cluster().replacen("---\napiVersion: v1\nkind: Pod\n", groups, 1);
    let source = Source { name: "large.yaml".into(), text };
    let cluster = Manifests::of(vec![source]).complete_if(true).cluster().unwrap();
    let engine = Engine::new(&cluster).unwrap();
    let scanner = Scanner::new(&engine);
    assert!(scanner.is_large());
    let found = diagnose(&scanner, &scanner.scan(&scanner.targets()).unwrap()).unwrap();
    for name in ["closed", "shut"] {
        let is_closed = |finding: &&Finding| {
            finding.code == Code::SecurityGroup && *finding.subject.name == *name
        };
        let finding = found.iter().find(is_closed).unwrap_or_else(|| panic!("{name}: {found:#?}"));
        assert!(
            finding.targets.iter().any(|target| target == "ingress/shop/web-0 :80 */"),
            "{name} {:?}",
            finding.targets
        );
        let evidence = finding.evidence(&scanner).unwrap();
        assert_ends_at_its_security_groups(finding, &evidence);
    }
}

fn every_cause_is_a_group(found: &[Finding]) {
    let groups = group(found);
    assert!(groups.len() < 10 && found.len() > 100, "{} of {}", groups.len(), found.len());
    let loops = groups.iter().find(|group| group.objects == INGRESSES).expect("each Ingress loops");
    assert_eq!(loops.cause.mechanism, Some(Mechanism::AsymmetricReturn));
    let names: HashSet<&NamespacedName> =
        loops.members.iter().flat_map(|index| found[*index].clients.iter()).collect();
    assert_eq!(loops.clients.pod_count(), names.len());
    // Each Ingress has a Service of its own to call.
    assert!(matches!(loops.cure(found), Some(GroupCure::ForEach(_))), "{loops:?}");
    let worst = &found[loops.worst()];
    assert!(
        loops.members.iter().all(|at| !found[*at].share_failing.is_more_than(worst.share_failing))
    );
}
