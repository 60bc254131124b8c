//! Names of Services that a workload, an image or a volume states, and that its resolver lacks.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use uturn_diagnose::{Code, Finding, Severity, diagnose};
use uturn_path::Engine;
use uturn_scan::Scanner;
use uturn_snapshot::{Manifests, Source};

/// A Service with a pod, the cluster's DNS, and a place for more.
const CLUSTER: &str = "
apiVersion: v1
kind: Node
metadata: {name: n1}
spec: {podCIDR: 10.244.1.0/24}
status: {addresses: [{type: InternalIP, address: 10.0.0.11}]}
---
apiVersion: v1
kind: Pod
metadata: {name: cache, namespace: shop, labels: {app: cache}}
spec:
  nodeName: n1
  containers: [{name: c, image: c, ports: [{containerPort: 6379}]}]
status: {phase: Running, podIP: 10.244.1.9, conditions: [{type: Ready, status: 'True'}]}
---
apiVersion: v1
kind: Service
metadata: {name: cache, namespace: shop}
spec:
  clusterIP: 10.96.0.20
  selector: {app: cache}
  ports: [{port: 6379}]
---
apiVersion: v1
kind: Service
metadata: {name: kube-dns, namespace: kube-system}
spec:
  clusterIP: 10.96.0.10
  selector: {k8s-app: kube-dns}
  ports: [{name: dns, port: 53, protocol: UDP}]
---
apiVersion: v1
kind: Pod
metadata: {name: coredns, namespace: kube-system, labels: {k8s-app: kube-dns}}
spec:
  nodeName: n1
  containers: [{name: coredns, image: coredns, ports: [{containerPort: 53, protocol: UDP}]}]
status: {phase: Running, podIP: 10.244.1.2, conditions: [{type: Ready, status: 'True'}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: coredns, namespace: kube-system}
data:
  Corefile: |
    .:53 {
      kubernetes cluster.local in-addr.arpa ip6.arpa
      forward . /etc/resolv.conf
    }
---
apiVersion: uturn.dev/v1alpha1
kind: Facts
spec:
  kubeProxy: {mode: iptables, version: v1.30.0}
  network: {plugin: flannel, podCIDRs: [10.244.0.0/16]}
---
";

/// A Deployment that calls `CALL`, with a `POLICY`.
const WORKER: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: worker, namespace: shop}
spec:
  selector: {matchLabels: {app: worker}}
  template:
    metadata: {labels: {app: worker}}
    spec:
      POLICY
      containers: [{name: c, image: c, env: [{name: CACHE, value: 'CALL'}]}]
";

fn found(more: &str) -> Vec<Finding> {
    let source = Source { name: "cluster.yaml".into(), text: format!("{CLUSTER}{more}") };
    let cluster = Manifests::of(vec![source]).complete_if(true).cluster().unwrap();
    let engine = Engine::new(&cluster).unwrap();
    let scanner = Scanner::new(&engine);
    let all = diagnose(&scanner, &scanner.scan(&scanner.targets()).unwrap()).unwrap();
    all.into_iter().filter(|finding| finding.code == Code::NameNotFound).collect()
}

fn of_worker(policy: &str, call: &str) -> Vec<Finding> {
    found(&WORKER.replace("POLICY", policy).replace("CALL", call))
}

fn why(finding: &Finding) -> String {
    finding.other_evidence.iter().map(|one| one.what.to_string()).collect()
}

#[test]
fn a_call_by_a_name_that_the_resolver_lacks_is_an_error() {
    for (policy, call, words) in [
        ("hostNetwork: true", "redis://cache:6379/0", "ClusterFirstWithHostNet"),
        ("hostNetwork: true", "cache.shop.svc.cluster.local:6379", "ClusterFirstWithHostNet"),
        ("dnsPolicy: Default", "cache:6379", "dnsPolicy Default"),
        ("dnsPolicy: ClusterFirst", "cache.shop.svc.cluster.local.:6379", ""),
    ] {
        let found = of_worker(policy, call);
        if words.is_empty() {
            assert!(found.is_empty(), "{policy} {call}");
            continue;
        }
        let [finding] = &found[..] else { panic!("{policy} {call}: {}", found.len()) };
        assert_eq!(finding.severity, Severity::Error, "{policy} {call}");
        assert_eq!(finding.subject.to_string(), "Deployment shop/worker");
        assert!(why(finding).contains(words), "{}", why(finding));
    }
}

