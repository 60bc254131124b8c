//! Names of Services that a workload, an image or a volume states, and that its resolver lacks.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use uturn_diagnose::{Code, Finding, Severity, diagnose};
use uturn_path::Engine;
use uturn_scan::Scanner;
use uturn_snapshot::{Manifests, Source};

/// A Service with a pod, the cluster's DNS, and a place for more.
pub(crate) const CLUSTER: &str = "
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
pub(crate) const WORKER: &str = "
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
        let mut found = of_worker(&policy, call);
        // That names would not resolve is a hint.
        found.retain(|finding| finding.severity > Severity::Info);
        assert!(found.is_empty(), "{policy} {call}");
    }
}

/// Nothing shows that the worker calls a Service: it is a hint, once for a workload.
#[test]
fn a_workload_of_the_host_network_may_miss_names() {
    let found = of_worker("hostNetwork: true", "");
    let [finding] = &found[..] else { panic!("{found:#?}") };
    assert_eq!((finding.severity, finding.share_failing.is_none()), (Severity::Info, true));
    assert_eq!(finding.subject.to_string(), "Deployment shop/worker");
    let asks = of_worker("hostNetwork: true\n      dnsPolicy: ClusterFirstWithHostNet", "");
    assert!(asks.is_empty(), "{asks:#?}");
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

/// A Deployment that reads `MAP` as `SOURCE` says, and the ConfigMap.
const READER: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: reader, namespace: shop}
spec:
  selector: {matchLabels: {app: reader}}
  template:
    metadata: {labels: {app: reader}}
    spec:
      dnsPolicy: Default
      containers:
      - {name: c, image: c, SOURCE}
      volumes: [{name: etc, configMap: {name: conf, items: [{key: app.yaml, path: app.yaml}]}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: conf, namespace: shop}
data:
  app.yaml: |
    # was: http://cache:6379
    cache: 'redis://CALL:6379'
  CACHE: CALL:6379
  other: nothing
";

#[test]
fn a_config_map_that_a_container_reads_states_calls() {
    for (source, call, severity) in [
        ("volumeMounts: [{name: etc, mountPath: /etc/app}]", "cache", Some(Severity::Warning)),
        (
            "volumeMounts: [{name: etc, mountPath: /a, subPath: app.yaml}]",
            "cache",
            Some(Severity::Warning),
        ),
        (
            "envFrom: [{configMapRef: {name: conf}}]",
            "cache.shop.svc.cluster.local",
            Some(Severity::Error),
        ),
        (
            "env: [{name: A, valueFrom: {configMapKeyRef: {name: conf, key: CACHE}}}]",
            "cache",
            Some(Severity::Warning),
        ),
        ("env: [{name: A, valueFrom: {configMapKeyRef: {name: conf, key: other}}}]", "cache", None),
        ("envFrom: [{configMapRef: {name: another}}]", "cache", None),
        ("tty: true", "cache", None),
    ] {
        let found = found(&READER.replace("SOURCE", source).replace("CALL", call));
        let severities: Vec<Severity> = found.iter().map(|finding| finding.severity).collect();
        assert_eq!(severities, Vec::from_iter(severity), "{source}");
        let Some(finding) = found.first() else { continue };
        assert_eq!(finding.subject.to_string(), "Deployment shop/reader");
        let words = "ConfigMap shop/conf, which container c reads, names cache";
        assert!(why(finding).contains(words), "{}", why(finding));
    }
}

/// A dump may lack volumes: a ConfigMap that nothing reads is supposed to be that of the workload whose
/// name it begins with.
#[test]
fn a_config_map_that_is_called_like_a_workload_is_supposed_to_be_read() {
    for (map, reads, is_found) in [
        ("reader", "tty: true", true),
        ("reader-conf", "tty: true", true),
        ("readers", "tty: true", false),
        ("conf", "tty: true", false),
        // Its volumes are given.
        ("reader-conf", "envFrom: [{configMapRef: {name: other}}]", false),
    ] {
        let text = READER.replace("SOURCE", reads).replace("CALL", "cache");
        let text = text.replace("metadata: {name: conf", &format!("metadata: {{name: {map}"));
        let found = found(&text);
        assert_eq!(found.len(), usize::from(is_found), "{map} {reads}");
        let Some(finding) = found.first() else { continue };
        assert_eq!(finding.severity, Severity::Warning);
        let condition = format!("Deployment shop/reader reads ConfigMap shop/{map}");
        assert_eq!(finding.conditions, [condition.into()]);
    }
}

#[test]
fn the_only_service_with_the_called_port_is_meant_by_a_similar_name() {
    for (call, words) in [
        ("my-cache:6379", "Service shop/cache has this port and is probably meant"),
        ("http://cache.shops:6379", ""),
        ("ca-che:6379", "Service shop/cache has this port and is probably meant"),
        ("ca-che:6380", ""),
        ("queue:6379", ""),
        ("http://cache", ""),
        ("kube-dns:53", ""),
        ("localhost:6379", ""),
    ] {
        let found = of_worker("dnsPolicy: ClusterFirst", call);
        if words.is_empty() {
            assert!(found.is_empty(), "{call}: {}", why(&found[0]));
            continue;
        }
        let [finding] = &found[..] else { panic!("{call}: {}", found.len()) };
        assert_eq!(finding.severity, Severity::Warning, "{call}");
        assert!(why(finding).contains(words), "{}", why(finding));
    }
    let other = WORKER.replace("namespace: shop", "namespace: other").replace("CALL", "cache:6379");
    let found = found(&other.replace("POLICY", "dnsPolicy: ClusterFirst"));
    let [finding] = &found[..] else { panic!("{}", found.len()) };
    assert!(why(finding).contains("is cache.shop here"), "{}", why(finding));
}

/// A controller in the node's network, and an Ingress that asks another Service first.
const ASKING: &str = "
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: controller, namespace: ingress-nginx}
spec:
  selector: {matchLabels: {app: controller}}
  template:
    metadata: {labels: {app: controller}}
    spec:
      hostNetwork: true
      dnsPolicy: POLICY
      containers:
      - name: controller
        image: registry.k8s.io/ingress-nginx/controller:v1.11.0
        args: [/nginx-ingress-controller, --ingress-class=nginx]
        ports: [{containerPort: 80, hostPort: 80}]
