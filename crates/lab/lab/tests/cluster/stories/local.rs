//! Clients and servers on different nodes, policy Local, and what it takes for that to help.

use std::ops::RangeInclusive;

use serde_json::json;

use crate::stage::{NODE_PORT, Story, ingress};

/// Two servers and a client, each on a node of its own.
const PODS: &str = r#"
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
            labelSelector: {matchExpressions: [{key: app, operator: In, values: [web, client]}]}
      containers:
      - {name: web, image: web, ports: [{containerPort: 8080}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: client, labels: {app: client}}
spec:
  selector: {matchLabels: {app: client}}
  template:
    metadata: {labels: {app: client}}
    spec:
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
          - topologyKey: kubernetes.io/hostname
            labelSelector: {matchExpressions: [{key: app, operator: In, values: [web]}]}
      containers:
      - {name: client, image: client, ports: [{containerPort: 9090}]}
"#;

/// How many calls a pod makes: a multiple of the numbers of targets.
const CALLS: usize = 12;

/// How many it makes where kube-proxy chooses one of two endpoints at random.
const RANDOM_CALLS: usize = 48;
/// How many of these are chosen for one endpoint, but for one time in ten million.
const CHOSEN: RangeInclusive<usize> = 7..=41;

pub(crate) fn story(story: &Story<'_>) {
    story.apply_all(&[PODS, NODE_PORT, &ingress(None, &[])]);
    let address = story.ingress_address("web");
    let servers = story.pods_of("web");
    let [client] = &story.pods_of("client")[..] else { panic!("one client") };
    assert!(servers.iter().all(|server| story.node_of(server) != story.node_of(client)));
    let url = format!("http://{address}/");
    let expect = |pod: &str, waiting: usize| {
        story.settle();
        let calls = story.calls(pod, &url, CALLS);
        calls.assert_waited(waiting);
        story.assert_predicted("Ingress/web", pod, &calls);
    };

    // Every node is a target, the client's own too.
    story.stage.wait_for_health(&address, 3, 0);
    expect(client, CALLS / 3);

    // The client's node has no server: there the health check fails, and no call goes there. With
    // two servers that is not enough: kube-proxy sends what comes from a pod of the cluster to any
    // endpoint, and so half of it on to the other node, without replacing the source.
    story.patch("service/web", &json!({"spec": {"externalTrafficPolicy": "Local"}}));
    story.stage.wait_for_health(&address, 2, 1);
    story.settle();
    let calls = story.calls(client, &url, RANDOM_CALLS);
    println!("{client}: {} of {RANDOM_CALLS} calls fail or wait", calls.failing());
    assert!(CHOSEN.contains(&calls.failing()), "{calls:#?}");
    let predicted = story.stage.predict().share_failing(story, "Ingress/web", client);
    assert!((predicted - 0.5).abs() < 1e-6, "{predicted}");
    // From a server itself, every call waits that comes back to its node. On the other node, what
    // is for the server itself is masqueraded.
    expect(&servers[0], CALLS / 2);

    // With one server it helps.
    story.kubectl(&["scale", "deployment/web", "--replicas", "1"]);
    story.pods_of("web");
    story.stage.wait_for_health(&address, 1, 2);
    expect(client, 0);

    // The trap: without health checks every node is a target again, and any of the two without a
    // server sends the call on.
    story.drop_probes(true);
    story.stage.wait_for_health(&address, 0, 3);
    expect(client, CALLS * 2 / 3);

    // The way out of it: other nodes are no targets at all.
    let annotation = "service.kubernetes.io/local-svc-only-bind-node-with-pod=true";
    story.annotate("service/web", annotation);
    story.stage.wait_for_health(&address, 0, 1);
    expect(client, 0);
    story.drop_probes(false);
    story.stage.wait_for_health(&address, 1, 0);
}
