//! Security groups let the health checks of their own cloud in, and nothing else by themselves.

#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use uturn_model::{Flow, Mechanism, Protocol};
use uturn_path::Engine;
use uturn_snapshot::{Source, read};
use uturn_testing::manifests::{facts, node};

/// A pod behind a NodePort on a node that lets nothing in.
const OBJECTS: &str = r#"---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, labels: {app: web}}
spec: {nodeName: n1, containers: [{name: c, image: c, ports: [{containerPort: 8080}]}]}
status: {phase: Running, podIP: 10.1.1.2, conditions: [{type: Ready, status: "True"}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec:
  type: NodePort
  clusterIP: 172.16.0.10
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080, nodePort: 30080}]
"#;

/// Why a packet from this address to the NodePort is lost.
fn mechanisms(provider: &str, from: &str) -> Vec<Mechanism> {
    let stated = [
        &format!("provider: {provider}"),
        "kubeProxy: {mode: iptables, version: v1.34.4, variant: upstream}",
        "nodes: {n1: {securityGroups: [sg]}}",
        "securityGroups: {sg: {inbound: [{action: drop, protocol: all, ports: all, peer: all}]}}",
    ];
    let text = [facts(&stated), node(1), OBJECTS.to_owned()].concat();
    let cluster = read(vec![Source { name: "cluster.yaml".into(), text }]).unwrap().cluster;
    let flow = Flow {
        from: format!("outside/{from}").parse().unwrap(),
        to: "10.0.0.11:30080".parse().unwrap(),
        protocol: Protocol::Tcp,
    };
    Engine::new(&cluster).unwrap().verdict(&flow).unwrap().mechanisms
}

#[test]
fn health_checks_of_the_cloud_are_let_in() {
    assert_eq!(mechanisms("tke", "100.64.0.1"), []);
    assert_eq!(mechanisms("tke", "100.64.0.2"), [Mechanism::SecurityGroup]);
}

#[test]
fn the_range_of_one_cloud_means_nothing_in_another() {
    assert_eq!(mechanisms("aws", "100.64.0.1"), [Mechanism::SecurityGroup]);
}
