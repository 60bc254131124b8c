//! Cures that people found, each in a cluster as small as it can be: what is offered first, what it
//! changes, and that the call is answered after it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use uturn_diagnose::cure::{self, Case, Cure, TrialBase};
use uturn_model::{Flow, Protocol};
use uturn_path::Engine;
use uturn_scan::FewCalls;
use uturn_snapshot::{Manifests, Source};
use uturn_testing::manifests::{facts, node};

pub(crate) const IPTABLES: &str = "kubeProxy: {mode: iptables, version: v1.34.4}";
pub(crate) const IPVS: &str = "kubeProxy: {mode: ipvs, version: v1.34.4}";

/// Returns the cures of a call in a cluster of two nodes with these Facts and objects.
pub(crate) fn cures(stated: &[&str], objects: &str, from: &str, to: &str) -> Vec<Cure> {
    let text = [&facts(stated), objects, &node(1), &node(2)].concat();
    let sources = vec![Source { name: "a.yaml".into(), text }];
    let manifests = Manifests::of(sources).complete_if(true);
    let cluster = manifests.cluster().unwrap();
    let engine = Engine::new(&cluster).unwrap();
    let flow =
        Flow { from: from.parse().unwrap(), to: to.parse().unwrap(), protocol: Protocol::Tcp };
    let case = Case::flow(&manifests, &FewCalls::new(&engine), flow).unwrap();
    cure::cures(&TrialBase::new(&manifests, &engine), &case)
}

/// Returns the names and titles of the offered cures.
pub(crate) fn offered(cures: &[Cure]) -> Vec<(&str, &str)> {
    let offered = cures.iter().filter(|cure| cure.is_offered());
    let all: Vec<(&str, &str)> = offered.map(|cure| (cure.name, &*cure.title)).collect();
    assert!(!all.is_empty(), "nothing is offered: {cures:#?}");
    all
}

/// Returns the lines that an offered cure changes, after which all calls are answered.
pub(crate) fn changes(cures: &[Cure], name: &str) -> Vec<String> {
    let cure = cures.iter().find(|cure| cure.is_offered() && cure.name == name);
    let cure = cure.unwrap_or_else(|| panic!("{name} is not offered: {cures:#?}"));
    assert!(cure.after.as_ref().unwrap().is_fine(), "{name}");
    let lines = cure.diffs[0].lines().skip(2).filter(|line| line.starts_with(['+', '-']));
    lines.map(str::to_owned).collect()
}

