//! The cure for layer 7, and a security group of the nodes that does not know the addresses that
//! the load balancer then calls from.

use serde_json::json;

use crate::stage::{AUTO_CONFIG, NODE_PORT, Story, ingress, servers};

/// How many calls a pod makes: a multiple of the number of targets.
const CALLS: usize = 12;
/// How many targets there are: a port of each node.
const TARGETS: usize = 3;

pub(crate) fn story(story: &Story<'_>) {
    // What most have: everything of the VPC and its pods.
    let inside =
        json!({"action": "accept", "protocol": "all", "ports": "all", "peer": "10.0.0.0/8"});
    let replaced = json!({
        "action": "accept", "protocol": "tcp", "ports": "30000-32768", "peer": "100.127.0.0/16",
    });
    story.stage.state(&json!({
        "nodes": {"*": {"securityGroups": ["sg-nodes"]}},
        "securityGroups": {"sg-nodes": {"inbound": [inside]}},
    }));
    story.apply_all(&[&servers(3), NODE_PORT, &ingress(None, &[(AUTO_CONFIG, "true")])]);
    let address = story.ingress_address("web");
    let pods = story.pods_of("web");
    let url = format!("http://{address}/");
    story.stage.wait_for_health(&address, TARGETS, 0);
    story.settle();
    let calls = story.calls(&pods[0], &url, CALLS);
    calls.assert_waited(CALLS / TARGETS);
    story.assert_predicted("Ingress/web", &pods[0], &calls);

    // The cure shuts the load balancer out. Its health checks are let in as before, so the cloud
    // says that all is well.
    story.wait_for_config();
    story.set_keepalive(&address, 1);
    for pod in &pods {
        story.settle();
        story.stage.wait_for_health(&address, TARGETS, 0);
        let calls = story.calls(pod, &url, CALLS);
        assert_eq!(calls.count(|call| call.status == 504), CALLS, "{calls:#?}");
        let prediction = story.assert_predicted("SecurityGroup/sg-nodes", pod, &calls);
        assert_eq!(prediction.codes(story, "SecurityGroup/sg-nodes"), ["UT702"]);
    }
    assert_eq!(story.ingress_address("web"), address);

    // One rule more mends it.
    story.stage.state(&json!({"securityGroups": {"sg-nodes": {"inbound": [inside, replaced]}}}));
    for pod in &pods {
        story.settle();
        let calls = story.calls(pod, &url, CALLS);
        calls.assert_waited(0);
        let own = story.ip_of(pod);
        let knows = |source: &Option<String>| source.as_deref() == Some(own.as_str());
        assert!(calls.0.iter().all(|call| knows(&call.forwarded_for)), "{calls:#?}");
        let prediction = story.assert_predicted("SecurityGroup/sg-nodes", pod, &calls);
        prediction.assert_agrees(story, "Ingress/web", pod, &calls);
    }
    story.stage.state(&json!({"nodes": {"*": {"securityGroups": null}}, "securityGroups": null}));
}
