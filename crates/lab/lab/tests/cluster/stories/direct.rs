//! Pods as targets: calls wait that the load balancer sends to a pod on the caller's node.

use crate::stage::{Story, ingress};

/// The annotation by which the targets of an Ingress are pods.
const DIRECT: &str = "ingress.cloud.tencent.com/direct-access";

/// Two servers on different nodes, their Service, and a client on every node.
const SHOP: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - topologyKey: kubernetes.io/hostname
            labelSelector: {matchLabels: {app: web}}
      containers:
      - {name: web, image: web, ports: [{containerPort: 8080}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: client, labels: {app: client}}
spec:
  replicas: 3
  selector: {matchLabels: {app: client}}
  template:
    metadata: {labels: {app: client}}
    spec:
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - topologyKey: kubernetes.io/hostname
            labelSelector: {matchLabels: {app: client}}
      containers:
      - {name: client, image: client, ports: [{containerPort: 9090}]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: 8080}]
"#;

/// How many calls a pod makes: a multiple of the numbers of targets.
const CALLS: usize = 12;

pub(crate) fn story(story: &Story<'_>) {
    story.apply_all(&[SHOP, &ingress(None, &[(DIRECT, "true")])]);
    let address = story.ingress_address("web");
    let servers = story.pods_of("web");
    let clients = story.pods_of("client");
    story.stage.wait_for_health(&address, 2, 0);
    let targets = story.stage.health(&address).into_keys();
    let mut expected: Vec<String> =
        servers.iter().map(|server| format!("{}:8080", story.ip_of(server))).collect();
    expected.sort();
    assert_eq!(targets.collect::<Vec<_>>(), expected);

    let url = format!("http://{address}/");
    let is_beside = |client: &str, servers: &[String]| {
        servers.iter().any(|server| story.node_of(server) == story.node_of(client))
    };
    for client in &clients {
        story.settle();
        let calls = story.calls(client, &url, CALLS);
        calls.assert_waited(if is_beside(client, &servers) { CALLS / 2 } else { 0 });
        story.assert_predicted("Ingress/web", client, &calls);
    }
    // A server is a target itself, and the load balancer sends no client to its own address.
    story.settle();
    let calls = story.calls(&servers[0], &url, CALLS);
    calls.assert_waited(0);
    assert!(calls.0.iter().all(|call| call.by != Some(story.title(&servers[0]))), "{calls:#?}");
    story.assert_predicted("Ingress/web", &servers[0], &calls);

    // With one server there is nothing else to try.
    story.kubectl(&["scale", "deployment/web", "--replicas", "1"]);
    let servers = story.pods_of("web");
    story.stage.wait_for_health(&address, 1, 0);
    for client in &clients {
        story.settle();
        let calls = story.calls(client, &url, CALLS);
        if is_beside(client, &servers) {
            assert_eq!(calls.count(|call| call.status == 504), CALLS, "{calls:#?}");
        } else {
            calls.assert_waited(0);
        }
        story.assert_predicted("Ingress/web", client, &calls);
    }
    story.settle();
}
