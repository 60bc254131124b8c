//! What objects become.

#![allow(clippy::unwrap_used, reason = "a helper of a test may fail like the test")]

mod kube_proxy;

use std::path::PathBuf;

use uturn_clouds::cloud::tke;
use uturn_model::ingress::{Backend, BackendPort, PathKind};
use uturn_model::service::{IpMode, Policy, ServiceKind, TargetPort};
use uturn_model::{Cluster, Family, NamespacedName, ObjectRef, Port, Protocol, WorkloadKind};
use uturn_snapshot::{Loaded, Source, load, read};

fn loaded(text: &str) -> Loaded {
    match read(vec![Source { name: "a.yaml".into(), text: text.into() }]) {
        Ok(loaded) => loaded,
        Err(faults) => {
            panic!("{}", faults.iter().map(|fault| format!("{fault}\n")).collect::<String>())
        }
    }
}

fn cluster(text: &str) -> Cluster {
    loaded(text).cluster
}

fn name(text: &str) -> NamespacedName {
    text.parse().unwrap()
}

fn port(number: u16) -> Port {
    Port::new(number).unwrap()
}

#[test]
fn objects_of_a_real_run() {
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/all/objects/golden.yaml");
    let loaded = load(&[PathBuf::from(golden)]).unwrap();
    let cluster = &loaded.cluster;
    assert_eq!((cluster.services.len(), cluster.nodes.len()), (24, 3));
    assert_eq!(loaded.seen["Service"], 24);
    assert_eq!(loaded.seen["EndpointSlice"], 24);
    let slices = cluster.slices(&name("shop/clusterip"));
    assert_eq!(slices.len(), 1);
    assert_eq!(slices[0].endpoints.len(), 4);
    assert_eq!(slices[0].ports[0].name, None);
    assert!(slices.iter().all(|slice| !slice.derived));
    let of_kind = |kind: ServiceKind| {
        cluster.services.values().filter(|service| service.kind == kind).count()
    };
    let all = of_kind(ServiceKind::ClusterIp)
        + of_kind(ServiceKind::NodePort)
        + of_kind(ServiceKind::LoadBalancer);
    assert!(all >= 23, "{all}");
}

#[test]
fn every_field_of_a_service() {
    let cluster = cluster(
        r#"
apiVersion: v1
kind: Service
metadata:
  name: all
  namespace: shop
  labels: {app: all}
  annotations: {service.cloud.tencent.com/prevent-loopback: "true"}
spec:
  type: LoadBalancer
  clusterIP: 172.16.0.9
  clusterIPs: [172.16.0.9, "fd00::9"]
  ipFamilies: [IPv4, IPv6]
  externalIPs: [1.2.3.4]
  externalTrafficPolicy: Local
  internalTrafficPolicy: Local
  sessionAffinity: ClientIP
  sessionAffinityConfig: {clientIP: {timeoutSeconds: 60}}
  loadBalancerSourceRanges: [10.0.0.0/8]
  healthCheckNodePort: 31000
  allocateLoadBalancerNodePorts: false
  publishNotReadyAddresses: true
  trafficDistribution: PreferClose
  loadBalancerClass: example.com/lb
  selector: {app: all}
  unknownField: {is: ignored}
  ports:
  - {name: http, port: 80, targetPort: web, nodePort: 30080, appProtocol: http}
  - {name: dns, port: 53, protocol: UDP}
status:
  loadBalancer:
    ingress:
    - {ip: 10.0.0.100}
    - {ip: 10.0.0.101, ipMode: Proxy}
    - {hostname: lb.example.com}
"#,
    );
    let service = &cluster.services[&name("shop/all")];
    assert_eq!(service.kind, ServiceKind::LoadBalancer);
    assert_eq!(service.cluster_ip(Family::V6), Some("fd00::9".parse().unwrap()));
    assert_eq!(service.external_policy, Policy::Local);
    assert_eq!(service.internal_policy, Policy::Local);
    assert_eq!(service.affinity_seconds, Some(60));
    assert_eq!(service.source_ranges, ["10.0.0.0/8".parse().unwrap()]);
    assert_eq!(service.health_check_node_port, Some(port(31000)));
    assert!(!service.allocates_node_ports && service.publishes_not_ready);
    assert_eq!(service.traffic_distribution.as_deref(), Some("PreferClose"));
    assert_eq!(service.load_balancer_class.as_deref(), Some("example.com/lb"));
    assert_eq!(service.ports[0].target, TargetPort::Name("web".into()));
    assert_eq!(service.ports[0].node_port, Some(port(30080)));
    assert_eq!(service.ports[1].target, TargetPort::Number(port(53)));
    assert_eq!(service.ports[1].protocol, Protocol::Udp);
    assert_eq!(service.ports[1].node_port, None, "it allocates none");
    assert_eq!(service.load_balancer[1].mode, IpMode::Proxy);
    assert_eq!(service.vips(Family::V4).count(), 1);
    assert!(service.annotations.is("service.cloud.tencent.com/prevent-loopback", "true"));
    assert_eq!((service.origin.path(), service.origin.line()), (Some("a.yaml"), 2));
}

