//! An Ingress whose own pods call it: one call in three waits, until the load balancer replaces
//! the clients' addresses.

use serde_json::{Value, json};

use crate::stage::Story;

/// Three pods of a web server, one on each node, behind an Ingress with an address of its own.
const WEB: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: kubernetes.io/hostname
        whenUnsatisfiable: DoNotSchedule
        labelSelector: {matchLabels: {app: web}}
      containers:
      - {name: web, image: web, ports: [{containerPort: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: web}
spec:
  type: NodePort
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: 8080}]
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: web
  annotations:
    kubernetes.io/ingress.class: qcloud
    kubernetes.io/ingress.subnetId: subnet-00000001
spec:
  rules:
  - http:
      paths:
      - path: /
        pathType: ImplementationSpecific
        backend: {service: {name: web, port: {number: 80}}}
"#;

/// The configuration that the operator makes.
const CONFIG: &str = "web-auto-ingress-config";
const CONFIG_KIND: &str = "cloud.tencent.com/v1alpha1/TkeServiceConfig";

/// How many calls a pod makes: a multiple of the number of targets. Fewer than three of them fail,
/// so the load balancer does not leave the target alone.
const CALLS: usize = 6;
/// How many targets there are: a port of each node.
const TARGETS: usize = 3;

pub(crate) fn story(story: &Story<'_>) {
    let before = story.stage.operator_calls();
    story.apply(WEB);
    let address = story.ingress_address("web");
    let listener = story.stage.listener(&address, 80, |listener| {
        listener.rules.as_ref().is_some_and(|rules| rules.len() == 1)
    });
    assert_eq!(listener.protocol.as_deref(), Some("HTTP"));
    assert_eq!(listener.keepalive_enable, Some(0));
    let pods = story.pods_of("web");
    assert_eq!(pods.len(), TARGETS);
    let url = format!("http://{address}/");
    // Where kube-proxy was later than the first health check, a target is dead at first.
    story.stage.wait_for_health(&address, TARGETS, 0);
    one_in_three_waits(story, &pods, &url);
    // The load balancer, its listener, the rule, and its targets.
    story.stage.assert_operator_calls(before, 4);

    story.annotate("ingress/web", "ingress.cloud.tencent.com/tke-service-config-auto=true");
    let config = story.wait(CONFIG_KIND, CONFIG, |config| {
        config["spec"]["loadBalancer"]["l7Listeners"][0]["port"] == 80
    });
    let listener = &config["spec"]["loadBalancer"]["l7Listeners"][0];
    assert_eq!(listener["protocol"], "HTTP");
    assert_eq!(listener["domains"][0]["rules"][0]["url"], "/");
    assert_eq!(listener.get("keepaliveEnable"), None);

    set_keepalive(story, &address, 1);
    let prediction = story.stage.predict();
    for pod in &pods {
        let calls = story.calls(pod, &url, CALLS);
        calls.assert_waited(0);
        let own = story.ip_of(pod);
        for call in &calls.0 {
            assert_eq!(call.forwarded_for.as_deref(), Some(own.as_str()), "{call:?}");
        }
        prediction.assert_agrees(story, "Ingress/web", pod, &calls);
    }

    set_keepalive(story, &address, 0);
    one_in_three_waits(story, &pods, &url);
    // The listener was changed twice, and nothing else.
    story.stage.assert_operator_calls(before, 4 + 2);
}

/// From each pod, the calls wait that the load balancer sends to the pod's own node.
fn one_in_three_waits(story: &Story<'_>, pods: &[String], url: &str) {
    story.settle();
    let prediction = story.stage.predict();
    assert_eq!(prediction.codes(story, "Ingress/web")[0], "UT101");
    for pod in pods {
        story.stage.settle_load_balancers();
        let calls = story.calls(pod, url, CALLS);
        calls.assert_waited(CALLS / TARGETS);
        prediction.assert_agrees(story, "Ingress/web", pod, &calls);
        let waits: Vec<Value> = prediction
            .outcomes(story, pod, url)
            .into_iter()
            .map(|outcome| outcome["after_ms"].clone())
            .collect();
        assert_eq!(waits, [json!(0), json!(4000)]);
    }
}

/// What a user edits in the configuration that the operator made.
fn set_keepalive(story: &Story<'_>, address: &str, enable: i64) {
    let path = "/spec/loadBalancer/l7Listeners/0/keepaliveEnable";
    let patch = json!([{"op": "add", "path": path, "value": enable}]);
    story.patch(&format!("tkeserviceconfig/{CONFIG}"), &patch);
    story.stage.listener(address, 80, |listener| listener.keepalive_enable == Some(enable));
    story.settle();
}
