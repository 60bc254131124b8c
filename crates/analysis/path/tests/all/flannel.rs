//! flannel: whether its nodes masquerade, and how packets reach other nodes' pods.

use uturn_model::network::Transport;
use uturn_model::{Cluster, Flow, Outcome, Protocol};
use uturn_path::Engine;
use uturn_snapshot::{Source, read};
use uturn_testing::manifests::node;

const CLUSTER: &str = "---
apiVersion: uturn.dev/v1alpha1
kind: Facts
spec: {provider: none, kubeProxy: {mode: ipvs, version: v1.34.4, variant: upstream}}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {type: NodePort, externalTrafficPolicy: Local, clusterIP: 172.16.0.10, selector: {app: web}, ports: [{port: 80, targetPort: 8080, nodePort: 30080}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web-1, namespace: shop, labels: {app: web}}
spec: {nodeName: n2, containers: [{name: web, image: web, ports: [{containerPort: 8080}]}]}
status: {phase: Running, podIP: 10.1.2.9, conditions: [{type: Ready, status: 'True'}]}
";

/// The cluster with a flannel whose container has these fields.
fn with(container: &str) -> String {
    let agent = format!(
        "---
apiVersion: apps/v1
kind: DaemonSet
metadata: {{name: kube-flannel-ds, namespace: kube-flannel}}
spec:
  selector: {{matchLabels: {{app: flannel}}}}
  template:
    metadata: {{labels: {{app: flannel}}}}
    spec: {{hostNetwork: true, containers: [{{name: kube-flannel, image: 'flannel/flannel:v0.25.1'{container}}}]}}
"
    );
    [&node(1), &node(2), CLUSTER, &agent].concat()
}

fn made(text: String) -> Cluster {
    read(vec![Source { name: "cluster.yaml".into(), text }]).unwrap().cluster
}

/// How a call of a node without an endpoint ends in each case.
fn ends(text: String) -> Vec<(String, Outcome)> {
    let cluster = made(text);
    let flow = Flow {
        from: "outside".parse().unwrap(),
        to: "10.0.0.11:30080".parse().unwrap(),
        protocol: Protocol::Tcp,
    };
    let cases = Engine::new(&cluster).unwrap().cases(&flow).unwrap();
    cases.iter().map(|case| (case.conditions.join(", "), case.outcomes[0].0)).collect()
}

#[test]
fn an_argument_says_whether_nodes_masquerade() {
    let certain = |outcome| vec![(String::new(), outcome)];
    for on in [
        ", command: [/opt/bin/flanneld], args: [--ip-masq, --kube-subnet-mgr]",
        ", args: [--kube-subnet-mgr, --ip-masq=true]",
        ", command: [/bin/sh, -c, 'exec /opt/bin/flanneld --ip-masq --kube-subnet-mgr']",
    ] {
        assert_eq!(ends(with(on)), certain(Outcome::AT_ONCE), "{on}");
    }
    for off in [", args: [--kube-subnet-mgr]", ", command: [/opt/bin/flanneld, --ip-masq=false]"] {
        assert_eq!(ends(with(off)), certain(Outcome::Hangs), "{off}");
        assert!(!made(with(off)).network.masquerades.value);
    }
}

#[test]
fn without_arguments_there_are_both_cases() {
    let both = [
        ("flanneld runs with --ip-masq".to_owned(), Outcome::AT_ONCE),
        ("flanneld runs without --ip-masq".to_owned(), Outcome::Hangs),
    ];
    assert_eq!(ends(with("")), both);
    assert_eq!(ends(with(", command: [/own/start.sh]")), both);
    let settled = with("")
        + "---\napiVersion: uturn.dev/v1alpha1\nkind: Facts\nspec: {network: {masquerade: true}}\n";
    assert_eq!(ends(settled), [(String::new(), Outcome::AT_ONCE)]);
    // Calls of a node with an endpoint do not depend on it.
    let here = with("").replace("nodeName: n2", "nodeName: n1").replace("10.1.2.9", "10.1.1.9");
    assert_eq!(ends(here), [(String::new(), Outcome::AT_ONCE)]);
}

#[test]
fn the_configuration_names_the_backend() {
    let of = |backend: &str| {
        let config = format!(
            "---
apiVersion: v1
kind: ConfigMap
metadata: {{name: kube-flannel-cfg, namespace: kube-flannel}}
data:
  net-conf.json: |
    {{\"Network\": \"10.1.0.0/16\", \"Backend\": {{\"Type\": \"{backend}\"}}}}
"
        );
        made(with(", args: [--ip-masq]") + &config).network.transport.value
    };
    assert_eq!(of("host-gw"), Transport::Underlay);
    assert_eq!(of("vxlan"), Transport::Tunnel);
    assert_eq!(made(with("")).network.transport.value, Transport::Tunnel);
}

#[test]
fn a_cluster_of_ones_own_on_the_machines_of_gke_is_not_gke() {
    let of = |labels: &str| {
        let node = format!(
            "apiVersion: v1
kind: Node
metadata: {{name: n1, labels: {{{labels}}}}}
spec: {{providerID: 'gce://project/zone/n1', podCIDR: 10.8.0.0/24}}
status: {{addresses: [{{type: InternalIP, address: 10.128.0.4}}]}}
"
        );
        made(node).network.plugin.value.to_string()
    };
    assert_eq!(
        of("kubernetes.io/hostname: n1, cloud.google.com/gke-nodepool: a"),
        "GKE VPC-native"
    );
    assert_eq!(of(""), "GKE VPC-native");
    assert_ne!(
        of("kubernetes.io/hostname: n1, kops.k8s.io/instancegroup: nodes"),
        "GKE VPC-native"
    );
}
