//! What nobody says and what decides: a verdict for each case, and none for what does not
//! matter.

#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use uturn_model::Flow;
use uturn_path::Engine;
use uturn_snapshot::Source;

/// A pull request: workloads, a Service and an Ingress, and nothing of the cluster.
const PULL_REQUEST: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web, ports: [{containerPort: 8080}]}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: client, namespace: shop}
spec:
  replicas: 1
  selector: {matchLabels: {app: client}}
  template:
    metadata: {labels: {app: client}}
    spec: {containers: [{name: client, image: client}]}
---
apiVersion: v1
kind: Service
metadata:
  name: web
  namespace: shop
  annotations: {service.kubernetes.io/qcloud-loadbalancer-internal-subnetid: subnet-x}
spec:
  type: LoadBalancer
  externalTrafficPolicy: Local
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080}]
status: {loadBalancer: {ingress: [{ip: 10.0.0.100}]}}
"#;

const MODE: &str = r#"
---
apiVersion: uturn.dev/v1alpha1
kind: Facts
spec: {kubeProxy: {mode: iptables, version: v1.34.4}}
"#;

/// Each verdict as `conditions: outcomes`.
fn told(manifests: &str, from: &str, to: &str) -> Vec<String> {
    let source = Source { name: "cluster.yaml".into(), text: manifests.into() };
    let cluster = uturn_snapshot::read(vec![source]).unwrap().cluster;
    let engine = Engine::new(&cluster).unwrap();
    let flow = Flow {
        from: from.parse().unwrap(),
        to: to.parse().unwrap(),
        protocol: uturn_model::Protocol::Tcp,
    };
    let verdicts = engine.cases(&flow).unwrap();
    let said = verdicts.iter().map(|verdict| {
        let outcomes: Vec<String> = verdict
            .outcomes
            .iter()
            .map(|(outcome, share)| format!("{:.0} % {outcome}", share * 100.0))
            .collect();
        format!("{}: {}", verdict.conditions.join(" and "), outcomes.join(", "))
    });
    said.collect()
}

#[test]
fn what_makes_no_difference_is_not_said() {
    assert_eq!(
        told(PULL_REQUEST, "deploy/shop/client", "svc/shop/web"),
        [": 100 % answered at once"]
    );
}

#[test]
fn the_mode_and_the_place_decide_together() {
    assert_eq!(
        told(PULL_REQUEST, "deploy/shop/client", "http://10.0.0.100/"),
        [
            "kube-proxy mode is iptables or nftables, with a cluster CIDR: 100 % answered at once",
            "kube-proxy mode is iptables or nftables, without a cluster CIDR and the client runs \
             on a node without an endpoint of shop/web: 100 % hangs",
            "kube-proxy mode is iptables or nftables, without a cluster CIDR and the client runs \
             on a node with an endpoint of shop/web: 100 % answered at once",
            "kube-proxy mode is ipvs and the client runs on a node without an endpoint of \
             shop/web: 100 % answered at once",
            "kube-proxy mode is ipvs and the client runs on a node with an endpoint of shop/web: \
             50 % answered at once, 50 % hangs",
        ]
    );
}

#[test]
fn what_is_stated_is_no_question() {
    let stated = format!("{PULL_REQUEST}{MODE}");
    assert_eq!(
        told(&stated, "deploy/shop/client", "http://10.0.0.100/"),
        [
            "kube-proxy has a cluster CIDR: 100 % answered at once",
            "kube-proxy has no cluster CIDR and the client runs on a node without an endpoint of \
             shop/web: 100 % hangs",
            "kube-proxy has no cluster CIDR and the client runs on a node with an endpoint of \
             shop/web: 100 % answered at once",
        ]
    );
    // With the ranges of pods all is said: kube-proxy lets pods through to other nodes.
    let ranges = "  network: {podCIDRs: [10.1.0.0/16]}\n";
    let known = format!(
        "{PULL_REQUEST}{}{ranges}",
        MODE.replace("spec: {kube", "spec:\n  kube").replace("}}", "}")
    );
    assert_eq!(
        told(&known, "deploy/shop/client", "http://10.0.0.100/"),
        [": 100 % answered at once"]
    );
    // Nodes do not move.
    let from_node = told(&stated, "node/n1", "http://10.0.0.100/");
    assert!(from_node.len() == 1 && from_node[0].starts_with(':'), "{from_node:?}");
}