#[test]
fn slices_old_endpoints_and_what_pods_add() {
    let cluster = cluster(
        "
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: a-1, namespace: shop, labels: {kubernetes.io/service-name: a}}
addressType: IPv4
ports: [{name: '', port: 8080}]
endpoints:
- addresses: [10.1.1.5]
  conditions: {ready: false, serving: true, terminating: true}
  zone: z1
  hints: {forZones: [{name: z1}], forNodes: [{name: n1}]}
- addresses: [10.1.1.6]
---
apiVersion: v1
kind: Endpoints
metadata: {name: a, namespace: shop}
subsets: [{addresses: [{ip: 10.9.9.9}], ports: [{port: 1}]}]
---
apiVersion: v1
kind: Endpoints
metadata: {name: b, namespace: shop}
subsets:
- addresses: [{ip: 10.1.1.7, nodeName: n2}]
  notReadyAddresses: [{ip: 10.1.1.8}]
  ports: [{port: 9090}]
---
apiVersion: v1
kind: Pod
metadata: {name: p, namespace: shop}
spec: {nodeName: n1, containers: [{name: c, image: i}]}
status: {phase: Running, podIP: 10.1.1.5}
",
    );
    let slices = cluster.slices(&name("shop/a"));
    assert_eq!(slices.len(), 1, "Endpoints give way to slices");
    let first = &slices[0].endpoints[0];
    assert!(!first.ready && first.serving && first.terminating);
    assert_eq!((first.zone_hints.len(), first.node_hints.len()), (1, 1));
    assert_eq!(first.node, None, "as it is written: kube-proxy goes by that alone");
    assert_eq!(first.pod, Some(name("shop/p")));
    assert!(slices[0].endpoints[1].ready, "ready unless it says otherwise");
    let old = &cluster.slices(&name("shop/b"))[0];
    assert_eq!(old.endpoints.iter().filter(|endpoint| endpoint.ready).count(), 1);
    assert_eq!(old.endpoints.len(), 2);
}

#[test]
fn ingresses_and_classes() {
    let cluster = cluster(
        "
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: a, namespace: shop, annotations: {kubernetes.io/ingress.class: nginx}}
spec:
  defaultBackend: {service: {name: rest, port: {name: http}}}
  tls: [{hosts: [shop.example.com], secretName: cert}]
  rules:
  - host: shop.example.com
    http:
      paths:
      - {path: /api, pathType: Prefix, backend: {service: {name: api, port: {number: 80}}}}
      - {pathType: Exact, backend: {resource: {kind: Bucket, name: b}}}
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: nginx, annotations: {ingressclass.kubernetes.io/is-default-class: 'true'}}
spec: {controller: k8s.io/ingress-nginx}
",
    );
    let ingress = &cluster.ingresses[&name("shop/a")];
    assert_eq!(ingress.class.as_deref(), Some("nginx"));
    assert_eq!(
        ingress.default_backend,
        Some(Backend::Service {
            name: "rest".parse().unwrap(),
            port: BackendPort::Name("http".into())
        })
    );
    assert_eq!(&*ingress.tls[0].hosts[0], "shop.example.com");
    let paths = &ingress.rules[0].paths;
    assert_eq!((&*paths[0].path, paths[0].kind), ("/api", PathKind::Prefix));
    assert_eq!(paths[1].backend, Backend::Resource("Bucket/b".into()));
    assert!(cluster.ingress_classes["nginx"].is_default);
    assert!(ingress.load_balancer.is_empty(), "another controller's");
}

