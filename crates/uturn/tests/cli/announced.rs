//! Who announces an address: what objects of the announcing program say, where it runs, and which
//! release it is.

use uturn_testing::manifests::{ReadyNode, RunningPod};

use super::common::Folder;

/// Three nodes, a server on n1 and a client on n2, with a Service of type LoadBalancer.
fn cluster(labels: fn(u8) -> String, policy: &str) -> String {
    let node = |number: u8| {
        ReadyNode {
            number: number.into(),
            address: &format!("10.0.0.{number}"),
            labels: &labels(number),
            spec: &format!("podCIDR: 10.244.{number}.0/24"),
            ..ReadyNode::default()
        }
        .to_string()
    };
    let pod = |name: &str, node: u32| {
        let (address, ports) = (&format!("10.244.{node}.9"), "{containerPort: 80}");
        RunningPod { name, app: name, node, address, ports, ..RunningPod::default() }.to_string()
    };
    let service = format!(
        "---
apiVersion: v1
kind: Service
metadata: {{name: web, namespace: shop, labels: {{side: edge}}}}
spec:
  type: LoadBalancer
  clusterIP: 10.96.0.3
  selector: {{app: web}}
  externalTrafficPolicy: {policy}
  ports: [{{port: 80, nodePort: 30080}}]
status: {{loadBalancer: {{ingress: [{{ip: 10.0.0.240}}]}}}}
"
    );
    let nodes = [1, 2, 3].map(node).concat();
    [FACTS, &nodes, &pod("web", 1), &pod("client", 2), &service].concat()
}

const FACTS: &str = "---
apiVersion: uturn.dev/v1alpha1
kind: Facts
spec:
  kubeProxy: {mode: iptables, version: v1.34.0}
  network: {plugin: flannel, podCIDRs: [10.244.0.0/16], vpcCIDRs: [10.0.0.0/16]}
";

fn hostname(number: u8) -> String {
    format!(
        "kubernetes.io/hostname: n{number}, role: {}",
        ["edge", "core", "core"][number as usize - 1]
    )
}

fn object(kind: &str, name: &str, labels: &str, spec: &str) -> String {
    format!(
        "---
apiVersion: metallb.io/v1beta1
kind: {kind}
metadata: {{name: {name}, namespace: metal, labels: {{{labels}}}}}
spec: {{{spec}}}
"
    )
}

fn pool() -> String {
    object("IPAddressPool", "p", "zone: office", "addresses: [10.0.0.240-10.0.0.250, 10.1.0.0/24]")
}

fn l2(spec: &str) -> String {
    object("L2Advertisement", "a", "", spec)
}

