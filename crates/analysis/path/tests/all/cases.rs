//! What the input does not state and what decides: a verdict for each case, and none for what
//! does not matter.

#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use uturn_model::Flow;
use uturn_path::Engine;
use uturn_snapshot::Source;

/// A pull request: workloads, a Service and an Ingress, and nothing of the cluster.
const PULL_REQUEST: &str = r#"
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web, ports: [{containerPort: 8080}]}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: client, namespace: shop}
spec:
  replicas: 1
  selector: {matchLabels: {app: client}}
  template:
    metadata: {labels: {app: client}}
    spec: {containers: [{name: client, image: client}]}
---
apiVersion: v1
kind: Service
metadata:
  name: web
  namespace: shop
  annotations: {service.kubernetes.io/qcloud-loadbalancer-internal-subnetid: subnet-x}
spec:
  type: LoadBalancer
  externalTrafficPolicy: Local
  selector: {app: web}
  ports: [{port: 80, targetPort: 8080}]
status: {loadBalancer: {ingress: [{ip: 10.0.0.100}]}}
"#;

const MODE: &str = r#"
---
apiVersion: uturn.dev/v1alpha1
kind: Facts
spec: {kubeProxy: {mode: iptables, version: v1.34.4}}
"#;

/// Each verdict as `conditions: outcomes`.
fn outcomes(manifests: &str, from: &str, to: &str) -> Vec<String> {
    let source = Source { name: "cluster.yaml".into(), text: manifests.into() };
    let cluster = uturn_snapshot::read(vec![source]).unwrap().cluster;
    let engine = Engine::new(&cluster).unwrap();
    let flow = Flow {
        from: from.parse().unwrap(),
        to: to.parse().unwrap(),
        protocol: uturn_model::Protocol::Tcp,
    };
    let verdicts = engine.cases(&flow).unwrap();
    let lines = verdicts.iter().map(|verdict| {
        let outcomes: Vec<String> = verdict
            .outcomes
            .iter()
            .map(|(outcome, share)| format!("{:.0} % {outcome}", share.get() * 100.0))
            .collect();
        format!("{}: {}", verdict.conditions.join(" and "), outcomes.join(", "))
    });
    lines.collect()
}

#[test]
fn what_makes_no_difference_is_not_reported() {
    assert_eq!(
        outcomes(PULL_REQUEST, "deploy/shop/client", "svc/shop/web"),
        [": 100 % answered at once"]
    );
}

#[test]
fn the_mode_and_the_place_decide_together() {
    assert_eq!(
        outcomes(PULL_REQUEST, "deploy/shop/client", "http://10.0.0.100/"),
        [
            "kube-proxy mode is iptables or nftables, with a cluster CIDR: 100 % answered at once",
            "kube-proxy mode is iptables or nftables, without a cluster CIDR and the client runs \
             on a node without an endpoint of shop/web: 100 % hangs",
            "kube-proxy mode is iptables or nftables, without a cluster CIDR and the client runs \
             on a node with an endpoint of shop/web: 100 % answered at once",
            "kube-proxy mode is ipvs and the client runs on a node without an endpoint of \
             shop/web: 100 % answered at once",
            "kube-proxy mode is ipvs and the client runs on a node with an endpoint of shop/web: \
             50 % answered at once, 50 % hangs",
        ]
    );
}

#[test]
fn what_is_stated_is_no_question() {
    let stated = format!("{PULL_REQUEST}{MODE}");
    assert_eq!(
        outcomes(&stated, "deploy/shop/client", "http://10.0.0.100/"),
        [
            "kube-proxy has a cluster CIDR: 100 % answered at once",
            "kube-proxy has no cluster CIDR and the client runs on a node without an endpoint of \
             shop/web: 100 % hangs",
            "kube-proxy has no cluster CIDR and the client runs on a node with an endpoint of \
             shop/web: 100 % answered at once",
        ]
    );
    // With the ranges of pods all is said: kube-proxy lets pods through to other nodes.
    let ranges = "  network: {podCIDRs: [10.1.0.0/16]}\n";
    let known = format!(
        "{PULL_REQUEST}{}{ranges}",
        MODE.replace("spec: {kube", "spec:\n  kube").replace("}}", "}")
    );
    assert_eq!(
        outcomes(&known, "deploy/shop/client", "http://10.0.0.100/"),
        [": 100 % answered at once"]
    );
    // Nodes do not move.
    let from_node = outcomes(&stated, "node/n1", "http://10.0.0.100/");
    assert!(from_node.len() == 1 && from_node[0].starts_with(':'), "{from_node:?}");
}