#[test]
fn pods_know_the_workload_at_the_top() {
    let cluster = cluster(
        "
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Pod
  metadata:
    name: front-7c9d5b6f8-x
    namespace: shop
    labels: {app: front, pod-template-hash: 7c9d5b6f8}
    ownerReferences: [{kind: ReplicaSet, name: front-7c9d5b6f8}]
  spec:
    nodeName: n1
    dnsPolicy: Default
    dnsConfig: {nameservers: [10.0.0.2], searches: [a.b], options: [{name: ndots, value: '2'}]}
    hostAliases: [{ip: 1.2.3.4, hostnames: [one, two]}]
    initContainers:
    - {name: once, image: i}
    - {name: sidecar, image: i, restartPolicy: Always}
    containers: [{name: c, image: i, ports: [{name: web, containerPort: 8080}]}]
  status: {phase: Running, podIPs: [{ip: 10.1.1.2}], conditions: [{type: Ready, status: 'False'}]}
",
    );
    let pod = &cluster.pods[&name("shop/front-7c9d5b6f8-x")];
    let front = ObjectRef::namespaced(WorkloadKind::Deployment.into(), &name("shop/front"));
    assert_eq!(pod.owner, Some(front));
    assert!(!pod.ready);
    assert_eq!(pod.spec.containers.len(), 2);
    assert_eq!(pod.spec.named_port("web", Protocol::Tcp), Some(port(8080)));
    assert_eq!((pod.spec.dns_ndots, pod.spec.host_aliases.len()), (Some(2), 2));
}

#[test]
fn readiness_gates_decide_when_containers_are_ready() {
    for (conditions, expected) in [
        (&[][..], &[][..]),
        (&[("ContainersReady", "False")], &[]),
        (&[("ContainersReady", "True")], &["a", "b"]),
        (&[("ContainersReady", "True"), ("a", "True")], &["b"]),
        (&[("ContainersReady", "True"), ("a", "True"), ("b", "False")], &["b"]),
        (&[("ContainersReady", "True"), ("a", "True"), ("b", "True")], &["a", "b"]),
    ] {
        let conditions = conditions.iter().chain(&[("Ready", "False")]);
        let conditions: Vec<String> = conditions
            .map(|(kind, status)| format!("{{type: {kind}, status: '{status}'}}"))
            .collect();
        let cluster = cluster(&format!(
            "
apiVersion: v1
kind: Pod
metadata: {{name: p, namespace: shop}}
spec: {{nodeName: n1, readinessGates: [{{conditionType: a}}, {{conditionType: b}}]}}
status: {{phase: Running, podIPs: [{{ip: 10.1.1.2}}], conditions: [{}]}}
",
            conditions.join(", ")
        ));
        let pod = &cluster.pods[&name("shop/p")];
        let deciding: Vec<&str> = pod.deciding_gates.iter().map(|gate| &**gate).collect();
        assert_eq!(deciding, expected, "{conditions:?}");
    }
}

#[test]
fn workloads_of_every_kind() {
    let template =
        "template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}";
    let mut text = String::new();
    for kind in ["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"] {
        text += &format!(
            "apiVersion: apps/v1\nkind: {kind}\nmetadata: {{name: a}}\n\
             spec: {{selector: {{matchLabels: {{a: b}}}}, {template}}}\n---\n"
        );
    }
    text += &format!(
        "apiVersion: batch/v1\nkind: Job\nmetadata: {{name: a}}\nspec: {{{template}}}\n---\n"
    );
    text += &format!(
        "apiVersion: batch/v1\nkind: CronJob\nmetadata: {{name: a}}\n\
         spec: {{schedule: '* * * * *', jobTemplate: {{spec: {{{template}}}}}}}\n"
    );
    let cluster = cluster(&text);
    for kind in WorkloadKind::ALL.into_iter().take(6) {
        let workload = &cluster.workloads[&(kind, name("default/a"))];
        assert_eq!((workload.replicas, workload.template.containers.len()), (1, 1), "{kind}");
        assert!(workload.selector.matches(&workload.template.labels), "{kind}");
    }
}

