//! A node whose rules cannot be compiled: every flow that meets it is refused, each time, and no
//! other flow is.

#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use uturn_model::{Cluster, Flow, Protocol, Verdict};
use uturn_path::{Engine, WalkError};
use uturn_snapshot::{Source, read};
use uturn_testing::manifests::{facts, node};

/// kube-proxy v1.28 has no nftables mode.
const KUBE_PROXY: &str = "kubeProxy: {mode: nftables, version: v1.28.4, variant: upstream}";

/// The first node has no address, so no rules are compiled for it; the second one's cannot be.
const OBJECTS: &str = r#"---
apiVersion: v1
kind: Node
metadata: {name: n1}
spec: {podCIDR: 10.1.1.0/24}
status: {addresses: []}
---
apiVersion: v1
kind: Pod
metadata: {name: alone, namespace: shop}
spec: {nodeName: n1, containers: [{name: c, image: c, ports: [{containerPort: 8080}]}]}
status: {phase: Running, podIP: 10.1.1.2}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, labels: {app: web}}
spec: {nodeName: n2, containers: [{name: c, image: c, ports: [{containerPort: 8080}]}]}
status: {phase: Running, podIP: 10.1.2.2, conditions: [{type: Ready, status: "True"}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec:
  type: LoadBalancer
  clusterIP: 172.16.0.10
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080, nodePort: 30080}]
status: {loadBalancer: {ingress: [{ip: 10.0.0.100}]}}
"#;

fn cluster() -> Cluster {
    let text = [facts(&["provider: tke", KUBE_PROXY]), node(2), OBJECTS.to_owned()].concat();
    let source = Source { name: "cluster.yaml".into(), text };
    let mut cluster = read(vec![source]).unwrap_or_else(|faults| panic!("{faults:?}")).cluster;
    // What is not written is supposed.
    cluster.nodes.values_mut().next().unwrap().internal_ips.clear();
    cluster
}

fn walk(engine: &Engine<'_>, from: &str, to: &str) -> Result<Verdict, WalkError> {
    let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
    engine.verdict(&Flow { from, to, protocol: Protocol::Tcp })
}

#[test]
fn a_node_that_cannot_be_compiled_stays_an_error() {
    let cluster = cluster();
    let engine = Engine::new(&cluster).unwrap();
    for time in ["first", "second", "third"] {
        let found = walk(&engine, "pod/shop/web", "172.16.0.10:80");
        assert!(matches!(found, Err(WalkError::Compile(..))), "the {time} time: {found:?}");
    }
}

#[test]
fn an_error_of_one_flow_is_not_reported_for_another() {
    let cluster = cluster();
    let engine = Engine::new(&cluster).unwrap();
    // Health checks of the load balancer reach n2.
    let _ = engine.health(([10, 0, 0, 100], 80).into(), Protocol::Tcp);
    let found = walk(&engine, "pod/shop/alone", "10.1.1.2:8080");
    assert!(found.is_ok(), "{found:?}");
}