/// A node with an unmodelled rule, and what the rule does with packets that it matches.
fn guarded(rules: &str) -> String {
    format!(
        r#"
apiVersion: uturn.dev/v1alpha1
kind: Facts
spec:
  kubeProxy: {{mode: iptables, version: v1.34.4}}
  network: {{mode: global-router, podCIDRs: [10.1.0.0/16], vpcCIDRs: [10.0.0.0/16], serviceCIDRs: [172.16.0.0/16]}}
  nodes: {{n1: {{iptables: "*filter\n{rules}COMMIT\n"}}}}
---
apiVersion: v1
kind: Node
metadata: {{name: n1}}
spec: {{podCIDR: 10.1.1.0/24}}
status: {{addresses: [{{type: InternalIP, address: 10.0.0.11}}]}}
---
apiVersion: v1
kind: Node
metadata: {{name: n2}}
spec: {{podCIDR: 10.1.2.0/24}}
status: {{addresses: [{{type: InternalIP, address: 10.0.0.12}}]}}
---
apiVersion: v1
kind: Pod
metadata: {{name: client, namespace: shop}}
spec: {{nodeName: n1, containers: [{{name: client, image: client}}]}}
status: {{phase: Running, podIPs: [{{ip: 10.1.1.2}}]}}
---
apiVersion: v1
kind: Pod
metadata: {{name: web, namespace: shop}}
spec: {{nodeName: n2, containers: [{{name: web, image: web, ports: [{{containerPort: 8080}}]}}]}}
status: {{phase: Running, podIPs: [{{ip: 10.1.2.3}}]}}
"#
    )
}

#[test]
fn a_match_that_nobody_models_is_two_cases() {
    let rule = r"-A FORWARD -d 10.1.2.0/24 -m u32 --u32 0x0=0x1 -j DROP\n";
    let all = outcomes(&guarded(rule), "pod/shop/client", "pod/shop/web:8080");
    let [yes, no] = all.as_slice() else { panic!("{all:?}") };
    let written = "rule -A FORWARD -d 10.1.2.0/24 -m u32 --u32 \"0x0=0x1\" -j DROP (";
    assert!(yes.starts_with(written) && yes.ends_with(") matches: 100 % hangs"), "{yes}");
    let fine = ") does not match: 100 % answered at once";
    assert!(no.starts_with(written) && no.ends_with(fine), "{no}");
}

#[test]
fn a_rule_that_keeps_or_passes_is_two_cases() {
    let rule = r"-A FORWARD -d 10.1.2.0/24 -j NFQUEUE --queue-num 0\n";
    let all = outcomes(&guarded(rule), "pod/shop/client", "pod/shop/web:8080");
    let [yes, no] = all.as_slice() else { panic!("{all:?}") };
    assert!(yes.ends_with(") lets it pass: 100 % answered at once"), "{yes}");
    assert!(no.ends_with(") keeps it: 100 % hangs"), "{no}");
}

#[test]
fn a_match_that_decides_nothing_is_no_case() {
    let rule = r"-A FORWARD -d 10.1.2.0/24 -m u32 --u32 0x0=0x1 -j ACCEPT\n";
    let all = outcomes(&guarded(rule), "pod/shop/client", "pod/shop/web:8080");
    assert_eq!(all, [": 100 % answered at once"]);
}

#[test]
fn of_two_rules_the_second_is_asked_only_where_the_first_lets_it() {
    let rules = r"-A FORWARD -d 10.1.2.0/24 -m u32 --u32 0x0=0x1 -j DROP\n-A FORWARD -d 10.1.2.0/24 -m u32 --u32 0x0=0x2 -j REJECT\n";
    let all = outcomes(&guarded(rules), "pod/shop/client", "pod/shop/web:8080");
    let ends: Vec<&str> = all.iter().map(|line| line.rsplit_once(": ").unwrap().1).collect();
    assert_eq!(ends, ["100 % hangs", "100 % refused", "100 % answered at once"], "{all:?}");
    let conditions: Vec<usize> = all.iter().map(|line| line.matches("rule ").count()).collect();
    assert_eq!(conditions, [1, 2, 2], "{all:?}");
}