#[test]
fn anchors_and_merge_keys() {
    let cluster = cluster(
        "
apiVersion: v1
kind: Service
metadata: {name: a, labels: &labels {app: a, tier: web}}
spec:
  selector: {<<: *labels, tier: api}
  ports: [{port: 80}]
",
    );
    let selector = cluster.services[&name("default/a")].selector.clone().unwrap();
    assert!(selector.labels.is("app", "a") && selector.labels.is("tier", "api"));
}

#[test]
fn facts_as_the_command_line_documents_them() {
    let cluster = cluster(
        "
apiVersion: v1
kind: Node
metadata: {name: n1}
spec: {podCIDR: 10.1.1.0/24}
status: {addresses: [{type: InternalIP, address: 10.0.0.11}]}
---
apiVersion: uturn.dev/v1alpha1
kind: Facts
spec:
  provider: tke
  network: {mode: global-router, podCIDRs: [10.1.0.0/16], serviceCIDRs: [172.16.0.0/16], vpcCIDRs: [10.0.0.0/16], nonMasqueradeCIDRs: []}
  kubeProxy: {mode: ipvs, version: v1.22.5-tke.13}
  nodes:
    n1: {rpFilter: 0, publicBandwidth: false, securityGroups: [sg-nodes]}
  loadBalancers:
    - {vip: 10.0.0.100, scope: private, probeSource: vip, listeners: [{port: 80, protocol: HTTP, snat: false}]}
  securityGroups:
    sg-nodes:
      inbound:
      - {action: accept, protocol: tcp, ports: 30000-32768, peer: 0.0.0.0/0}
      - {action: drop, protocol: all, ports: all, peer: all}
      outbound: [{action: accept, ports: 443}]
  dns: {domain: cluster.local, outside: {example.com: 1.2.3.4}}
",
    );
    assert_eq!(cluster.supposed, [], "all is stated");
    let group = &cluster.security_groups["sg-nodes"];
    assert_eq!(group.inbound[0].ports, Some((30000, 32768)));
    assert_eq!((group.inbound[1].protocol, group.inbound[1].peer), (None, None));
    assert_eq!(group.outbound[0].ports, Some((443, 443)));
    let node = &cluster.nodes["n1"];
    assert_eq!(node.public_bandwidth, Some(false));
    assert_eq!(cluster.load_balancers[0].listeners[0].snat, Some(false));
    assert_eq!(&*cluster.dns.outside[0].0, "example.com");
    assert!(cluster.network.non_masquerade_cidrs.value.is_empty());
}

#[test]
fn listener_overrides() {
    let cluster = cluster(
        "
apiVersion: cloud.tencent.com/v1alpha1
kind: TkeServiceConfig
metadata: {name: front-auto-ingress-config, namespace: shop}
spec:
  loadBalancer:
    l4Listeners: [{protocol: TCP, port: 80, healthCheck: {enable: true, sourceIpType: 1}}]
    l7Listeners:
    - protocol: HTTPS
      port: 443
      keepaliveEnable: 1
      domains: [{domain: '', rules: [{url: /, scheduler: IP_HASH, healthCheck: {enable: false}}]}]
",
    );
    let config = &cluster.listener_overrides[&name("shop/front-auto-ingress-config")];
    let [l4, l7] = config.listeners.as_slice() else { panic!("{config:?}") };
    assert_eq!(l4.probe_source, Some(uturn_model::lb::StatedProbeSource::Reserved));
    assert_eq!((l7.keepalive, l7.health_check), (Some(true), Some(false)));
    assert_eq!(l7.scheduler, Some(uturn_model::lb::Scheduler::SourceHash));
}
