//! What a data plane has to serve for what the API says.

use std::time::Duration;

use serde_json::{Value, json};
use uturn_cloud::inventory::Inventory;
use uturn_cloud::plane::{self, Plan, PlanContext};
use uturn_lb::config::{BalancerConfig, ListenerSettings};
use uturn_model::lb::{Listener, PathNormalization, Source};

use crate::harness::{Harness, text, upload};

/// The only listener of the only load balancer that is served, with its settings.
fn only(plan: &Plan) -> (&Listener, &ListenerSettings) {
    let [BalancerConfig { load_balancer, listeners, .. }] = plan.config.load_balancers.as_slice()
    else {
        panic!("{:?}", plan.config.load_balancers)
    };
    let [settings] = listeners.as_slice() else { panic!("{listeners:?}") };
    (&load_balancer.listeners[0], settings)
}

fn reasons(plan: &Plan) -> Vec<&str> {
    plan.left_out.iter().map(|left_out| left_out.reason.as_str()).collect()
}

fn rule(domain: &str) -> Value {
    json!({ "Domain": domain, "Url": "/" })
}

#[test]
fn custom_configurations_set_timeouts() {
    let cloud = Harness::new();
    let lb = cloud.load_balancer();
    let listener = cloud.listener(&lb, "HTTP", 80, json!({ "KeepaliveEnable": 1 }));
    cloud.rule(&lb, &listener, rule("a.example.com"));
    let set = |operation: &str, more: Value| {
        let mut parameters = more;
        parameters["OperationType"] = operation.into();
        cloud.ok("SetCustomizedConfigForLoadBalancer", parameters)
    };
    let content = "proxy_connect_timeout 9s; proxy_read_timeout 90s;";
    let config = set("ADD", json!({ "ConfigName": "slow", "ConfigContent": content }));
    let config = text(&config["ConfigId"]);
    let timeouts = || {
        let plan = cloud.work().plan;
        let (listener, settings) = only(&plan);
        (listener.profile.connect_timeout.as_secs(), settings.timeouts.read.as_secs())
    };
    assert_eq!(timeouts(), (4, 60));
    set("BIND", json!({ "UconfigId": config, "LoadBalancerIds": [lb] }));
    assert_eq!(timeouts(), (9, 90));
    let content = "proxy_connect_timeout 20s; gzip on;";
    let update = set("UPDATE", json!({ "UconfigId": config, "ConfigContent": content }));
    assert_eq!(timeouts(), (20, 60));
    assert_eq!(reasons(&cloud.work().plan), ["the custom configuration's gzip on is not served"]);
    let task = cloud.ok("DescribeTaskStatus", json!({ "TaskId": update["RequestId"] }));
    assert_eq!(task["LoadBalancerIds"], json!([lb]), "it is changed by what is bound to it");
}

#[test]
fn what_a_data_plane_cannot_do_is_listed() {
    let cloud = Harness::new();
    let lb = cloud.load_balancer();
    cloud.listener(&lb, "QUIC", 443, json!({ "Certificate": certificate() }));
    assert_eq!(reasons(&cloud.work().plan), ["QUIC is not served"]);
    cloud.ok("DeleteLoadBalancerListeners", json!({ "LoadBalancerId": lb }));

    let groups = json!({ "LoadBalancerId": lb, "SecurityGroups": ["sg-aaaaaaaa"] });
    cloud.ok("SetLoadBalancerSecurityGroups", groups);
    let listener = cloud.listener(&lb, "HTTP", 80, json!({}));
    cloud.rule(&lb, &listener, rule("~^a$"));
    let groups = "its security groups are not applied: only their ids are known";
    assert_eq!(reasons(&cloud.work().plan), [groups]);
}

#[test]
fn domains_that_win_come_first() {
    let cloud = Harness::new();
    let lb = cloud.load_balancer();
    let listener = cloud.listener(&lb, "HTTP", 80, json!({}));
    for domain in ["~^a$", "a.*", "*.b.example.com", "*.a.b.example.com", "a.example.com"] {
        cloud.rule(&lb, &listener, rule(domain));
    }
    let plan = cloud.work().plan;
    let (listener, settings) = only(&plan);
    let hosts: Vec<&str> =
        listener.rules.iter().map(|rule| rule.host.as_deref().unwrap()).collect();
    assert_eq!(
        hosts,
        [
            "a.example.com",
            r"~^.+\.a\.b\.example\.com$",
            r"~^.+\.b\.example\.com$",
            r"~^a\..+$",
            "~^a$",
        ]
    );
    assert_eq!(settings.default_host.as_deref(), Some("~^a$"), "the oldest is the default");
}

