//! Pods as targets: they come before they are ready, end with weight 0, and have the weights that
//! users give them.

use serde_json::{Value, json};
use uturn_model::Cluster;
use uturn_operator::environment::Environment;
use uturn_operator::readiness::{GATE, Waiting, waiting};
use uturn_operator::wanted;

use crate::rich::RICH;
use crate::stage::{Stage, block_on, cluster, environment};

const FIRST: &str = "- {addresses: [10.1.1.5], nodeName: n1, conditions: {ready: true}}\n";
const SECOND: &str = "- {addresses: [10.1.2.5], nodeName: n2, conditions: {ready: true}}\n";

/// The Service `direct` alone, with these endpoints and annotations, and other objects.
fn direct(endpoints: &str, annotations: &str, more: &str) -> Cluster {
    let unready = "- {addresses: [10.1.2.6], nodeName: n2, conditions: {ready: false}}\n";
    let text = RICH.replace(&[FIRST, SECOND, unready].concat(), endpoints);
    let text = text.replace(
        "    service.cloud.tencent.com/direct-access: \"true\"\n",
        &format!("    service.cloud.tencent.com/direct-access: \"true\"\n{annotations}"),
    );
    let mut cluster = cluster(&format!("{text}{more}"));
    cluster.services.retain(|name, _| name.name.as_str() == "direct");
    cluster.ingresses.clear();
    cluster
}

/// The targets of the only listener: addresses with weights.
fn targets(stage: &Stage) -> Vec<(String, u64)> {
    let lb = balancer(stage);
    let answer = stage.by_hand("DescribeTargets", json!({ "LoadBalancerId": lb }));
    let targets = answer["Listeners"][0]["Targets"].as_array().unwrap().iter();
    let target = |target: &Value| {
        let address = target["PrivateIpAddresses"][0].as_str().unwrap();
        (address.to_owned(), target["Weight"].as_u64().unwrap())
    };
    let mut targets: Vec<_> = targets.map(target).collect();
    targets.sort();
    targets
}

fn balancer(stage: &Stage) -> String {
    let answer = stage.by_hand("DescribeLoadBalancers", json!({}));
    assert_eq!(answer["TotalCount"], 1);
    answer["LoadBalancerSet"][0]["LoadBalancerId"].as_str().unwrap().to_owned()
}

fn weights(pairs: &[(&str, u64)]) -> Vec<(String, u64)> {
    pairs.iter().map(|(address, weight)| ((*address).to_owned(), *weight)).collect()
}

fn settled(stage: &Stage, cluster: &Cluster) -> Environment {
    let environment = environment(cluster);
    assert_eq!(stage.settle(cluster, &environment), []);
    environment
}

#[test]
fn a_pod_that_ends_gets_no_new_connections_and_stays_until_it_is_gone() {
    let stage = Stage::new();
    settled(&stage, &direct(&[FIRST, SECOND].concat(), "", ""));
    assert_eq!(targets(&stage), weights(&[("10.1.1.5", 10), ("10.1.2.5", 10)]));
    stage.take_log();
    for serving in ["true", "false"] {
        let ending = SECOND.replace(
            "ready: true",
            &format!("ready: false, serving: {serving}, terminating: true"),
        );
        settled(&stage, &direct(&[FIRST, &ending].concat(), "", ""));
        assert_eq!(targets(&stage), weights(&[("10.1.1.5", 10), ("10.1.2.5", 0)]));
    }
    let calls = stage.take_log();
    assert_eq!(calls.len(), 1, "{calls:#?}");
    assert!(calls[0].starts_with("BatchModifyTargetWeight "), "{calls:#?}");
    settled(&stage, &direct(FIRST, "", ""));
    let calls = stage.take_log();
    assert_eq!(calls.len(), 1, "{calls:#?}");
    assert!(calls[0].starts_with("BatchDeregisterTargets "), "{calls:#?}");
    assert_eq!(targets(&stage), weights(&[("10.1.1.5", 10)]));
}

#[test]
fn the_address_of_a_pod_that_ends_may_be_another_pods_already() {
    let ending = FIRST.replace("ready: true", "ready: false, serving: true, terminating: true");
    for endpoints in [[FIRST, &ending].concat(), [&ending, FIRST].concat()] {
        let stage = Stage::new();
        settled(&stage, &direct(&endpoints, "", ""));
        assert_eq!(targets(&stage), weights(&[("10.1.1.5", 10)]));
    }
}