/// A program on nodes.
fn speaker(image: &str, selector: &str) -> String {
    let name = if image.contains("kube-vip") { "kube-vip" } else { "metallb-speaker" };
    format!(
        "---
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: {name}, namespace: metal}}
spec:
  selector: {{matchLabels: {{app: speaker}}}}
  template:
    metadata: {{labels: {{app: speaker}}}}
    spec:
      hostNetwork: true
      nodeSelector: {{{selector}}}
      containers: [{{name: speaker, image: \"{image}\"}}]
"
    )
}

/// What a neighbour of the nodes meets.
fn traced(test: &str, parts: &[String], more: &[&str]) -> String {
    let folder = Folder::new(test);
    folder.file("a.yaml", &parts.concat());
    let words = ["trace", "-f", ".", "--from", "outside/10.0.0.200", "--to", "10.0.0.240:80"];
    folder.run(&[&words[..], more].concat())
}

const SPEAKER: &str = "registry:5000/metallb/speaker:v0.14";
const CHOSEN: &str = "nodeSelectors: [{matchLabels: {role: core}}, {matchExpressions: [{key: role, \
                      operator: In, values: [none]}]}]";

#[track_caller]
fn assert_answered(printed: &str, taken: &str) {
    assert!(printed.starts_with("exit 0\n"), "{printed}");
    assert!(printed.contains("always · answered at once"), "{printed}");
    match taken {
        "" => assert!(!printed.contains("how the load balancer behaves"), "{printed}"),
        taken => assert!(printed.contains(taken), "{taken:?} is not in\n{printed}"),
    }
}

#[track_caller]
fn assert_by_nobody(printed: &str) {
    assert!(printed.starts_with("exit 1\n--- stdout\nhangs"), "{printed}");
    assert!(printed.contains("has no target: "), "{printed}");
}

#[test]
fn advertisements_say_which_nodes_announce() {
    let run = |test: &str, policy: &str, objects: &[String]| {
        let parts = [&[cluster(hostname, policy), speaker(SPEAKER, "")], objects].concat();
        traced(test, &parts, &[])
    };
    // The node with the endpoint is not among them.
    assert_by_nobody(&run("announced-local", "Local", &[pool(), l2(CHOSEN)]));
    assert_by_nobody(&run(
        "announced-none",
        "Cluster",
        &[pool(), l2("nodeSelectors: [{matchLabels: {role: none}}]")],
    ));
    let any = run("announced-cluster", "Cluster", &[pool(), l2(CHOSEN)]);
    assert_answered(&any, "");
    assert!(any.contains("picks node n2") && !any.contains("picks node n1"), "{any}");
    // Routes are announced by the others.
    let bgp = object("BGPAdvertisement", "b", "", "nodeSelectors: [{matchLabels: {role: edge}}]");
    assert_answered(&run("announced-both", "Local", &[pool(), l2(CHOSEN), bgp]), "");
    // One is preferred, where one announces for all.
    let edge = "preference: {matchLabels: {role: edge}}";
    let preferred = l2(&format!("preferredNodeSelectors: [{{weight: 5, {edge}}}]"));
    let one = run("announced-preferred", "Cluster", &[pool(), preferred]);
    assert!(one.contains("picks node n1") && !one.contains("picks node n2"), "{one}");
}

/// The program's own place decides too, however it is stated.
#[test]
fn a_program_that_affinity_keeps_from_nodes() {
    let terms =
        "nodeSelectorTerms: [{matchExpressions: [{key: role, operator: In, values: [core]}]}]";
    let required = format!("requiredDuringSchedulingIgnoredDuringExecution: {{{terms}}}");
    let by_affinity = speaker(SPEAKER, "")
        .replace("nodeSelector: {}", &format!("affinity: {{nodeAffinity: {{{required}}}}}"));
    let run = |test: &str, policy: &str| {
        traced(test, &[cluster(hostname, policy), by_affinity.clone(), pool(), l2("")], &[])
    };
    let any = run("announced-affinity", "Cluster");
    assert!(any.contains("picks node n2") && !any.contains("picks node n1"), "{any}");
    assert_by_nobody(&run("announced-affinity-local", "Local"));
}

#[test]
fn advertisements_are_of_pools_and_services() {
    let run = |test: &str, objects: &[String], more: &[&str]| {
        let parts = [&[cluster(hostname, "Cluster"), speaker(SPEAKER, "")], objects].concat();
        traced(test, &parts, more)
    };
    for (number, spec) in [
        "",
        "ipAddressPools: [p]",
        "ipAddressPools: [other], ipAddressPoolSelectors: [{matchLabels: {zone: office}}]",
        "serviceSelectors: [{matchLabels: {side: edge}}]",
    ]
    .iter()
    .enumerate()
    {
        assert_answered(&run(&format!("announced-yes-{number}"), &[pool(), l2(spec)], &[]), "");
    }
    for (number, spec) in [
        "ipAddressPools: [other]",
        "ipAddressPoolSelectors: [{matchLabels: {zone: lab}}]",
        "serviceSelectors: [{matchLabels: {side: core}}]",
    ]
    .iter()
    .enumerate()
    {
        assert_by_nobody(&run(&format!("announced-no-{number}"), &[pool(), l2(spec)], &[]));
    }
    // None is given: it may be left out of the files, unless these are all.
    let unknown = run("announced-unknown", &[pool()], &[]);
    for said in [
        "exit 1\n",
        "if neither an L2Advertisement nor a BGPAdvertisement exists: hangs   UT203",
        "if an L2Advertisement or a BGPAdvertisement exists: answered at once",
        "every node may announce 10.0.0.240",
    ] {
        assert!(unknown.contains(said), "{said}: {unknown}");
    }
    assert_by_nobody(&run("announced-complete", &[pool()], &["--complete"]));
    // No object at all: its configuration may be another.
    assert_answered(&run("announced-other", &[], &["--complete"]), "");
    // The pool is not given.
    let some = run("announced-no-pool", &[l2("ipAddressPools: [p]")], &[]);
    assert_answered(&some, "no pool that is given has it");
    assert_answered(&run("announced-every-pool", &[l2("")], &[]), "");
    let eth = run("announced-interface", &[pool(), l2("interfaces: [eth1]")], &[]);
    assert_answered(&eth, "clients are on the segment of eth1");
}

/// Nodes without the labels that kubelets write are not written in full.
#[test]
fn labels_that_are_not_given_choose_nobody_out() {
    let parts = [cluster(|_| String::new(), "Local"), speaker(SPEAKER, ""), pool(), l2(CHOSEN)];
    let printed = traced("announced-labels", &parts, &[]);
    assert_answered(&printed, "nodes have the labels that L2Advertisement metal/a asks for");
}

#[test]
fn speakers_announce_from_where_they_run() {
    let run = |test: &str, selector: &str| {
        let parts = [cluster(hostname, "Local"), speaker(SPEAKER, selector), pool(), l2("")];
        traced(test, &parts, &[])
    };
    assert_answered(&run("announced-there", "role: edge"), "");
    assert_by_nobody(&run("announced-elsewhere", "role: core"));
}

#[test]
fn a_range_that_is_none_is_named() {
    let range = object("IPAddressPool", "p", "", "addresses: [10.0.0.9-10.0.0.1]");
    let printed = traced("announced-range", &[cluster(hostname, "Local"), range], &[]);
    assert!(printed.starts_with("exit 2\n"), "{printed}");
    assert!(
        printed.contains("expected a range") && printed.contains("10.0.0.9-10.0.0.1"),
        "{printed}"
    );
}

/// kube-vip with these variables.
fn kube_vip(version: &str, selector: &str, variables: &[&str]) -> String {
    let set = speaker(&format!("ghcr.io/kube-vip/kube-vip:{version}"), selector);
    let variables: Vec<String> =
        variables.iter().map(|name| format!("{{name: {name}, value: \"true\"}}")).collect();
    let image = format!("kube-vip:{version}\"");
    set.replace(&image, &format!("{image}, env: [{}]", variables.join(", ")))
}

/// kube-vip reads policy Local where each Service elects a leader of its own, from 0.5.0 on; in BGP mode
/// from 0.8.0 on.
#[test]
fn policy_local_with_kube_vip() {
    let run = |test: &str, version: &str, variables: &[&str]| {
        let test = format!("announced-vip-{test}");
        traced(&test, &[cluster(hostname, "Local"), kube_vip(version, "", variables)], &[])
    };
    for (test, version, variables) in
        [("old", "v0.3.4", &["svc_election"][..]), ("one-leader", "v1.2.3", &[])]
    {
        let lost = run(test, version, variables);
        assert!(lost.contains("2 in 3") && lost.contains("hangs"), "{lost}");
    }
    assert_answered(&run("elected", "v0.7.0", &["svc_election"]), "");
    assert_answered(&run("bgp", "v0.7.0", &["bgp_enable"]), "only nodes with an endpoint announce");
    assert_answered(&run("bgp-new", "v1.2.3", &["bgp_enable"]), "");
}
