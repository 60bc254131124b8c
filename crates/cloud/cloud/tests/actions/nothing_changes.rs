//! Whatever requests come, those that fail leave the account as it was, and descriptions too.

use proptest::prelude::*;
use serde_json::{Value, json};

use crate::harness::{Harness, upload};

/// Requests of which many fail: `L`, `M` and `N` stand for ids that may be there.
fn requests() -> Vec<(&'static str, Value)> {
    let rules = json!([
        { "Domain": "a.test", "Url": "/", "Certificate": upload() },
        { "Domain": "a.test", "Url": "x" },
    ]);
    let map = json!({ "SourceLocationId": "N", "TargetLocationId": "N" });
    vec![
        ("CreateLoadBalancer", json!({ "LoadBalancerType": "OPEN", "ClientToken": "t" })),
        (
            "CreateLoadBalancer",
            json!({ "LoadBalancerType": "OPEN", "ClientToken": "t", "Number": 2 }),
        ),
        ("CreateLoadBalancer", json!({ "LoadBalancerType": "INTERNAL" })),
        ("DeleteLoadBalancer", json!({ "LoadBalancerIds": ["L", "lb-x"] })),
        ("DeleteLoadBalancer", json!({ "LoadBalancerIds": ["L"] })),
        ("ModifyLoadBalancerAttributes", json!({ "LoadBalancerId": "L", "DeleteProtect": true })),
        ("ModifyLoadBalancerAttributes", json!({ "LoadBalancerId": "L", "LoadBalancerName": "" })),
        ("CreateListener", json!({ "LoadBalancerId": "L", "Protocol": "TCP", "Ports": [80, 80] })),
        ("CreateListener", json!({ "LoadBalancerId": "L", "Protocol": "HTTP", "Ports": [80] })),
        (
            "CreateListener",
            json!({
                "LoadBalancerId": "L", "Protocol": "HTTPS", "Ports": [443], "Certificate": upload(),
            }),
        ),
        (
            "ModifyListener",
            json!({
                "LoadBalancerId": "L", "ListenerId": "M", "ListenerName": "n", "SniSwitch": 1,
                "Certificate": upload(),
            }),
        ),
        ("ModifyListener", json!({ "LoadBalancerId": "L", "ListenerId": "M", "SniSwitch": 1 })),
        (
            "DeleteLoadBalancerListeners",
            json!({ "LoadBalancerId": "L", "ListenerIds": ["M", "x"] }),
        ),
        ("CreateRule", json!({ "LoadBalancerId": "L", "ListenerId": "M", "Rules": rules })),
        (
            "CreateRule",
            json!({
                "LoadBalancerId": "L", "ListenerId": "M", "Rules": [{ "Domain": "a.test", "Url": "/" }],
            }),
        ),
        (
            "DeleteRule",
            json!({
                "LoadBalancerId": "L", "ListenerId": "M", "Domain": "a.test",
                "NewDefaultServerDomain": "a.test",
            }),
        ),
        ("AutoRewrite", json!({ "LoadBalancerId": "L", "ListenerId": "M" })),
        (
            "ManualRewrite",
            json!({
                "LoadBalancerId": "L", "SourceListenerId": "M", "TargetListenerId": "M",
                "RewriteInfos": [map],
            }),
        ),
        (
            "SetLoadBalancerSecurityGroups",
            json!({
                "LoadBalancerId": "L", "SecurityGroups": ["sg-a", "x"],
            }),
        ),
        (
            "CreateLoadBalancerSnatIps",
            json!({
                "LoadBalancerId": "L", "SnatIps": [{ "SubnetId": "subnet-a" }, { "SubnetId": "x" }],
            }),
        ),
    ]
}

/// Everything that an account's owner sees.
fn seen(cloud: &Harness) -> Vec<Value> {
    let load_balancers = cloud.ok("DescribeLoadBalancers", json!({}))["LoadBalancerSet"].clone();
    let listeners: Vec<Value> = load_balancers
        .as_array()
        .unwrap()
        .iter()
        .map(|load_balancer| cloud.listeners(load_balancer["LoadBalancerId"].as_str().unwrap()))
        .collect();
    let quotas = cloud.ok("DescribeQuota", json!({}))["QuotaSet"].clone();
    [vec![load_balancers, quotas], listeners].concat()
}

/// The request with ids that are there, if any are.
fn filled(cloud: &Harness, request: &Value, pick: usize) -> Value {
    let seen = seen(cloud);
    let at = |list: &Value| {
        list.get(pick % list.as_array().map_or(1, |list| list.len().max(1))).cloned()
    };
    let load_balancer = at(&seen[0]);
    let id = |object: Option<&Value>, member: &str| {
        object.and_then(|object| object[member].as_str()).unwrap_or("x").to_owned()
    };
    let lb = id(load_balancer.as_ref(), "LoadBalancerId");
    let listeners = if lb == "x" { json!([]) } else { cloud.listeners(&lb) };
    let listener = at(&listeners);
    let rule = listener.as_ref().and_then(|listener| at(&listener["Rules"]));
    let text = request
        .to_string()
        .replace("\"L\"", &json!(lb).to_string())
        .replace("\"M\"", &json!(id(listener.as_ref(), "ListenerId")).to_string())
        .replace("\"N\"", &json!(id(rule.as_ref(), "LocationId")).to_string());
    serde_json::from_str(&text).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_request_that_fails_changes_nothing(
        steps in prop::collection::vec((any::<prop::sample::Index>(), 0_usize..4), 1..40),
    ) {
        let cloud = Harness::new();
        let requests = requests();
        for (step, pick) in steps {
            let (action, request) = step.get(&requests);
            let request = filled(&cloud, request, pick);
            let before = seen(&cloud);
            // What is stored is compared by the harness.
            if cloud.send(action, &request).is_err() {
                prop_assert_eq!(seen(&cloud), before);
            }
        }
    }
}
