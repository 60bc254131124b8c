//! Which nodes are targets: a case for each rule of the table in `docs/operator.md`.

use uturn_model::Cluster;
use uturn_operator::clb::{Holder, TargetKey};
use uturn_operator::wanted;

use crate::rich::RICH;
use crate::stage::{cluster, environment};

/// The Service `local` alone, with these annotations, and with a change of the node `n2`.
fn local(annotations: &str, policy: &str, from: &str, to: &str) -> Cluster {
    let text = RICH.replace(from, to);
    let key = "    service.kubernetes.io/local-svc-only-bind-node-with-pod: \"true\"\n";
    assert!(text.contains(key));
    let text = text.replace(key, annotations);
    let text = text.replace(
        "clusterIP: 172.16.0.13\n  externalTrafficPolicy: Local",
        &format!("clusterIP: 172.16.0.13\n  externalTrafficPolicy: {policy}"),
    );
    let mut cluster = cluster(&text);
    cluster.services.retain(|name, _| name.name.as_str() == "local");
    cluster.ingresses.clear();
    cluster
}

/// The addresses of the nodes that are targets, with their weights.
fn targets(cluster: &Cluster) -> Vec<(String, u8)> {
    let mut environment = environment(cluster);
    environment.instances.clear();
    let wanted = wanted::wanted(cluster, &environment).unwrap();
    let listener = &wanted.balancers[0].listeners.values().next().unwrap().listener;
    let target = |(target, weight): (&TargetKey, &u8)| match &target.holder {
        Holder::Interface(address) => (address.to_string(), *weight),
        Holder::Instance(id) => (id.clone(), *weight),
    };
    listener.targets.iter().map(target).collect()
}

fn all_with(weights: &[(&str, u8)]) -> Vec<(String, u8)> {
    weights.iter().map(|(address, weight)| ((*address).to_owned(), *weight)).collect()
}

const NAME: &str = "metadata: {name: n2}";
const SPEC: &str = "spec: {podCIDR: 10.1.2.0/24}";
const STATUS: &str = "address: 10.0.0.12}]";
const OTHERS: [(&str, u8); 2] = [("10.0.0.11", 10), ("10.0.0.13", 10)];

#[test]
fn nodes_are_targets_unless_a_rule_excludes_them() {
    let every = [("10.0.0.11", 10), ("10.0.0.12", 10), ("10.0.0.13", 10)];
    assert_eq!(targets(&local("", "Cluster", "", "")), all_with(&every));
    let label = |key: &str| format!("metadata: {{name: n2, labels: {{{key}: \"\"}}}}");
    for (from, to) in [
        (NAME, label("node.kubernetes.io/exclude-from-external-load-balancers")),
        (NAME, label("node-role.kubernetes.io/master")),
        (NAME, label("node-role.kubernetes.io/control-plane")),
        (SPEC, "spec: {podCIDR: 10.1.2.0/24, unschedulable: true}".to_owned()),
        (STATUS, format!("{STATUS}, conditions: [{{type: Ready, status: \"False\"}}]")),
        (STATUS, format!("{STATUS}, conditions: [{{type: Ready, status: Unknown}}]")),
    ] {
        for policy in ["Cluster", "Local"] {
            let cluster = local("", policy, from, &to);
            assert_eq!(targets(&cluster), all_with(&OTHERS), "{to}");
        }
    }
}

#[test]
fn policy_local_keeps_all_nodes_unless_only_those_with_pods_are_asked_for() {
    let every = [("10.0.0.11", 10), ("10.0.0.12", 10), ("10.0.0.13", 10)];
    assert_eq!(targets(&local("", "Local", "", "")), all_with(&every));
    let only = "    service.kubernetes.io/local-svc-only-bind-node-with-pod: \"true\"\n";
    let weighted = "    service.cloud.tencent.com/local-svc-weighted-balance: \"true\"\n";
    assert_eq!(targets(&local(only, "Local", "", "")), all_with(&[("10.0.0.12", 10)]));
    assert_eq!(targets(&local(only, "Cluster", "", "")), all_with(&every));
    // Weights are the numbers of ready pods, and need the other annotation.
    let pods = "- {addresses: [10.1.2.7], nodeName: n2, conditions: {ready: true}}\n";
    let more = [
        pods,
        "- {addresses: [10.1.2.8], nodeName: n2, conditions: {ready: true}}\n",
        "- {addresses: [10.1.2.9], nodeName: n2, conditions: {ready: false}}\n",
        "- {addresses: [10.1.3.9], nodeName: n3, conditions: {ready: true}}\n",
    ]
    .concat();
    let both = [only, weighted].concat();
    let counted = [("10.0.0.12", 2), ("10.0.0.13", 1)];
    assert_eq!(targets(&local(&both, "Local", pods, &more)), all_with(&counted));
    assert_eq!(targets(&local(weighted, "Local", pods, &more)), all_with(&every));
    // A node with a pod that is cordoned is no target either.
    let cordoned = "spec: {podCIDR: 10.1.2.0/24, unschedulable: true}";
    assert_eq!(targets(&local(only, "Local", SPEC, cordoned)), []);
}

#[test]
fn labels_choose_nodes() {
    let note = |text: &str| {
        format!("    service.kubernetes.io/qcloud-loadbalancer-backends-label: {text}\n")
    };
    let labelled = "metadata: {name: n2, labels: {pool: web, zone: a}}";
    for (wanted, expected) in [
        ("pool=web", &[("10.0.0.12", 10)][..]),
        ("pool=web,zone=a", &[("10.0.0.12", 10)]),
        ("pool=web,zone=b", &[]),
        ("pool=other", &[]),
    ] {
        let cluster = local(&note(wanted), "Cluster", NAME, labelled);
        assert_eq!(targets(&cluster), all_with(expected), "{wanted}");
    }
}