---
apiVersion: v1
kind: Pod
metadata:
  name: controller-x
  namespace: ingress-nginx
  labels: {app: controller}
  ownerReferences: [{apiVersion: apps/v1, kind: DaemonSet, name: controller, controller: true}]
spec:
  nodeName: n1
  hostNetwork: true
  dnsPolicy: POLICY
  containers:
  - name: controller
    image: registry.k8s.io/ingress-nginx/controller:v1.11.0
    args: [/nginx-ingress-controller, --ingress-class=nginx]
    ports: [{containerPort: 80, hostPort: 80}]
status: {phase: Running, podIP: 10.0.0.11, conditions: [{type: Ready, status: 'True'}]}
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: nginx}
spec: {controller: k8s.io/ingress-nginx}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: cache
  namespace: shop
  annotations: {nginx.ingress.kubernetes.io/auth-url: 'CALL'}
spec:
  ingressClassName: nginx
  rules:
  - host: cache.example.com
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: cache, port: {number: 6379}}}}]}
";

#[test]
fn the_controller_of_an_ingress_resolves_the_url_that_it_asks_first() {
    let url = "http://cache.shop.svc.cluster.local:6379/verify?to=$host";
    for (policy, call, fails) in [
        ("ClusterFirst", url, true),
        ("ClusterFirstWithHostNet", url, false),
        ("ClusterFirst", "https://login.example.com/verify", false),
        ("ClusterFirst", "http://10.96.0.20:6379/", false),
        ("ClusterFirst", "http://cache.shop.svc.cluster.local:1/", false),
    ] {
        let found = found(&ASKING.replace("POLICY", policy).replace("CALL", call));
        assert_eq!(found.len(), usize::from(fails), "{policy} {call}");
        let Some(finding) = found.first() else { continue };
        assert_eq!(finding.severity, Severity::Error);
        assert_eq!(finding.subject.to_string(), "Ingress shop/cache");
        assert!(why(finding).contains("auth-url"), "{}", why(finding));
        assert!(why(finding).contains("ClusterFirstWithHostNet"), "{}", why(finding));
    }
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
