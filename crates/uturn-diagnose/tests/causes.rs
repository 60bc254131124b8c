//! What is behind many failures is found once, however many there are.

use std::fmt::Write as _;

use uturn_diagnose::analysis::Options;
use uturn_diagnose::{Code, analyze};
use uturn_snapshot::{Manifests, Source};

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
    for node in 1..=3 {
        let _ = write!(
            text,
            "---
apiVersion: v1
kind: Node
metadata: {{name: n{node}}}
spec: {{podCIDR: 10.1.{node}.0/24}}
status: {{addresses: [{{type: InternalIP, address: 10.0.0.1{node}}}]}}
---
apiVersion: v1
kind: Pod
metadata: {{name: client-{node}, namespace: shop}}
spec: {{nodeName: n{node}, containers: [{{name: c, image: c}}]}}
status: {{phase: Running, podIP: 10.1.{node}.250, conditions: [{{type: Ready, status: 'True'}}]}}
"
        );
    }
    for number in 1..=services {
        let _ = write!(
            text,
            "---
apiVersion: v1
kind: Service
metadata: {{name: s{number}, namespace: shop}}
spec: {{clusterIP: 172.16.1.{number}, selector: {{app: s{number}}}, ports: [{{port: 80, targetPort: 8080}}]}}
---
apiVersion: v1
kind: Pod
metadata: {{name: s{number}-0, namespace: shop, labels: {{app: s{number}}}}}
spec: {{nodeName: n3, containers: [{{name: c, image: c}}]}}
status: {{phase: Running, podIP: 10.1.3.{number}, conditions: [{{type: Ready, status: 'True'}}]}}
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
