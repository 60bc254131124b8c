//! A Service of type LoadBalancer in iptables mode: nodes have rules for its address, so the calls
//! of its own pods never leave for the load balancer.

use serde_json::json;

use crate::stage::{Story, servers};

/// The servers' Service, behind a private load balancer.
const SERVICE: &str = r#"
apiVersion: v1
kind: Service
metadata:
  name: web
  annotations:
    service.kubernetes.io/qcloud-loadbalancer-internal-subnetid: subnet-00000001
spec:
  type: LoadBalancer
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: 8080}]
"#;

/// How many calls a pod makes.
const CALLS: usize = 6;

pub(crate) fn story(story: &Story<'_>) {
    let before = story.stage.operator_calls();
    story.apply_all(&[&servers(3), SERVICE]);
    let address = story.service_address("web");
    let listener = story.stage.listener(&address, 80, |_| true);
    assert_eq!(listener.protocol.as_deref(), Some("TCP"));
    let pods = story.pods_of("web");
    story.settle();
    // The load balancer, its listener, and its targets.
    story.stage.assert_operator_calls(before, 3);
    let url = format!("http://{address}/");
    let prediction = story.stage.predict();
    for pod in &pods {
        let calls = story.calls(pod, &url, CALLS);
        calls.assert_waited(0);
        prediction.assert_agrees(story, "Service/web", pod, &calls);
        let outcomes = prediction.outcomes(story, pod, &url);
        assert_eq!(outcomes[0]["share"], json!(1.0), "{outcomes:?}");
    }
}
