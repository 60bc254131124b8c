//! What listens on a node: what is stated of it is judged, anything else is not known.

#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use uturn_model::Flow;
use uturn_path::Engine;
use uturn_snapshot::Source;
use uturn_testing::manifests::{facts, node};

const MODE: &str = "kubeProxy: {mode: iptables, version: v1.34.4}";

/// An API server on n1, and a Service whose endpoints are node ports of another.
const SERVICES: &str = "---
apiVersion: v1
kind: Service
metadata: {name: kubernetes, namespace: default}
spec: {clusterIP: 172.16.0.1, ports: [{name: https, port: 443, targetPort: 6443}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: kubernetes, namespace: default, labels: {kubernetes.io/service-name: kubernetes}}
addressType: IPv4
ports: [{name: https, port: 6443}]
endpoints: [{addresses: [10.0.0.11], conditions: {ready: true}}]
---
apiVersion: v1
kind: Service
metadata: {name: by-nodes, namespace: default}
spec: {clusterIP: 172.16.0.2, ports: [{port: 80, targetPort: 30080}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: by-nodes, namespace: default, labels: {kubernetes.io/service-name: by-nodes}}
addressType: IPv4
ports: [{port: 30080}, {name: agent, port: 31999}]
endpoints: [{addresses: [10.0.0.12], conditions: {ready: true}}]
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: default}
spec:
  type: NodePort
  clusterIP: 172.16.0.3
  externalTrafficPolicy: Local
  healthCheckNodePort: 32111
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080, nodePort: 30080}]
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: default, labels: {app: web}}
spec: {nodeName: n1, containers: [{name: web, image: web, ports: [{containerPort: 8080}]}]}
status: {phase: Running, podIP: 10.1.1.30, podIPs: [{ip: 10.1.1.30}], conditions: [{type: Ready, status: \"True\"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: agent, namespace: default, labels: {app: agent}}
spec: {nodeName: n2, hostNetwork: true, containers: [{name: agent, image: agent, ports: [{containerPort: 9100}]}]}
status: {phase: Running, podIP: 10.0.0.12, podIPs: [{ip: 10.0.0.12}], conditions: [{type: Ready, status: \"True\"}]}
";

fn outcomes(from: &str, to: &str, more: &str) -> String {
    let text = facts(&[MODE]) + SERVICES + &node(1) + &node(2) + more;
    let source = Source { name: "cluster.yaml".into(), text };
    let cluster = uturn_snapshot::read(vec![source]).unwrap().cluster;
    let engine = Engine::new(&cluster).unwrap();
    let flow = Flow {
        from: from.parse().unwrap(),
        to: to.parse().unwrap(),
        protocol: uturn_model::Protocol::Tcp,
    };
    let outcomes = engine.verdict(&flow).unwrap().outcomes;
    outcomes
        .iter()
        .map(|(outcome, share)| format!("{share} {outcome}"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// The kubelet has ports there, of which no object tells.
#[test]
fn the_loopback_address_of_a_node_is_not_given() {
    assert_eq!(outcomes("node/n1", "127.0.0.1:10248", ""), "1 not known");
    assert_eq!(outcomes("node/n1", "10.0.0.11:10250", ""), "1 not known");
    assert_eq!(outcomes("outside", "10.0.0.12:22", ""), "1 not known");
}

#[test]
fn what_is_stated_to_listen_answers() {
    assert_eq!(outcomes("node/n2", "10.0.0.11:6443", ""), "1 answered at once");
    assert_eq!(outcomes("outside", "10.0.0.12:9100", ""), "1 answered at once");
    // On another node, and at another address of the same node, it may or may not.
    assert_eq!(outcomes("node/n2", "10.0.0.12:6443", ""), "1 not known");
    assert_eq!(outcomes("node/n1", "127.0.0.1:6443", ""), "1 not known");
}

/// Rules decide at the ports of Services, before a socket is asked. What they leave is refused.
#[test]
fn an_endpoint_at_a_node_port_is_no_process() {
    assert_eq!(outcomes("node/n1", "10.0.0.11:30080", ""), "1 answered at once");
    // Policy Local, and no endpoint: rules drop it.
    assert_eq!(outcomes("outside", "10.0.0.12:30080", ""), "1 hangs");
    // No rule has a node port at the loopback address of a node that does not route it.
    assert_eq!(outcomes("node/n2", "127.0.0.1:30081", ""), "1 refused");
    // A port of the range that no Service has, and an endpoint tells of.
    assert_eq!(outcomes("outside", "10.0.0.12:31999", ""), "1 answered at once");
    assert_eq!(outcomes("outside", "10.0.0.11:31999", ""), "1 refused");
}

/// kube-proxy answers them with what its node has.
#[test]
fn a_port_for_health_checks_is_not_refused() {
    assert_eq!(outcomes("outside", "10.0.0.11:32111", ""), "1 not known");
}

/// kube-proxy answers at the health-check node port of a load balancer's Service on every node: 200
/// where the node has a ready endpoint, 503 elsewhere.
#[test]
fn kube_proxy_answers_the_health_checks_of_a_service() {
    let own = "---
apiVersion: v1
kind: Service
metadata: {name: front, namespace: default}
spec:
  type: LoadBalancer
  clusterIP: 172.16.0.4
  externalTrafficPolicy: Local
  healthCheckNodePort: 32112
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080, nodePort: 30082}]
";
    assert_eq!(outcomes("outside", "10.0.0.11:32112", own), "1 answered at once");
    assert_eq!(outcomes("node/n2", "10.0.0.12:32112", own), "1 answered at once");
    assert_eq!(outcomes("outside", "http://10.0.0.11:32112/healthz", own), "1 answered at once");
    assert_eq!(outcomes("outside", "http://10.0.0.12:32112/healthz", own), "1 503 at once");
    assert_eq!(outcomes("outside", "https://10.0.0.11:32112/healthz", own), "1 TLS error");
}
