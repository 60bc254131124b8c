//! Load balancers of the user's that Services and Ingresses use.

use serde_json::{Value, json};
use uturn_model::Cluster;

use crate::held;
use crate::rich;
use crate::stage::{Stage, cluster, environment};

/// A cluster whose Services `both` and `local` use a load balancer.
fn shared(lb: &str, more: &str) -> Cluster {
    let own = format!("    service.kubernetes.io/tke-existed-lbid: {lb}\n");
    let text = rich::RICH
        .replace(
            "    service.kubernetes.io/qcloud-loadbalancer-internal-subnetid: subnet-aaaaaaaa\n",
            &own,
        )
        .replace(
            "    service.kubernetes.io/local-svc-only-bind-node-with-pod: \"true\"\n",
            &format!("{own}{more}"),
        );
    let mut cluster = cluster(&text);
    cluster.ingresses.clear();
    cluster.services.retain(|name, _| ["both", "local"].contains(&name.name.as_str()));
    cluster
}

fn create(stage: &Stage, tags: &Value) -> String {
    let answer =
        stage.by_hand("CreateLoadBalancer", json!({ "LoadBalancerType": "OPEN", "Tags": tags }));
    answer["LoadBalancerIds"][0].as_str().unwrap().to_owned()
}

fn ports(stage: &Stage, lb: &str) -> Vec<(i64, String)> {
    let answer = stage.by_hand("DescribeListeners", json!({ "LoadBalancerId": lb }));
    let listeners = answer["Listeners"].as_array().unwrap().iter();
    let port = |listener: &Value| {
        (listener["Port"].as_i64().unwrap(), listener["ListenerName"].as_str().unwrap().to_owned())
    };
    let mut ports: Vec<_> = listeners.map(port).collect();
    ports.sort();
    ports
}

const OWN: &str = "TKE-DEDICATED-LISTENER";

#[test]
fn services_share_a_load_balancer_of_the_users() {
    let stage = Stage::new();
    let lb = create(&stage, &json!([]));
    stage.by_hand(
        "CreateListener",
        json!({ "LoadBalancerId": lb, "Ports": [8443],
        "Protocol": "TCP", "ListenerNames": ["mine"] }),
    );
    let cluster = shared(&lb, "");
    let environment = environment(&cluster);
    let events = stage.settle(&cluster, &environment);
    // Both want 80/TCP: the first has it.
    let codes: Vec<&str> = events.iter().map(|event| event.code).collect();
    assert_eq!(codes, ["E4014"]);
    let own = |port| (port, OWN.to_owned());
    let mine = (8443, "mine".to_owned());
    assert_eq!(ports(&stage, &lb), [own(53), own(80), mine.clone()]);
    // A Service goes, and another listener with it.
    let mut rest = cluster;
    rest.services.retain(|name, _| name.name.as_str() == "local");
    assert_eq!(stage.settle(&rest, &environment), []);
    assert_eq!(ports(&stage, &lb), [own(80), mine.clone()]);
    // The last one goes: the user's load balancer stays with the user's listener.
    rest.services.clear();
    stage.settle(&rest, &environment);
    assert_eq!(ports(&stage, &lb), [mine]);
}

#[test]
fn a_load_balancer_that_may_not_be_used_is_left() {
    let own = json!([{ "TagKey": "tke-createdBy-flag", "TagValue": "yes" }]);
    let foreign = json!([{ "TagKey": "tke-clusterId", "TagValue": "cls-bbbbbbbb" }]);
    for (tags, code) in [(own, "E4012"), (foreign, "E4013")] {
        let stage = Stage::new();
        let lb = create(&stage, &tags);
        let cluster = shared(&lb, "");
        let environment = environment(&cluster);
        let events = stage.settle(&cluster, &environment);
        assert!(events.iter().filter(|event| event.code == code).count() == 2, "{events:?}");
        assert_eq!(stage.take_log(), [""; 0]);
    }
    let stage = Stage::new();
    let cluster = shared("lb-nowhere0", "");
    let events = stage.settle(&cluster, &environment(&cluster));
    assert!(events.iter().any(|event| event.code == "E4011"), "{events:?}");
    assert_eq!(stage.take_log(), [""; 0]);
}

#[test]
fn a_live_service_keeps_its_load_balancer() {
    let stage = Stage::new();
    let (first, second) = (create(&stage, &json!([])), create(&stage, &json!([])));
    let mut cluster = shared(&first, "");
    cluster.services.retain(|name, _| name.name.as_str() == "local");
    let environment = environment(&cluster);
    stage.settle(&cluster, &environment);
    let before = held::served(&stage.accounts());
    let current = format!("    service.kubernetes.io/loadbalance-id: {first}\n");
    let mut moved = shared(&second, &current);
    moved.services.retain(|name, _| name.name.as_str() == "local");
    let events = stage.settle(&moved, &environment);
    let codes: Vec<&str> = events.iter().map(|event| event.code).collect();
    assert_eq!(codes, ["E4005"]);
    assert_eq!(held::served(&stage.accounts()), before);
}