/// A pod on a node, with more fields of its metadata and its spec.
pub(crate) fn pod(name: &str, on: u8, meta: &str, spec: &str) -> String {
    format!(
        "---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: shop{meta}}}
spec: {{nodeName: n{on}{spec}, containers: [{{name: c, image: c, ports: [{{containerPort: 8080}}]}}]}}
status: {{phase: Running, podIP: 10.1.{on}.{}, conditions: [{{type: Ready, status: \"True\"}}]}}
",
        10 + name.len()
    )
}

/// Service web with more fields of its spec.
pub(crate) fn service(spec: &str) -> String {
    format!(
        "---
apiVersion: v1
kind: Service
metadata: {{name: web, namespace: shop}}
spec: {{selector: {{app: web}}, {spec}}}
"
    )
}

pub(crate) fn web(on: u8) -> String {
    pod("web-1", on, ", labels: {app: web}", "")
}

pub(crate) const CLIENT: &str = "pod/shop/client";

pub(crate) fn client(on: u8) -> String {
    pod("client", on, "", "")
}

#[test]
fn a_headless_service_is_called_at_the_port_of_its_pods() {
    let service = service("clusterIP: None, ports: [{port: 80, targetPort: 8080}]");
    let objects = [service, web(1), client(2)].concat();
    let only = "declaredPortsOnly: true";
    let cures = cures(&[IPTABLES, only], &objects, CLIENT, "http://web.shop.svc.cluster.local/");
    assert_eq!(
        offered(&cures),
        [
            ("call-port", "call http://web.shop.svc.cluster.local:8080/"),
            ("headless-port", "port 8080 instead of 80 for svc/shop/web"),
        ]
    );
}

#[test]
fn a_pod_of_the_host_network_asks_the_clusters_dns() {
    let service = service("clusterIP: 172.16.0.10, ports: [{port: 80, targetPort: 8080}]");
    let agent = "---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: shop}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec:
      hostNetwork: true
      containers: [{name: c, image: c}]
---
apiVersion: v1
kind: Pod
metadata: {name: agent-1, namespace: shop, labels: {app: agent}, ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: agent, controller: true}]}
spec: {nodeName: n2, hostNetwork: true, containers: [{name: c, image: c}]}
status: {phase: Running, podIP: 10.0.0.12, conditions: [{type: Ready, status: \"True\"}]}
---
apiVersion: v1
kind: Service
metadata: {name: kube-dns, namespace: kube-system, labels: {k8s-app: kube-dns}}
spec: {clusterIP: 172.16.0.2, selector: {k8s-app: kube-dns}, ports: [{name: dns, port: 53, protocol: UDP}]}
---
apiVersion: v1
kind: Pod
metadata: {name: coredns-1, namespace: kube-system, labels: {k8s-app: kube-dns}}
spec: {nodeName: n1, containers: [{name: coredns, image: coredns, ports: [{name: dns, containerPort: 53, protocol: UDP}]}]}
status: {phase: Running, podIP: 10.1.1.53, conditions: [{type: Ready, status: \"True\"}]}
";
    let objects = [&service, &web(1), agent].concat();
    let cures = cures(&[IPTABLES], &objects, "pod/shop/agent-1", "http://web/");
    assert_eq!(
        offered(&cures)[0],
        ("dns-policy", "dnsPolicy ClusterFirstWithHostNet for DaemonSet shop/agent")
    );
    assert_eq!(changes(&cures, "dns-policy"), ["+      dnsPolicy: ClusterFirstWithHostNet"]);
}

#[test]
fn members_that_wait_for_each_other_are_found_before_they_are_ready() {
    let member = |number: u8| {
        format!(
            "---
apiVersion: v1
kind: Pod
metadata: {{name: db-{number}, namespace: shop, labels: {{app: web}}, ownerReferences: [{{apiVersion: apps/v1, kind: StatefulSet, name: db, controller: true}}]}}
spec: {{nodeName: n{}, hostname: db-{number}, subdomain: web, containers: [{{name: c, image: c, ports: [{{containerPort: 8080}}]}}]}}
status: {{phase: Running, podIP: 10.1.{}.7{number}, conditions: [{{type: Ready, status: \"False\"}}]}}
",
            number + 1,
            number + 1
        )
    };
    let set = "---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db, namespace: shop}
spec:
  replicas: 2
  serviceName: web
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: c, ports: [{containerPort: 8080}]}]}
";
    let slice = "---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-x, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: [{port: 8080, protocol: TCP}]
endpoints:
- {addresses: [10.1.1.70], nodeName: n1, hostname: db-0, conditions: {ready: false, serving: false}}
- {addresses: [10.1.2.71], nodeName: n2, hostname: db-1, conditions: {ready: false, serving: false}}
";
    let service = service("clusterIP: None, ports: [{port: 8080}]");
    let objects = [&*service, set, slice, &member(0), &member(1)].concat();
    let to = "db-1.web.shop.svc.cluster.local:8080";
    let cures = cures(&[IPTABLES], &objects, "pod/shop/db-0", to);
    assert_eq!(
        offered(&cures),
        [("publish-not-ready", "publishNotReadyAddresses for svc/shop/web")]
    );
    assert_eq!(
        changes(&cures, "publish-not-ready"),
        [
            "-spec: {selector: {app: web}, clusterIP: None, ports: [{port: 8080}]}",
            "+spec: {selector: {app: web}, clusterIP: None, ports: [{port: 8080}], \
             publishNotReadyAddresses: true}",
        ]
    );
}

/// Without a known cloud too: the node port of a node without a server.
#[test]
fn policy_local_of_a_node_port_becomes_cluster() {
    let ports = "ports: [{port: 80, targetPort: 8080, nodePort: 30080}]";
    let service = service(&format!(
        "type: NodePort, externalTrafficPolicy: Local, clusterIP: 172.16.0.10, {ports}"
    ));
    let objects = [service, web(1), client(2)].concat();
    let cures = cures(&[IPTABLES], &objects, "outside", "10.0.0.12:30080");
    assert_eq!(offered(&cures), [("policy-cluster", "policy Cluster for svc/shop/web")]);
}

#[test]
fn a_node_port_over_loopback_is_called_at_the_nodes_address() {
    let ports = "ports: [{port: 80, targetPort: 8080, nodePort: 30080}]";
    let service = service(&format!("type: NodePort, clusterIP: 172.16.0.10, {ports}"));
    let objects = [service, web(1)].concat();
    let cures = cures(&[IPVS], &objects, "node/n2", "127.0.0.1:30080");
    assert_eq!(offered(&cures)[0], ("call-node", "call 10.0.0.12:30080, an address of n2 itself"));
}

#[test]
fn source_ranges_that_leave_pods_out_get_theirs() {
    let ports = "ports: [{port: 80, targetPort: 8080, nodePort: 30080}]";
    let ranges = "loadBalancerSourceRanges: [192.0.2.0/24]";
    let service =
        service(&format!("type: LoadBalancer, clusterIP: 172.16.0.10, {ranges}, {ports}"))
            + "status: {loadBalancer: {ingress: [{ip: 203.0.113.80}]}}\n";
    let objects = [service, web(1), client(2)].concat();
    let cures = cures(&[IPTABLES], &objects, CLIENT, "203.0.113.80:80");
    let wanted = "10.1.0.0/16 in loadBalancerSourceRanges of svc/shop/web";
    assert!(offered(&cures).contains(&("source-ranges", wanted)));
    let changes = changes(&cures, "source-ranges");
    assert!(changes.iter().any(|line| line.starts_with('+') && line.contains("10.1.0.0/16")));
}

#[test]
fn a_firewall_that_drops_gets_a_rule_for_the_port() {
    let ports = "ports: [{port: 80, targetPort: 8080, nodePort: 30080}]";
    let service = service(&format!("type: NodePort, clusterIP: 172.16.0.10, {ports}"));
    let firewall = "nodes:
    \"*\":
      iptables: |
        *filter
        :INPUT DROP [0:0]
        :FORWARD ACCEPT [0:0]
        -A INPUT -p tcp -m tcp --dport 22 -j ACCEPT
        COMMIT";
    // In IPVS mode calls of node ports pass INPUT.
    let objects = [service, web(1)].concat();
    let cures = cures(&[IPVS, firewall], &objects, "outside", "10.0.0.12:30080");
    assert_eq!(
        offered(&cures)[0],
        ("node-firewall", "on every node, let TCP 30080 from anywhere pass in chain INPUT")
    );
    assert_eq!(
        changes(&cures, "node-firewall"),
        ["+        -A INPUT -p tcp -m tcp --dport 30080 -j ACCEPT"]
    );
    // A rule that stops everything is not undone first.
    let stopping = firewall
        .replace("INPUT DROP", "INPUT ACCEPT")
        .replace("        COMMIT", "        -A INPUT -p tcp -j REJECT\n        COMMIT");
    let cures = self::cures(&[IPVS, &stopping], &objects, "outside", "10.0.0.12:30080");
    let titles = offered(&cures);
    assert_eq!(titles[0].1, "on every node, let TCP 30080 from anywhere pass in chain INPUT");
    assert!(titles.iter().any(|(_, title)| title.contains("-A INPUT -p tcp -j REJECT")));
}

#[test]
fn a_group_that_lacks_a_port_on_both_sides_gets_both() {
    let service = service("clusterIP: 172.16.0.10, ports: [{port: 80, targetPort: 8080}]");
    let groups = "nodes: {\"*\": {securityGroups: [nodes]}}
  securityGroups:
    nodes:
      inbound: [{action: accept, protocol: tcp, ports: \"443\", peer: all}]
      outbound: [{action: accept, protocol: tcp, ports: \"443\", peer: all}]";
    let objects = [service, web(1), client(2)].concat();
    let cures = cures(&[IPTABLES, groups], &objects, CLIENT, "svc/shop/web:80");
    assert_eq!(
        offered(&cures)[0],
        ("security-group", "let TCP 8080 in from 10.1.0.0/16 and out to it, in nodes")
    );
    let first = cures.iter().find(|cure| cure.is_offered()).unwrap();
    let said: Vec<String> = first.commands.iter().map(ToString::to_string).collect();
    assert!(said[0].contains("group nodes, inbound: let TCP 8080 from 10.1.0.0/16 in"), "{said:?}");
    assert!(said[1].contains("group nodes, outbound: let TCP 8080 to 10.1.0.0/16 out"), "{said:?}");
}
