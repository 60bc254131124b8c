//! Security groups of nodes and a load balancer that sends from its own address: where the address
//! is stated, the rules decide, and nothing is supposed.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use uturn_diagnose::analysis::{Options, analyze};
use uturn_snapshot::{Manifests, Source};
use uturn_testing::manifests::{NETWORK, RunningPod, balanced_service, facts, node};

/// The name of an internal load balancer.
const NAME: &str = "k8s-shop-web-0a1b-0123456789abcdef.elb.eu-west-1.amazonaws.com";

/// Pods have addresses of the VPC, so that load balancers send to them.
const PODS_IN_VPC: &str = "{mode: vpc-cni, vpcCIDRs: [10.0.0.0/15], serviceCIDRs: [172.16.0.0/16]}";

/// What a scan finds where the nodes' group lets in the nodes and this range: the code of each
/// finding with its conditions.
fn found(range: &str) -> Vec<(String, Vec<String>)> {
    let pod = |name: &str, node: u32, address: &str| {
        RunningPod { name, app: "web", node, address, ..RunningPod::default() }.to_string()
    };
    let notes = "service.beta.kubernetes.io/aws-load-balancer-type: external, \
                 service.beta.kubernetes.io/aws-load-balancer-nlb-target-type: ip, \
                 service.beta.kubernetes.io/aws-load-balancer-scheme: internal";
    let service = balanced_service("172.16.0.10", notes, "", &format!("{{hostname: {NAME}}}"));
    let rule = |peer: &str| format!("{{action: accept, protocol: all, ports: all, peer: {peer}}}");
    let rules = ["10.0.0.11/32", "10.0.0.12/32", "10.1.0.0/16", range].map(rule).join(", ");
    let stated = [
        "kubeProxy: {mode: iptables, version: v1.34.4}".to_owned(),
        "provider: aws".to_owned(),
        "nodes: {\"*\": {securityGroups: [nodes]}}".to_owned(),
        format!("securityGroups: {{nodes: {{inbound: [{rules}]}}}}"),
        format!("dns: {{outside: {{{NAME}: 10.0.7.7}}}}"),
    ];
    let stated: Vec<&str> = stated.iter().map(String::as_str).collect();
    let text = [
        node(1),
        node(2),
        pod("web-1", 1, "10.1.1.2"),
        pod("web-2", 2, "10.1.2.2"),
        service,
        facts(&stated).replace(NETWORK, PODS_IN_VPC),
    ]
    .concat();
    let manifests = Manifests::of(vec![Source { name: "made.yaml".into(), text }]);
    let manifests = manifests.complete_if(true);
    let cluster = manifests.cluster().unwrap();
    let analysis = analyze(&manifests, &cluster, &Options::default()).unwrap();
    let all = analysis.findings.iter().filter(|finding| finding.share_failing.get() > 0.0);
    all.map(|finding| {
        let conditions = finding.conditions.iter().map(ToString::to_string).collect();
        (finding.code.to_string(), conditions)
    })
    .collect()
}

#[test]
fn a_rule_for_the_stated_address_lets_the_balancer_in() {
    let all = found("10.0.7.7/32");
    assert!(
        all.iter().all(|(code, conditions)| code != "UT702" && conditions.is_empty()),
        "{all:?}"
    );
}

#[test]
fn without_a_rule_for_the_stated_address_the_balancer_is_shut_out() {
    let all = found("10.0.8.0/24");
    assert!(
        all.iter().any(|(code, conditions)| code == "UT702" && conditions.is_empty()),
        "{all:?}"
    );
}

#[test]
fn a_rule_for_the_whole_vpc_is_for_the_balancer_too() {
    let all = found("10.0.0.0/15");
    assert!(
        all.iter().all(|(code, conditions)| code != "UT702" && conditions.is_empty()),
        "{all:?}"
    );
}
