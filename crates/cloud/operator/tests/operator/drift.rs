//! What is changed by hand is mended, and what is the user's is left alone.

use serde_json::{Value, json};
use uturn_model::Cluster;
use uturn_operator::environment::Environment;
use uturn_operator::observed::Observed;
use uturn_operator::plan;
use uturn_operator::wanted::{self, Wanted};

use crate::held;
use crate::rich;
use crate::stage::{Stage, cluster, environment};

/// The load balancer with a name.
fn named(stage: &Stage, name: &str) -> String {
    let answer = stage.by_hand("DescribeLoadBalancers", json!({ "Limit": 100 }));
    let all = answer["LoadBalancerSet"].as_array().unwrap();
    let found = all.iter().find(|lb| lb["LoadBalancerName"] == format!("cls-aaaaaaaa_shop_{name}"));
    found.unwrap_or_else(|| panic!("{name}: {answer}"))["LoadBalancerId"]
        .as_str()
        .unwrap()
        .to_owned()
}

fn listeners(stage: &Stage, lb: &str) -> Vec<Value> {
    let answer = stage.by_hand("DescribeListeners", json!({ "LoadBalancerId": lb }));
    answer["Listeners"].as_array().unwrap().clone()
}

fn settled() -> (Stage, Cluster, Environment) {
    let stage = Stage::new();
    let (cluster, environment) = rich::cluster_and_environment(&stage);
    stage.settle(&cluster, &environment);
    (stage, cluster, environment)
}

#[test]
fn what_is_changed_by_hand_is_mended() {
    let (stage, cluster, environment) = settled();
    let before = held::served(&stage.accounts());
    let (direct, local) = (named(&stage, "direct"), named(&stage, "local"));
    let (both, tls) = (named(&stage, "both"), named(&stage, "tls"));
    let id = |lb: &str, position: usize| listeners(&stage, lb)[position]["ListenerId"].clone();
    // Settings that the TkeServiceConfig states.
    stage.by_hand(
        "ModifyListener",
        json!({ "LoadBalancerId": direct, "ListenerId": id(&direct, 0),
        "SessionExpireTime": 0, "Scheduler": "WRR", "HealthCheck": { "HealthNum": 5 } }),
    );
    // The source of probes, which prevent-loopback needs.
    stage.by_hand(
        "ModifyListener",
        json!({ "LoadBalancerId": both, "ListenerId": id(&both, 0),
        "HealthCheck": { "SourceIpType": 0 } }),
    );
    // A listener, a target, a weight, a rule and a redirect.
    stage
        .by_hand("DeleteListener", json!({ "LoadBalancerId": local, "ListenerId": id(&local, 0) }));
    stage.by_hand(
        "BatchDeregisterTargets",
        json!({ "LoadBalancerId": direct, "Targets": [
        { "ListenerId": id(&direct, 0), "Port": 8080, "EniIp": "10.1.1.5" }] }),
    );
    stage.by_hand(
        "BatchRegisterTargets",
        json!({ "LoadBalancerId": direct, "Targets": [
        { "ListenerId": id(&direct, 0), "Port": 8080, "EniIp": "10.1.2.5", "Weight": 0 },
        { "ListenerId": id(&direct, 0), "Port": 9, "EniIp": "10.1.3.3" }] }),
    );
    let http = listeners(&stage, &tls).into_iter().find(|one| one["Port"] == 80).unwrap();
    let https = listeners(&stage, &tls).into_iter().find(|one| one["Port"] == 443).unwrap();
    stage.by_hand(
        "DeleteRule",
        json!({ "LoadBalancerId": tls, "ListenerId": https["ListenerId"],
        "Domain": "a.example.com" }),
    );
    stage.by_hand(
        "CreateRule",
        json!({ "LoadBalancerId": tls, "ListenerId": http["ListenerId"],
        "Rules": [{ "Domain": "other.example.com", "Url": "/" }] }),
    );
    assert_ne!(held::served(&stage.accounts()), before);

    stage.take_log();
    assert_eq!(stage.settle(&cluster, &environment), []);
    assert_eq!(held::served(&stage.accounts()), before);
    let calls = stage.take_log();
    let count = |action: &str| calls.iter().filter(|call| call.starts_with(action)).count();
    assert_eq!(count("ModifyListener "), 2, "{calls:#?}");
    assert_eq!(count("CreateListener "), 1, "{calls:#?}");
    assert_eq!(count("BatchModifyTargetWeight "), 1, "{calls:#?}");
    let session = &listeners(&stage, &direct)[0];
    assert_eq!(session["SessionExpireTime"], 600);
    assert_eq!(listeners(&stage, &both)[0]["HealthCheck"]["SourceIpType"], 1);
}

#[test]
fn what_nothing_states_stays_as_the_user_set_it() {
    let (stage, cluster, environment) = settled();
    let local = named(&stage, "local");
    let listener = listeners(&stage, &local)[0]["ListenerId"].clone();
    stage.by_hand(
        "ModifyListener",
        json!({ "LoadBalancerId": local, "ListenerId": listener,
        "HealthCheck": { "IntervalTime": 30 }, "Scheduler": "LEAST_CONN" }),
    );
    stage.take_log();
    stage.settle(&cluster, &environment);
    assert_eq!(stage.take_log(), [""; 0]);
}

