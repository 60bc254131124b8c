//! A finding that rests on what is not certain of a load balancer is conditional.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use uturn_diagnose::diagnose;
use uturn_path::Engine;
use uturn_scan::Scanner;
use uturn_snapshot::{Source, read};

/// What is found of the address of a load balancer of a class, with its conditions, where nodes leave
/// the address to it and the server is on the only node.
fn found(class: &str) -> Vec<(String, Vec<String>)> {
    let text = format!(
        "{{apiVersion: v1, kind: Node, metadata: {{name: n1}}, spec: {{podCIDR: 10.244.1.0/24}}, status: \
         {{conditions: [{{type: Ready, status: 'True'}}], addresses: [{{type: InternalIP, address: \
         10.0.0.11}}]}}}}
---
{{apiVersion: v1, kind: Pod, metadata: {{name: web, namespace: shop, labels: {{app: web}}}}, spec: \
         {{nodeName: n1, containers: [{{name: c, image: c, ports: [{{containerPort: 8080}}]}}]}}, \
         status: {{phase: Running, podIP: 10.244.1.9, conditions: [{{type: Ready, status: 'True'}}]}}}}
---
{{apiVersion: v1, kind: Service, metadata: {{name: web, namespace: shop, annotations: \
         {{kubernetes.io/elb.class: {class}, kubernetes.io/elb.pass-through: onlyLocal}}}}, spec: \
         {{type: LoadBalancer, clusterIP: 172.20.0.10, externalTrafficPolicy: Local, selector: \
         {{app: web}}, ports: [{{port: 80, targetPort: 8080, nodePort: 30080}}]}}, status: \
         {{loadBalancer: {{ingress: [{{ip: 10.0.9.9}}]}}}}}}
---
{{apiVersion: uturn.dev/v1alpha1, kind: Facts, spec: {{kubeProxy: {{mode: iptables, version: \
         v1.28.1}}, network: {{plugin: flannel, podCIDRs: [10.244.0.0/16], vpcCIDRs: [10.0.0.0/16]}}}}}}
"
    );
    let read = read(vec![Source { name: "cluster.yaml".into(), text }]).unwrap();
    let engine = Engine::new(&read.cluster).unwrap();
    let scanner = Scanner::new(&engine);
    let findings = diagnose(&scanner, &scanner.scan(&scanner.targets()).unwrap()).unwrap();
    let of_target = |targets: &[_]| format!("{targets:?}").contains("10.0.9.9");
    let findings = findings.iter().filter(|finding| of_target(&finding.targets));
    let conditions = |all: &[_]| all.iter().map(ToString::to_string).collect();
    findings.map(|found| (found.code.to_string(), conditions(&found.conditions))).collect()
}

#[test]
fn what_a_vendor_says_is_no_condition_and_what_is_inferred_is_one() {
    assert_eq!(found("performance"), [("UT104".to_owned(), vec![])]);
    let condition = "Huawei Cloud shared ELB keeps the client's address under policy Local";
    assert_eq!(found("union"), [("UT104".to_owned(), vec![condition.to_owned()])]);
}