#[test]
fn what_checks_clients_certificates_goes_to_the_data_plane() {
    let cloud = Harness::new();
    let lb = cloud.load_balancer();
    let mut mutual = certificate();
    mutual["SSLMode"] = "MUTUAL".into();
    mutual["CertCaName"] = "clients".into();
    mutual["CertCaContent"] = upload()["CertContent"].clone();
    cloud.listener(&lb, "TCP_SSL", 443, json!({ "Certificate": mutual }));
    let plan = cloud.work().plan;
    assert_eq!(reasons(&plan), [""; 0]);
    let clients = only(&plan).1.client_certificates.clone().unwrap();
    assert!(!clients.optional);
    let mut files = plan.certificates.iter();
    let file = files.find(|file| file.path() == clients.authorities).unwrap();
    assert!(!file.pem.contains("PRIVATE KEY"));
}

fn certificate() -> Value {
    let mut certificate = upload();
    certificate["SSLMode"] = "UNIDIRECTIONAL".into();
    certificate
}

#[test]
fn keys_are_not_part_of_the_configuration() {
    let cloud = Harness::new();
    let lb = cloud.load_balancer();
    cloud.listener(&lb, "TCP_SSL", 443, json!({ "Certificate": certificate() }));
    let plan = cloud.work().plan;
    let [file] = plan.certificates.as_slice() else { panic!("{:?}", plan.certificates) };
    let (_, settings) = only(&plan);
    assert_eq!(settings.certificates[0].key, file.path());
    assert!(file.pem.contains("PRIVATE KEY"));
    assert!(!format!("{plan:?}").contains("PRIVATE KEY"), "it would be in logs");
}

#[test]
fn addresses_are_kept_or_replaced() {
    let cloud = Harness::new();
    let lb = cloud.load_balancer();
    let listener = cloud.listener(&lb, "HTTP", 80, json!({}));
    cloud.rule(&lb, &listener, rule("a.example.com"));
    let plan = cloud.work().plan;
    let (kept, settings) = only(&plan);
    assert_eq!((&kept.profile.source, settings.keepalive.connections), (&Source::Kept, 0));
    assert_eq!(kept.profile.connect_timeout, Duration::from_secs(4));
    let switch = json!({ "LoadBalancerId": lb, "ListenerId": listener, "KeepaliveEnable": 1 });
    cloud.ok("ModifyListener", switch);
    let plan = cloud.work().plan;
    let (replaced, settings) = only(&plan);
    assert_eq!(replaced.profile.source, Source::Replaced("100.127.0.0/16".parse().unwrap()));
    assert!(settings.keepalive.connections > 0);
}

#[test]
fn an_address_is_served_for_the_oldest_load_balancer_that_has_it() {
    let cloud = Harness::new();
    let oldest = cloud.load_balancer();
    cloud.listener(&oldest, "TCP", 80, json!({}));
    cloud.wait(1);
    cloud.enter("ap-shanghai");
    let second = cloud.load_balancer();
    cloud.listener(&second, "TCP", 80, json!({}));
    // UDP is another port.
    cloud.listener(&second, "UDP", 80, json!({}));
    let plan = cloud.work().plan;
    assert_eq!(listeners(&plan), [(oldest.as_str(), 1), (second.as_str(), 2)]);
    assert_eq!((plan.conflicts.len(), reasons(&plan).len()), (0, 0), "addresses differ");

    // What is stored may be older than the rule that they do.
    let mut accounts = cloud.accounts();
    let address = accounts.values().find_map(|account| account.load_balancers.get(&oldest));
    let address = address.unwrap().addresses.clone();
    for account in accounts.values_mut() {
        account.load_balancers.values_mut().for_each(|found| found.addresses.clone_from(&address));
    }
    let context = PlanContext {
        inventory: &Inventory::Open,
        snat_range: None,
        path_normalization: PathNormalization::Merge,
    };
    let plan = plane::plan(&accounts, context);
    assert_eq!(listeners(&plan), [(oldest.as_str(), 1), (second.as_str(), 1)]);
    let [(part, why)] = plan.conflicts.iter().collect::<Vec<_>>()[..] else { panic!("{plan:?}") };
    assert_eq!((part.0.as_str(), part.1.is_some()), (second.as_str(), true));
    assert!(why.ends_with(":80 is another load balancer's already"), "{why}");
    assert_eq!(reasons(&plan), [why.as_str()]);
}

/// The load balancers that are served, with the number of their listeners.
fn listeners(plan: &Plan) -> Vec<(&str, usize)> {
    let served = plan.config.load_balancers.iter().map(|served| &served.load_balancer);
    served.map(|served| (&*served.name, served.listeners.len())).collect()
}
