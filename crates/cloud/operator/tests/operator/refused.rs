//! What is asked for and not done, what the API refuses, and what becomes of it for users.

use serde_json::json;
use uturn_cloud::quotas::Quotas;
use uturn_model::Cluster;
use uturn_operator::event::Event;
use uturn_operator::{failure, plan, wanted};

use crate::held;
use crate::rich::{self, RICH};
use crate::stage::{Stage, cluster, environment};

/// The Service `local` alone, with this annotation.
fn local(annotation: &str) -> Cluster {
    let key = "    service.kubernetes.io/local-svc-only-bind-node-with-pod: \"true\"\n";
    let mut cluster = cluster(&RICH.replace(key, &format!("{key}    {annotation}\n")));
    cluster.services.retain(|name, _| name.name.as_str() == "local");
    cluster.ingresses.clear();
    cluster
}

fn codes(events: &[Event]) -> Vec<&str> {
    events.iter().map(|event| event.code).collect()
}

#[test]
fn what_would_be_served_otherwise_is_not_served() {
    for key in ["cross-region-id", "cross-vpc-id", "hybrid-type", "target-groups"] {
        let stage = Stage::new();
        let annotation = format!("service.cloud.tencent.com/{key}: some");
        let asking = local(&annotation);
        assert_eq!(codes(&stage.settle(&asking, &environment(&asking))), ["E9001"], "{key}");
        assert_eq!(stage.take_log(), [""; 0]);
        // What is there stays as it is.
        let plain = local("other: x");
        stage.settle(&plain, &environment(&plain));
        let before = held::served(&stage.accounts());
        stage.take_log();
        assert_eq!(codes(&stage.settle(&asking, &environment(&asking))), ["E9001"], "{key}");
        assert_eq!((stage.take_log(), held::served(&stage.accounts())), (Vec::new(), before));
    }
}

#[test]
fn what_is_not_done_beside_that_is_told() {
    for key in ["modification-protection", "enable-grace-deletion"] {
        let stage = Stage::new();
        let asking = local(&format!("service.cloud.tencent.com/{key}: \"true\""));
        let events = stage.settle(&asking, &environment(&asking));
        assert_eq!(codes(&events), ["W9001"]);
        assert!(events[0].message.contains(key), "{}", events[0]);
        assert_eq!(held::served(&stage.accounts()).len(), 1);
        let off = local(&format!("service.cloud.tencent.com/{key}: \"false\""));
        assert_eq!(stage.settle(&off, &environment(&off)), []);
    }
}

#[test]
fn addresses_that_replace_clients_are_created_and_kept() {
    let info = |subnets: &[&str]| {
        let all: Vec<_> = subnets.iter().map(|id| json!({ "subnetId": id })).collect();
        let text = json!({ "snatIps": all }).to_string();
        local(&format!("service.cloud.tencent.com/snat-pro-info: '{text}'"))
    };
    let (a, b) = ("subnet-aaaaaaaa", "subnet-bbbbbbbb");
    let stage = Stage::new();
    let subnets = |stage: &Stage| -> Vec<String> {
        let answer = stage.by_hand("DescribeLoadBalancers", json!({}));
        let found = &answer["LoadBalancerSet"][0];
        assert_eq!(found["SnatPro"], true);
        let addresses = found["SnatIps"].as_array().unwrap().iter();
        addresses.map(|address| address["SubnetId"].as_str().unwrap().to_owned()).collect()
    };
    for (wanted, found) in [(&[a][..], &[a][..]), (&[a, b, a], &[a, b, a]), (&[b], &[a, b, a])] {
        let cluster = info(wanted);
        assert_eq!(stage.settle(&cluster, &environment(&cluster)), []);
        let mut there = subnets(&stage);
        there.sort();
        let mut expected: Vec<&str> = found.to_vec();
        expected.sort_unstable();
        assert_eq!(there, expected);
    }
    let odd = local("service.cloud.tencent.com/snat-pro-info: x");
    assert_eq!(codes(&stage.settle(&odd, &environment(&odd))), ["W9001"]);
}

/// Performs what a cluster wants, and returns what users are told of the failures.
fn failures(stage: &Stage, cluster: &Cluster) -> Vec<String> {
    let (_, environment) = rich::cluster_and_environment(stage);
    let wanted = wanted::wanted(cluster, &environment).unwrap();
    let mut told = Vec::new();
    let plan = plan::plan(&wanted, &uturn_operator::observed::Observed::default(), &environment);
    for balancer in &plan.balancers {
        let mut done = uturn_operator::run::Done::default();
        let nobody = std::collections::BTreeSet::new();
        let run = uturn_operator::run::run_balancer(stage, balancer, &nobody, &mut done);
        for failed in crate::stage::block_on(run) {
            let objects = failed.objects.iter();
            told.extend(objects.map(|object| failure::event(object, &failed.error).to_string()));
        }
    }
    told
}

#[test]
fn used_up_quotas_have_the_documented_codes() {
    let usual = Quotas::default();
    for (quotas, expected) in [
        (
            Quotas { public_load_balancers: 1, ..usual.clone() },
            ["E4004 Service shop/", "E4003 Ingress shop/"],
        ),
        (Quotas { listeners: 1, ..usual.clone() }, ["E5003 Service shop/both", "E4004 Ingress"]),
        (Quotas { rules: 1, ..usual }, ["E4005 Ingress shop/", "E4005 Ingress shop/"]),
    ] {
        let stage = Stage::with_quotas(quotas.clone());
        let told = failures(&stage, &cluster(RICH));
        for begins in expected {
            assert!(told.iter().any(|line| line.starts_with(begins)), "{quotas:?} {told:#?}");
        }
        assert!(told.iter().all(|line| line.contains("quota")), "{told:#?}");
    }
}

#[test]
fn a_load_balancer_that_the_user_took_over_is_kept() {
    let stage = Stage::new();
    let cluster = local("other: x");
    let environment = environment(&cluster);
    stage.settle(&cluster, &environment);
    let answer = stage.by_hand("DescribeLoadBalancers", json!({}));
    let id = answer["LoadBalancerSet"][0]["LoadBalancerId"].as_str().unwrap();
    stage.tag(id, "tke-lifecycle-owner", "user");
    stage.settle_wanted(&wanted::Wanted::default(), &environment);
    let accounts = stage.accounts();
    let left: Vec<_> =
        accounts.values().flat_map(|account| account.load_balancers.values()).collect();
    assert_eq!((left.len(), left[0].listeners.len()), (1, 0));
}
