//! What is behind many failures is found once, however many there are.

use std::fmt::Write as _;

use uturn_diagnose::analysis::Options;
use uturn_diagnose::{Code, analyze};
use uturn_snapshot::{Manifests, Source};
use uturn_testing::manifests::{RunningPod, node};

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