#[test]
fn a_pod_that_is_not_ready_is_no_target_or_has_weight_0() {
    let unready = SECOND.replace("true", "false");
    let endpoints = [FIRST, &unready].concat();
    let stage = Stage::new();
    settled(&stage, &direct(&endpoints, "", ""));
    assert_eq!(targets(&stage), weights(&[("10.1.1.5", 10)]));
    let kept = "    service.cloud.tencent.com/enable-grace-shutdown-tkex: \"true\"\n";
    settled(&stage, &direct(&endpoints, kept, ""));
    assert_eq!(targets(&stage), weights(&[("10.1.1.5", 10), ("10.1.2.5", 0)]));
}

#[test]
fn pods_have_the_weights_that_users_give_them() {
    let named = |endpoint: &str, pod: &str| {
        endpoint.replace(
            ", nodeName",
            &format!(", targetRef: {{kind: Pod, name: {pod}, namespace: shop}}, nodeName"),
        )
    };
    let endpoints = [named(FIRST, "web-0"), named(SECOND, "web-1")].concat();
    let note = |groups: &str| format!("    service.cloud.tencent.com/lb-rs-weight: '{groups}'\n");
    let by_index = |weight: u32| {
        note(&format!(
            r#"{{"defaultWeight":7,"groups":[{{"key":{{"proto":"TCP","port":8080}},"statefulSets":[{{"name":"web","weights":[{{"weight":{weight},"podIndexes":[0]}}]}}]}}]}}"#
        ))
    };
    let stage = Stage::new();
    settled(&stage, &direct(&endpoints, &by_index(0), ""));
    assert_eq!(targets(&stage), weights(&[("10.1.1.5", 0), ("10.1.2.5", 7)]));
    stage.take_log();
    settled(&stage, &direct(&endpoints, &by_index(30), ""));
    assert_eq!(targets(&stage), weights(&[("10.1.1.5", 30), ("10.1.2.5", 7)]));
    assert_eq!(stage.take_log().len(), 1);
    // What cannot be read counts as nothing, and users are told.
    let cluster = direct(&endpoints, &note("{"), "");
    let events = stage.settle(&cluster, &environment(&cluster));
    let codes: Vec<&str> = events.iter().map(|event| event.code).collect();
    assert_eq!(codes, ["W9001"]);
    assert_eq!(targets(&stage), weights(&[("10.1.1.5", 10), ("10.1.2.5", 10)]));
}

