//! A Service whose own pods call it by its load balancer, in IPVS mode of TKE's kube-proxy, which
//! leaves the address unbound: under policy Local one call in two hangs, until the Service asks for
//! prevent-loopback and kube-proxy knows that.

use serde_json::Value;

use crate::stage::Story;

/// Two pods of a web server, one on each node, behind a load balancer on layer 4.
const WEB: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, labels: {app: web}}
spec:
  replicas: 2
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
metadata:
  name: web
  annotations: {service.kubernetes.io/qcloud-loadbalancer-internal-subnetid: subnet-00000001}
spec:
  type: LoadBalancer
  externalTrafficPolicy: Local
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: 8080}]
"#;

/// The annotation, set.
const PREVENT_LOOPBACK: &str = "service.cloud.tencent.com/prevent-loopback=true";

/// How many calls a pod makes: a multiple of the number of targets.
const CALLS: usize = 4;

/// After how many seconds a client gives a call up that hangs.
const LIMIT: &str = "10";

/// With a kube-proxy that knows the annotation.
pub(crate) fn cured(story: &Story<'_>) {
    let (address, pods) = begin(story);
    half_hang(story, &address, &pods, "UT102");
    story.annotate("service/web", PREVENT_LOOPBACK);
    story.stage.listener(&address, 80, |listener| {
        let check = listener.health_check.as_ref();
        check.is_some_and(|check| check.source_ip_type == Some(1))
    });
    for node in ["node/n1", "node/n2"] {
        story.stage.until(&format!("{node} binds {address}"), || {
            let bound = bound(story, node);
            if is_in(&bound, &address) { Ok(()) } else { Err(bound) }
        });
    }
    story.settle();
    all_targets_live(story);
    for pod in &pods {
        let calls = story.calls_within(pod, &url(&address), CALLS, LIMIT);
        assert_eq!(calls.share_failing(), 0.0, "{calls:#?}");
        let prediction = story.stage.predict();
        assert_eq!(prediction.share_failing(story, "Service/web", pod), 0.0);
    }
}

/// With one that is too old for it.
pub(crate) fn too_old(story: &Story<'_>) {
    let (address, pods) = begin(story);
    story.annotate("service/web", PREVENT_LOOPBACK);
    story.stage.listener(&address, 80, |listener| {
        let check = listener.health_check.as_ref();
        check.is_some_and(|check| check.source_ip_type == Some(1))
    });
    half_hang(story, &address, &pods, "UT202");
}

/// Makes the Service. Returns its address, and the names of its pods.
fn begin(story: &Story<'_>) -> (String, Vec<String>) {
    story.apply(WEB);
    let address = story.service_address("web");
    let listener = story.stage.listener(&address, 80, |_| true);
    assert_eq!(listener.protocol.as_deref(), Some("TCP"));
    let pods = story.pods_of("web");
    assert_eq!(pods.len(), 2);
    (address, pods)
}

/// The nodes leave the address unbound, and the calls hang that the load balancer sends to the
/// pod's own node.
fn half_hang(story: &Story<'_>, address: &str, pods: &[String], code: &str) {
    story.settle();
    all_targets_live(story);
    for node in ["node/n1", "node/n2"] {
        let bound = bound(story, node);
        assert!(!is_in(&bound, address), "{bound}");
    }
    for pod in pods {
        let calls = story.calls_within(pod, &url(address), CALLS, LIMIT);
        let prediction = story.stage.predict();
        let predicted = prediction.share_failing(story, "Service/web", pod);
        let (measured, codes) = (calls.share_failing(), prediction.codes(story, "Service/web"));
        println!("{pod}: measured {measured:.3}, predicted {predicted:.3}: {codes:?}");
        assert_eq!(measured, 0.5, "{calls:#?}");
        assert_eq!(predicted, measured);
        assert!(codes.iter().any(|known| known == code), "{codes:?}");
    }
}

/// The health checks of both targets are answered.
fn all_targets_live(story: &Story<'_>) {
    story.stage.until("both targets live", || {
        let page: Value =
            serde_json::from_str(&story.stage.page("http://127.0.0.1:9900/targets")).unwrap();
        let targets = page["targets"].as_array().unwrap();
        let live = targets.iter().filter(|target| target["alive"] == true);
        if targets.len() == 2 && live.count() == 2 { Ok(()) } else { Err(page.to_string()) }
    });
}

fn url(address: &str) -> String {
    format!("http://{address}/")
}

/// The addresses that IPVS has bound on a node.
fn bound(story: &Story<'_>, node: &str) -> String {
    story.stage.exec(node, &["ip", "-brief", "address", "show", "kube-ipvs0"])
}

fn is_in(bound: &str, address: &str) -> bool {
    bound.split_whitespace().any(|word| word == format!("{address}/32"))
}