/// The cluster with a Service and how CoreDNS is set.
fn named(corefile: &str) -> String {
    let indented = corefile.replace('\n', "\n    ");
    guarded("")
        + &format!(
            r#"---
apiVersion: v1
kind: Service
metadata: {{name: kube-dns, namespace: kube-system, labels: {{k8s-app: kube-dns}}}}
spec: {{clusterIP: 172.16.0.2, ports: [{{name: dns, port: 53, protocol: UDP}}]}}
---
apiVersion: v1
kind: Service
metadata: {{name: web, namespace: shop}}
spec: {{clusterIP: 172.16.0.9, ports: [{{port: 80, targetPort: 8080}}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: web-1, namespace: shop, labels: {{kubernetes.io/service-name: web}}}}
addressType: IPv4
ports: [{{port: 8080}}]
endpoints: [{{addresses: [10.1.2.3], nodeName: n2, conditions: {{ready: true}}}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: coredns, namespace: kube-system}}
data:
  Corefile: |
    {indented}
"#
        )
}

const COREFILE: &str = ".:53 {\n    kubernetes cluster.local\n    forward . /etc/resolv.conf\n}";

#[test]
fn a_name_of_the_world_outside_is_two_cases() {
    let clear = named(COREFILE);
    assert_eq!(
        outcomes(&clear, "pod/shop/client", "http://api.example.com/"),
        [
            "api.example.com has an address outside the cluster: 100 % answered at once",
            "api.example.com has no address: 100 % name not found",
        ]
    );
    assert_eq!(outcomes(&clear, "pod/shop/client", "http://web/"), [": 100 % answered at once"]);
}

#[test]
fn a_corefile_that_cannot_be_read_is_two_cases() {
    let broken = named(".:53 {\n    rewrite name\n    kubernetes cluster.local\n}");
    assert_eq!(
        outcomes(&broken, "pod/shop/client", "http://web/"),
        [
            "CoreDNS answers as usual, without the Corefile that cannot be read: 100 % answered \
             at once",
            "CoreDNS does not start with the Corefile that cannot be read: 100 % name not found",
        ]
    );
}

#[test]
fn a_plugin_that_nobody_models_is_two_cases() {
    let odd = COREFILE.replace("    forward", "    alternate . NXDOMAIN 1.1.1.1\n    forward");
    let odd = odd.replace("kubernetes cluster.local", "etcd cluster.local");
    let all = outcomes(&named(&odd), "pod/shop/client", "http://web/");
    let [yes, no] = all.as_slice() else { panic!("{all:?}") };
    assert!(yes.starts_with("CoreDNS answers web as usual, whatever it makes of this: "), "{yes}");
    assert!(yes.ends_with(": 100 % answered at once"), "{yes}");
    assert_eq!(no, "web has no address: 100 % name not found");
}

#[test]
fn redirects_of_an_nginx_in_the_cluster_are_reported() {
    let ingress = |more: &str| {
        format!(
            r#"{}---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {{name: web, namespace: shop, annotations: {{{more}}}}}
spec:
  ingressClassName: nginx
  tls: [{{hosts: [shop.example.com], secretName: shop-tls}}]
  rules: [{{host: shop.example.com, http: {{paths: [{{path: /, pathType: Prefix, backend: {{service: {{name: web, port: {{number: 80}}}}}}}}]}}}}]
"#,
            named(COREFILE)
        )
    };
    let supposes = |text: String| {
        let source = Source { name: "cluster.yaml".into(), text };
        let cluster = uturn_snapshot::read(vec![source]).unwrap().cluster;
        let engine = Engine::new(&cluster).unwrap();
        let all: Vec<String> =
            engine.supposed().iter().map(|assumption| assumption.subject.to_string()).collect();
        all.iter().any(|about| about == "Ingress shop/web by http")
    };
    assert!(supposes(ingress("")));
    assert!(!supposes(ingress("nginx.ingress.kubernetes.io/ssl-redirect: \"false\"")));
}