/// A pod whose containers are ready, with this gate.
fn pod(name: &str, address: &str, gate: &str) -> String {
    format!(
        "---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: shop}}
spec: {{nodeName: n1, readinessGates: [{{conditionType: {gate}}}]}}
status:
  phase: Running
  podIP: {address}
  podIPs: [{{ip: {address}}}]
  conditions:
  - {{type: ContainersReady, status: \"True\"}}
  - {{type: Ready, status: \"False\"}}
"
    )
}

fn ask(stage: &Stage, cluster: &Cluster, environment: &Environment) -> Waiting {
    let mut wanted = wanted::wanted(cluster, environment).unwrap();
    wanted.balancers[0].owners[0].current = Some(balancer(stage));
    let closed = cluster.pods.keys().cloned().collect();
    block_on(waiting(stage, cluster, &wanted, &closed)).unwrap()
}

#[test]
fn a_pod_is_ready_when_its_load_balancer_serves_it() {
    let unready = |address: &str, pod: &str| {
        format!(
            "- {{addresses: [{address}], targetRef: {{kind: Pod, name: {pod}, namespace: shop}}, \
             nodeName: n1, conditions: {{ready: false}}}}\n"
        )
    };
    let endpoints = [FIRST, &unready("10.1.1.6", "gated"), &unready("10.1.1.7", "other")].concat();
    let pods = [pod("gated", "10.1.1.6", GATE), pod("other", "10.1.1.7", "example.com/ready")];
    let cluster = direct(&endpoints, "", &pods.concat());
    let stage = Stage::new();
    let environment = settled(&stage, &cluster);
    // A pod that waits for something else is no target.
    assert_eq!(targets(&stage), weights(&[("10.1.1.5", 10), ("10.1.1.6", 10)]));

    let found = ask(&stage, &cluster, &environment);
    assert_eq!((found.served.len(), found.pending.len()), (0, 1), "nothing is known of it");
    stage.set_alive(&["10.1.1.5:8080"]);
    assert_eq!(ask(&stage, &cluster, &environment).served.len(), 0);
    stage.set_alive(&["10.1.1.6:8080"]);
    let found = ask(&stage, &cluster, &environment);
    let served: Vec<String> = found.served.keys().map(ToString::to_string).collect();
    assert_eq!((served, found.pending.len()), (vec!["shop/gated".to_owned()], 0));
    let owners: Vec<String> = found.served.values().flatten().map(ToString::to_string).collect();
    assert_eq!(owners, ["Service shop/direct"]);

    // Somebody unbinds it: it waits again.
    let lb = balancer(&stage);
    let listeners = stage.by_hand("DescribeListeners", json!({ "LoadBalancerId": lb }));
    stage.by_hand(
        "BatchDeregisterTargets",
        json!({ "LoadBalancerId": lb, "Targets": [{ "Port": 8080, "EniIp": "10.1.1.6",
            "ListenerId": listeners["Listeners"][0]["ListenerId"] }] }),
    );
    let found = ask(&stage, &cluster, &environment);
    assert_eq!((found.served.len(), found.pending.len()), (0, 1));
}

#[test]
fn a_pod_waits_for_every_rule_that_sends_to_it() {
    let ingress = "---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: front
  namespace: shop
  annotations: {ingress.cloud.tencent.com/direct-access: \"true\"}
spec:
  rules:
  - {http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: direct, port: {number: 8080}}}}]}}
  - {host: a.example.com, http: {paths: [{path: /, pathType: Exact, backend: {service: {name: direct, port: {number: 8080}}}}]}}
";
    let endpoint = "- {addresses: [10.1.1.6], targetRef: {kind: Pod, name: gated, namespace: \
                    shop}, nodeName: n1, conditions: {ready: false}}\n";
    let mut cluster = direct(endpoint, "", &pod("gated", "10.1.1.6", GATE));
    let with_ingress = crate::stage::cluster(&format!("{RICH}{ingress}"));
    let mut own = with_ingress.ingresses;
    own.retain(|name, _| name.name.as_str() == "front");
    cluster.ingresses = own;
    for service in cluster.services.values_mut() {
        service.kind = uturn_model::service::ServiceKind::ClusterIp;
    }
    let stage = Stage::new();
    let environment = settled(&stage, &cluster);
    assert_eq!(ask(&stage, &cluster, &environment).served.len(), 0);
    stage.set_alive(&["10.1.1.6:8080"]);
    assert_eq!(ask(&stage, &cluster, &environment).served.len(), 1);
    // A rule is made by another program's hand at the wrong place: the right one is missing.
    let lb = balancer(&stage);
    let listeners = stage.by_hand("DescribeListeners", json!({ "LoadBalancerId": lb }));
    stage.by_hand(
        "DeleteRule",
        json!({ "LoadBalancerId": lb, "ListenerId": listeners["Listeners"][0]["ListenerId"],
            "Domain": "a.example.com" }),
    );
    assert_eq!(ask(&stage, &cluster, &environment).served.len(), 0);
}

/// With `ClientIP`, and the note that it was on.
fn session(is_on: bool, note: &str, config: &str) -> Cluster {
    let text =
        if is_on { RICH.to_owned() } else { RICH.replace("  sessionAffinity: ClientIP\n", "") };
    let key = "    service.cloud.tencent.com/prevent-loopback: \"true\"\n";
    let mut cluster = cluster(&text.replace(key, &format!("{key}{note}{config}")));
    cluster.services.retain(|name, _| name.name.as_str() == "both");
    cluster.ingresses.clear();
    cluster
}

fn sessions(stage: &Stage) -> Vec<i64> {
    let lb = balancer(stage);
    let answer = stage.by_hand("DescribeListeners", json!({ "LoadBalancerId": lb }));
    let listeners = answer["Listeners"].as_array().unwrap().iter();
    listeners.map(|listener| listener["SessionExpireTime"].as_i64().unwrap()).collect()
}

#[test]
fn sessions_end_that_client_ip_began_and_no_others() {
    let note = "    uturn.dev/session-affinity: ClientIP\n";
    let stage = Stage::new();
    settled(&stage, &session(true, "", ""));
    assert_eq!(sessions(&stage), [3600, 3600]);
    settled(&stage, &session(false, note, ""));
    assert_eq!(sessions(&stage), [0, 0]);
    // One that was begun by hand stays.
    let lb = balancer(&stage);
    let answer = stage.by_hand("DescribeListeners", json!({ "LoadBalancerId": lb }));
    stage.by_hand(
        "ModifyListener",
        json!({ "LoadBalancerId": lb, "ListenerId": answer["Listeners"][0]["ListenerId"],
            "SessionExpireTime": 60 }),
    );
    let before = sessions(&stage);
    settled(&stage, &session(false, "", ""));
    assert_eq!(sessions(&stage), before);
}