/// Most programs in the node's network call no Service.
#[test]
fn what_is_no_call_of_a_service_is_fine() {
    for (policy, call) in [
        ("hostNetwork: true", "cache"),
        ("hostNetwork: true", "cache:1"),
        ("hostNetwork: true", "redis://other:6379"),
        ("hostNetwork: true", "0.0.0.0:6379"),
        ("hostNetwork: true", "10.96.0.20:6379"),
        ("{hostNetwork: true, dnsPolicy: ClusterFirstWithHostNet}", "cache:6379"),
        ("dnsPolicy: ClusterFirst", "cache:6379"),
        ("dnsPolicy: ClusterFirst", "cache.shop:6379"),
    ] {
        let policy = policy.trim_matches(['{', '}']).replace(", ", "\n      ");
        assert!(of_worker(&policy, call).is_empty(), "{policy} {call}");
    }
}

#[test]
fn a_domain_that_coredns_does_not_serve_is_found_where_somebody_names_it() {
    let text = format!("{CLUSTER}{}", WORKER.replace("POLICY", "dnsPolicy: ClusterFirst"))
        .replace("CALL", "cache.shop.svc.cluster.local:6379")
        .replace("kubernetes cluster.local", "kubernetes own.example");
    let source = Source { name: "cluster.yaml".into(), text };
    let cluster = Manifests::of(vec![source]).cluster().unwrap();
    let engine = Engine::new(&cluster).unwrap();
    let scanner = Scanner::new(&engine);
    let all = diagnose(&scanner, &scanner.scan(&scanner.targets()).unwrap()).unwrap();
    let is_it = |finding: &&Finding| finding.subject.to_string() == "Deployment shop/worker";
    assert!(all.iter().any(|finding| is_it(&finding) && finding.code == Code::NameNotFound));
}

/// The names of pods below a headless Service, which they have only while they are ready.
#[test]
fn peers_that_wait_for_each_other_by_name_are_a_warning() {
    let pod = |number: u8, ready: &str| {
        format!(
            "---
apiVersion: v1
kind: Pod
metadata: {{name: peers-{number}, namespace: shop, labels: {{app: peers}}}}
spec:
  nodeName: n1
  hostname: peers-{number}
  subdomain: peers
  containers:
  - name: c
    image: c
    args: [--join=peers-1.peers.shop.svc.cluster.local:7000]
    ports: [{{containerPort: 7000}}]
status:
  phase: Running
  podIP: 10.244.1.2{number}
  conditions: [{{type: Ready, status: '{ready}'}}]
"
        )
    };
    // The second one finds itself in its own hosts file.
    let peers = |ready: &str, publishes: &str| {
        format!(
            "
apiVersion: v1
kind: Service
metadata: {{name: peers, namespace: shop}}
spec:
  clusterIP: None
  publishNotReadyAddresses: {publishes}
  selector: {{app: peers}}
  ports: [{{port: 7000}}]
{}{}",
            pod(0, ready),
            pod(1, ready)
        )
    };
    assert!(found(&peers("True", "false")).is_empty());
    assert!(found(&peers("False", "true")).is_empty());
    let all = found(&peers("False", "false"));
    let [finding] = &all[..] else { panic!("{:?}", all.iter().map(why).collect::<Vec<_>>()) };
    assert_eq!(finding.severity, Severity::Warning);
    assert!(why(finding).contains("publishNotReadyAddresses"), "{}", why(finding));
}

/// The container engine and the kubelet ask the name servers of the node.
#[test]
fn programs_of_the_node_know_no_services() {
    let pod = |phase: &str, image: &str| {
        format!(
            "
apiVersion: v1
kind: Pod
metadata: {{name: waits, namespace: shop}}
spec: {{nodeName: n1, containers: [{{name: c, image: '{image}'}}]}}
status: {{phase: {phase}, podIP: 10.244.1.7, conditions: [{{type: Ready, status: 'False'}}]}}
"
        )
    };
    let [finding] = &found(&pod("Pending", "cache:6379/app:v1"))[..] else { panic!() };
    assert_eq!(finding.severity, Severity::Error);
    assert!(why(finding).contains("Service shop/cache"), "{}", why(finding));
    // An image of a pod that has started was pulled.
    assert!(found(&pod("Running", "cache:6379/app:v1")).is_empty());
    assert!(found(&pod("Pending", "cache/app:v1")).is_empty());
    assert!(found(&pod("Pending", "registry.example.com/app:v1")).is_empty());
    let volume = |server: &str| {
        format!(
            "
apiVersion: v1
kind: PersistentVolume
metadata: {{name: data}}
spec: {{nfs: {{server: {server}, path: /}}}}
"
        )
    };
    let [finding] = &found(&volume("cache.shop.svc.cluster.local"))[..] else { panic!() };
    assert_eq!(finding.subject.to_string(), "PersistentVolume data");
    assert!(found(&volume("10.96.0.20")).is_empty());
    assert!(found(&volume("nfs.example.com")).is_empty());
}