#[test]
fn a_renamed_listener_is_the_users() {
    let (stage, cluster, environment) = settled();
    let local = named(&stage, "local");
    let listener = listeners(&stage, &local)[0]["ListenerId"].clone();
    stage.by_hand(
        "ModifyListener",
        json!({ "LoadBalancerId": local, "ListenerId": listener,
        "ListenerName": "mine" }),
    );
    stage.by_hand(
        "BatchDeregisterTargets",
        json!({ "LoadBalancerId": local, "Targets": [
        { "ListenerId": listener, "Port": 30083, "InstanceId": "ins-000004ff" }] }),
    );
    let before = listeners(&stage, &local);
    stage.take_log();
    let events = stage.settle(&cluster, &environment);
    let codes: Vec<&str> = events.iter().map(|event| event.code).collect();
    assert_eq!((stage.take_log(), codes), (Vec::new(), vec!["W1002"]));
    assert_eq!(listeners(&stage, &local), before);
    // The load balancer stays with it when its Service goes.
    stage.settle_wanted(&Wanted::default(), &environment);
    assert_eq!(listeners(&stage, &local), before);
}

#[test]
fn load_balancers_of_others_are_not_touched() {
    let (stage, cluster, environment) = settled();
    let tags = |pairs: &[(&str, &str)]| -> Vec<Value> {
        pairs.iter().map(|(key, value)| json!({ "TagKey": key, "TagValue": value })).collect()
    };
    let others = [
        tags(&[]),
        tags(&[("tke-createdBy-flag", "yes"), ("tke-clusterId", "cls-bbbbbbbb")]),
        tags(&[("tke-clusterId", "cls-aaaaaaaa")]),
    ];
    let mut ids = Vec::new();
    for (position, tags) in others.into_iter().enumerate() {
        let answer = stage.by_hand(
            "CreateLoadBalancer",
            json!({ "LoadBalancerType": "OPEN",
            "LoadBalancerName": format!("other-{position}"), "Tags": tags }),
        );
        let id = answer["LoadBalancerIds"][0].clone();
        stage.by_hand(
            "CreateListener",
            json!({ "LoadBalancerId": id, "Ports": [80],
            "Protocol": "TCP", "ListenerNames": ["TKE-DEDICATED-LISTENER"] }),
        );
        ids.push(id);
    }
    stage.take_log();
    stage.settle(&cluster, &environment);
    assert_eq!(stage.take_log(), [""; 0]);
    stage.settle_wanted(&Wanted::default(), &environment);
    let accounts = stage.accounts();
    let left: Vec<&String> =
        accounts.values().flat_map(|account| account.load_balancers.keys()).collect();
    assert_eq!(left.len(), 3, "{left:?}");
    assert!(ids.iter().all(|id| left.iter().any(|left| *id == **left)));
}

#[test]
fn a_stopped_controller_leaves_everything() {
    let (stage, _, environment) = settled();
    let before = held::served(&stage.accounts());
    let mode = "service.cloud.tencent.com/pass-to-target: \"true\"";
    let text = rich::RICH.replace(mode, "service.cloud.tencent.com/mode: skip");
    let text = text.replace("port: 443, protocol", "port: 444, protocol");
    stage.settle(&cluster(&text), &environment);
    assert_eq!(held::served(&stage.accounts()), before);
}

#[test]
fn what_cannot_change_is_refused() {
    let (stage, _, environment) = settled();
    let before = held::served(&stage.accounts());
    let text = rich::RICH.replace(
        "    service.kubernetes.io/qcloud-loadbalancer-internal-subnetid: subnet-aaaaaaaa\n",
        "",
    );
    let events = stage.settle(&cluster(&text), &environment);
    let codes: Vec<&str> = events.iter().map(|event| event.code).collect();
    assert_eq!(codes, ["E4005"]);
    assert_eq!(held::served(&stage.accounts()), before);
}

#[test]
fn a_plan_is_a_line_for_each_call() {
    let cluster = cluster(rich::RICH);
    let environment = environment(&cluster);
    let wanted = wanted::wanted(&cluster, &environment).unwrap();
    let plan = plan::plan(&wanted, &Observed::default(), &environment);
    let text = plan.to_string();
    let lines: Vec<&str> = text.lines().filter(|line| line.contains("shop/direct")).collect();
    assert_eq!(
        lines,
        [
            "new (Service shop/direct): CreateLoadBalancer cls-aaaaaaaa_shop_direct OPEN",
            "new (Service shop/direct): CreateListener 8080 TCP",
            "new (Service shop/direct): BatchRegisterTargets 8080/TCP 10.1.1.5:8080 (10), \
             8080/TCP 10.1.2.5:8080 (10)",
        ]
    );
    // Without their certificates, four listeners are not created.
    let blocked: Vec<&str> = text.lines().filter(|line| line.starts_with("E4010")).collect();
    assert_eq!(blocked.len(), 4, "{text}");
}
