//! An Ingress whose own pods call it: one call in three waits, until the load balancer replaces
//! the clients' addresses.

use serde_json::{Value, json};

use crate::stage::{AUTO_CONFIG, NODE_PORT, Story, ingress, servers};

/// How many calls a pod makes: a multiple of the number of targets. Fewer than three of them fail,
/// so the load balancer does not leave the target alone.
const CALLS: usize = 6;
/// How many targets there are: a port of each node.
const TARGETS: usize = 3;

pub(crate) fn story(story: &Story<'_>) {
    let before = story.stage.operator_calls();
    story.apply_all(&[&servers(3), NODE_PORT, &ingress(None, &[])]);
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
    let waited = json!([
        {"outcome": "answered", "after_ms": 0, "count": CALLS - CALLS / TARGETS},
        {"outcome": "answered", "after_ms": 4000, "count": CALLS / TARGETS},
    ]);
    story.assert_probed(&pods[0], &url, &waited, &["UT101"]);
    // The load balancer, its listener, the rule, and its targets.
    story.stage.assert_operator_calls(before, 4);

    story.annotate("ingress/web", &format!("{AUTO_CONFIG}=true"));
    let config = story.wait_for_config();
    let listener = &config["spec"]["loadBalancer"]["l7Listeners"][0];
    assert_eq!(listener["protocol"], "HTTP");
    assert_eq!(listener["domains"][0]["rules"][0]["url"], "/");
    assert_eq!(listener.get("keepaliveEnable"), None);

    story.set_keepalive(&address, 1);
    story.settle();
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
    let at_once = json!([{"outcome": "answered", "after_ms": 0, "count": CALLS}]);
    story.assert_probed(&pods[0], &url, &at_once, &[]);

    story.set_keepalive(&address, 0);
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
