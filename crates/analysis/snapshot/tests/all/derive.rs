//! What is derived if objects are missing, and what is supposed then.

#![allow(clippy::unwrap_used, reason = "a helper of a test may fail like the test")]

mod extent;
mod pods;

use uturn_clouds::cloud::{Maker, f5, maker_of, tke};
use uturn_model::cluster::Provider;
use uturn_model::network::NetworkMode;
use uturn_model::proxy::LocalDetector;
use uturn_model::{
    Basis, Cluster, Extent, NamespacedName, Pod, ProxyMode, Unjudged, Unknown, WorkloadKind,
};
use uturn_snapshot::{Manifests, Source, read};

fn cluster(text: &str) -> Cluster {
    match read(vec![Source { name: "a.yaml".into(), text: text.into() }]) {
        Ok(loaded) => loaded.cluster,
        Err(faults) => {
            panic!("{}", faults.iter().map(|fault| format!("{fault}\n")).collect::<String>())
        }
    }
}

fn name(text: &str) -> NamespacedName {
    text.parse().unwrap()
}

fn is_assumed(cluster: &Cluster, subject: &str) -> bool {
    cluster.supposed.iter().any(|fact| fact.subject == subject.into())
}

/// A typo in Facts is not taken for an answer.
#[test]
fn facts_that_name_nothing_are_listed() {
    let facts = |stated: &str| {
        let text = format!(
            "apiVersion: uturn.dev/v1alpha1
kind: Facts
spec: {{provider: tke, {stated}}}
---
{{apiVersion: v1, kind: Node, metadata: {{name: n1}}, status: {{addresses: [{{type: InternalIP, address: \
             10.0.0.11}}]}}}}
---
apiVersion: v1
kind: Service
metadata: {{name: web, namespace: shop, annotations: {{service.cloud.tencent.com/security-groups: sg-noted}}}}
spec: {{type: LoadBalancer, clusterIP: 172.16.0.9, ports: [{{port: 80, nodePort: 30080}}]}}
status: {{loadBalancer: {{ingress: [{{ip: 10.0.0.100}}]}}}}
"
        );
        let all = cluster(&text).supposed;
        let unused = all.iter().filter(|own| &*own.assumed == "it has no effect");
        unused.map(|own| format!("{}: {}", own.subject, own.because)).collect::<Vec<_>>().join("\n")
    };
    let group = "{inbound: [{action: accept, protocol: tcp, ports: 80, peer: all}]}";
    assert_eq!(facts("nodes: {n1: {securityGroups: [a]}}"), "");
    let of_nodes = facts("nodes: {n1: {unprogrammed: [shop/wbe]}}");
    assert!(of_nodes.contains("unprogrammed of Facts: shop/wbe"), "{of_nodes}");
    let on_bridge = "network: {plugin: flannel}, nodes: {n1: {hairpin: false}}";
    assert_eq!(facts(on_bridge), "");
    let without = facts(&on_bridge.replace("flannel", "calico"));
    assert!(without.starts_with("spec.nodes.n1.hairpin of Facts: the pod network"), "{without}");
    let named = format!(
        "nodes: {{n1: {{securityGroups: [a]}}}}, securityGroups: {{a: {group}, sg-noted: {group}}}"
    );
    assert_eq!(facts(&named), "");
    let unnamed = facts(&format!("securityGroups: {{b: {group}}}"));
    assert!(unnamed.starts_with("spec.securityGroups.b of Facts: no node"), "{unnamed}");
    let with_port = |vip: &str, port: u16| {
        facts(&format!(
            "loadBalancers: [{{vip: {vip}, listeners: [{{port: {port}, snat: false}}]}}]"
        ))
    };
    assert_eq!(with_port("10.0.0.100", 80), "");
    assert!(with_port("10.0.0.100", 443).contains("shop/web has no port 443"));
    assert!(with_port("10.0.0.101", 80).contains("no Service and no Ingress has this address"));
}

const PULL_REQUEST: &str = "
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 4
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web, ports: [{name: http, containerPort: 8080}]}]}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: agent, namespace: shop}
spec:
  selector: {matchLabels: {app: agent}}
  template:
    metadata: {labels: {app: agent}}
    spec: {hostNetwork: true, containers: [{name: agent, image: agent}]}
---
apiVersion: v1
kind: Service
metadata:
  name: web
  namespace: shop
  annotations: {service.kubernetes.io/qcloud-loadbalancer-internal-subnetid: subnet-a}
spec: {type: LoadBalancer, selector: {app: web}, ports: [{port: 80, targetPort: http}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: shop}
spec: {defaultBackend: {service: {name: web, port: {number: 80}}}}
";

#[test]
fn a_pull_request_is_enough() {
    let cluster = cluster(PULL_REQUEST);
    let nodes: Vec<String> = cluster
        .nodes
        .values()
        .map(|node| format!("{} {:?} {:?}", node.name, node.internal_ips, node.pod_cidrs))
        .collect();
    assert_eq!(
        nodes,
        [
            "n1 [10.0.0.11] [10.1.1.0/24]",
            "n2 [10.0.0.12] [10.1.2.0/24]",
            "n3 [10.0.0.13] [10.1.3.0/24]"
        ]
    );
    assert!(cluster.nodes.values().all(|node| node.supposed));
    let place =
        |pod: &Pod| format!("{} {} {:?}", pod.name.name, pod.node.as_ref().unwrap(), pod.ips);
    let pods: Vec<String> = cluster.pods.values().map(place).collect();
    assert_eq!(
        pods,
        [
            "agent-n1 n1 [10.0.0.11]",
            "agent-n2 n2 [10.0.0.12]",
            "agent-n3 n3 [10.0.0.13]",
            "web-1 n1 [10.1.1.10]",
            "web-2 n2 [10.1.2.10]",
            "web-3 n3 [10.1.3.10]",
            "web-4 n1 [10.1.1.11]"
        ]
    );
    assert!(cluster.pods.values().all(|pod| pod.supposed && pod.ready));
    let service = &cluster.services[&name("shop/web")];
    assert_eq!(service.cluster_ips, ["172.16.0.10".parse::<std::net::IpAddr>().unwrap()]);
    assert_eq!(service.ports[0].node_port.unwrap().number(), 30000);
    assert_eq!(service.load_balancer[0].ip.unwrap().to_string(), "10.0.0.100");
    let ingress = &cluster.ingresses[&name("shop/web")];
    assert_eq!(ingress.load_balancer[0].ip.unwrap().to_string(), "203.0.113.100", "public");
    let slices = cluster.slices(&name("shop/web"));
    assert_eq!((slices.len(), slices[0].endpoints.len()), (1, 4));
    assert_eq!(slices[0].ports[0].port.number(), 8080);
    assert!(slices[0].derived);
    assert_eq!(
        cluster.provider.to_owned().basis.to_string(),
        "from service.kubernetes.io/qcloud-loadbalancer-internal-subnetid of Service shop/web"
    );
    let supposed: Vec<String> = cluster.supposed.iter().map(ToString::to_string).collect();
    assert_eq!(
        supposed,
        [
            "VPC ranges: 10.0.0.0/16 (the ranges around nodes and private load balancers; \
             state spec.network.vpcCIDRs in Facts)",
            "address of Ingress shop/web: 203.0.113.100 (public) (its status has no address; give \
             the object's status, or state spec.loadBalancers in Facts)",
            "address of Service shop/web: 10.0.0.100 (private) (its status has no address; give \
             the object's status, or state spec.loadBalancers in Facts)",
            "addresses of 3 nodes: unused addresses of 10.0.0.0/16 (no InternalIP is given; give Node \
             objects with status.addresses)",
            "clusterIP of 1 Service: shop/web: unused addresses of 172.16.0.0/16 (no clusterIP is given; \
             give the applied Service objects)",
            "kube-proxy cluster CIDR: 10.1.0.0/22, which has all pods (nothing names a cluster CIDR \
             for kube-proxy; give kube-proxy's ConfigMap, or state \
             spec.network.podCIDRs in Facts)",
            "kube-proxy mode: iptables (not stated; iptables is kube-proxy's default; state \
             spec.kubeProxy.mode in Facts)",
            "kube-proxy version: v1.34.0 (neither an image of kube-proxy nor a node says it; \
             state spec.kubeProxy.version in Facts)",
            "network: global-router (neither nodes nor pods say it; state spec.network.mode in \
             Facts)",
            "nodePorts of 1 Service: shop/web: unused ports from 30000 on (no nodePort is given; \
             give the applied Service objects)",
            "nodes: 3 (n1, n2, n3) (there is no Node object; give the cluster's Node objects)",
            "placement of 7 pods of Deployment shop/web, DaemonSet shop/agent: spread over the \
             nodes (there are no Pod objects of theirs; give the Pod objects)",
            "pod ranges of 3 nodes: a /24 of 10.1.0.0/16 each (no podCIDR is given; give Node \
             objects with spec.podCIDRs)",
        ]
    );
}

/// The Corefile defines the cluster's domain if nothing else does.
#[test]
fn the_domain_is_the_one_that_coredns_serves() {
    let corefile = |zones: &str| {
        format!(
            "
apiVersion: v1
kind: ConfigMap
metadata: {{name: coredns, namespace: kube-system}}
data:
  Corefile: |
    .:53 {{
        kubernetes {zones} {{
            fallthrough in-addr.arpa
        }}
    }}
"
        )
    };
    let domain = |text: &str| cluster(text).dns.domain().to_owned();
    assert_eq!(domain(&corefile("corp.internal in-addr.arpa")), "corp.internal");
    assert_eq!(domain(&corefile("corp.internal cluster.local. in-addr.arpa")), "cluster.local");
    assert_eq!(domain(&corefile("{$DOMAIN} in-addr.arpa")), "cluster.local");
    assert_eq!(domain(&corefile("")), "cluster.local");
    let supposed = cluster(&corefile("corp.internal")).supposed;
    assert!(
        supposed.iter().any(|fact| fact.subject == "the cluster's domain".into()),
        "{supposed:?}"
    );
}

#[test]
fn what_nobody_needs_is_not_supposed() {
    assert_eq!(cluster("").supposed, []);
    let lonely = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";
    assert_eq!(cluster(lonely).supposed, []);
    let cluster = cluster(
        "
apiVersion: v1
kind: Node
metadata: {name: n1}
spec: {podCIDR: 10.1.1.0/24}
status: {addresses: [{type: InternalIP, address: 10.0.0.11}]}
",
    );
    assert_eq!(cluster.supposed, []);
    assert_eq!(cluster.provider.value, Provider::None);
}

/// A LoadBalancer Service with these annotations, class and status.
fn balanced(name: &str, annotations: &str, more: &str, status: &str) -> String {
    format!(
        "---
apiVersion: v1
kind: Service
metadata: {{name: {name}, namespace: shop, annotations: {{{annotations}}}}}
spec: {{type: LoadBalancer, {more} ports: [{{port: 80, nodePort: 30080}}]}}
status: {{loadBalancer: {{ingress: [{status}]}}}}
"
    )
}

fn node_of(provider_id: &str) -> String {
    format!(
        "---
apiVersion: v1
kind: Node
metadata: {{name: n1}}
spec: {{podCIDR: 10.1.1.0/24, providerID: \"{provider_id}\"}}
status: {{addresses: [{{type: InternalIP, address: 10.0.0.11}}]}}
"
    )
}

/// Whose load balancers are not judged.
fn gaps(cluster: &Cluster) -> Vec<String> {
    of_balancers(cluster).map(ToString::to_string).collect()
}

fn of_balancers(cluster: &Cluster) -> impl Iterator<Item = &Unjudged> {
    let is_given = |gap: &&Unjudged| !matches!(gap.subject, Unknown::Endpoints | Unknown::Backends);
    cluster.unjudged.iter().filter(is_given)
}

/// Whether a cluster's cloud was recognised by a trace.
fn is_derived_from(cluster: &Cluster, trace: &str) -> bool {
    match &cluster.provider.basis {
        Basis::Derived(from) => from.to_string().contains(trace),
        _ => false,
    }
}

/// What another cloud's load balancers do is not known, and not taken from TKE's.
#[test]
fn another_clouds_load_balancers_are_not_looked_at() {
    const IP: &str = "{ip: 10.0.0.100}";
    let service = |annotations: &str| balanced("web", annotations, "", IP);
    let device = "cis.f5.com/ipamLabel: a";
    let read = cluster(&service(device));
    assert_eq!(read.provider.value, Provider::Cloud(f5::ENTRY.cloud));
    assert_eq!(gaps(&read), [""; 0]);
    assert!(is_derived_from(&read, "cis.f5.com/ipamLabel of Service shop/web"));
    let of_node = balanced("web", "", "", "{ip: 10.0.0.11}");
    let read = cluster(&(of_node + &node_of("k3s://n1")));
    assert_eq!(gaps(&read), [""; 0]);
    assert!(is_derived_from(&read, "providerID k3s:// of Node n1"));
    // A program that takes its place counts more than what its distribution brings.
    let speaker = "---\n{apiVersion: apps/v1, kind: DaemonSet, metadata: {name: speaker, \
                   namespace: metallb-system}, spec: {selector: {matchLabels: {app: a}}, template: \
                   {metadata: {labels: {app: a}}, spec: {containers: [{name: c, image: i}]}}}}\n";
    let read = cluster(&(service("") + &node_of("k3s://n1") + speaker));
    assert!(is_derived_from(&read, "metallb-system/speaker"));
    let read = cluster(&balanced("web", "", "loadBalancerClass: tailscale,", IP));
    assert_eq!(gaps(&read), ["1 load balancer of Tailscale"]);
    let because = &read.unjudged[0].because;
    assert!(because.contains("loadBalancerClass tailscale of Service shop/web"), "{because}");
    let octavia = "openstack:///3f2c";
    let read = cluster(&(service("") + &node_of(octavia)));
    assert!(is_derived_from(&read, "providerID openstack:// of Node n1"));
    // The labels of one that runs its software say more.
    let label =
        node_of(octavia).replace("{name: n1}", "{name: n1, labels: {node.k8s.ovh/type: a}}");
    let read = cluster(&(service("") + &label));
    assert!(is_derived_from(&read, "node.k8s.ovh/type of Node n1"));
    // TKE's own traces say more.
    for own in [
        service(&format!("{device}, service.cloud.tencent.com/direct-access: \"true\"")),
        service("") + &node_of("qcloud:///800002/ins-1"),
    ] {
        let read = cluster(&own);
        assert_eq!((read.provider.value, gaps(&read)), (Provider::Cloud(tke::TKE), Vec::new()));
    }
}

/// One cluster has load balancers of several: the class says it before annotations, these
/// before the status, and the nodes' cloud comes last.
#[test]
fn each_load_balancer_is_of_whoever_makes_it() {
    let text = [
        node_of("aws:///eu-west-1a/i-0123"),
        balanced("class", "metallb.io/address-pool: a", "loadBalancerClass: tailscale,", ""),
        balanced("own-class", "", "loadBalancerClass: example.com/lb,", ""),
        balanced("annotation", "metallb.universe.tf/address-pool: a", "", "{ip: 10.0.0.9}"),
        balanced("status", "", "", "{hostname: a-1.alb.aliyuncs.com}"),
        balanced("nodes", "", "", "{hostname: a-1.elb.eu-west-1.amazonaws.com}"),
    ];
    let read = cluster(&text.concat());
    let found: Vec<(String, String)> =
        of_balancers(&read).map(|gap| (gap.to_string(), gap.objects[0].name.to_string())).collect();
    let expected = [
        ("1 load balancer of Alibaba Cloud ALB", "status"),
        ("1 load balancer of Tailscale", "class"),
        ("1 load balancer of class example.com/lb", "own-class"),
    ];
    assert_eq!(found, expected.map(|(gap, name)| (gap.to_owned(), name.to_owned())));
}

/// Manifests are carried from cloud to cloud: annotations of another cloud's controllers, which
/// serve their own machines, say nothing where the cluster's machines or programs are seen.
#[test]
fn annotations_of_another_cloud_are_not_read() {
    const AWS: &str = "service.beta.kubernetes.io/aws-load-balancer-type: nlb";
    const AZURE: &str = "service.beta.kubernetes.io/azure-load-balancer-internal: \"true\"";
    let service = |notes: &str, status: &str| balanced("web", notes, "", status);
    let speaker = "---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: speaker, namespace: \
                   metallb-system}\nspec: {template: {spec: {}}}\n";
    let address = service(AWS, "{ip: 10.0.0.9}");
    let name = service(AWS, "{hostname: a-1.elb.eu-west-1.amazonaws.com}");
    let expected = [
        (address.clone() + &node_of("k3s://n1"), "K3s ServiceLB"),
        (address.clone() + &node_of("hcloud://1"), "Hetzner Load Balancer"),
        (address.clone() + speaker, "MetalLB"),
        // Its own load balancers have names: something else wrote the address.
        (address.clone() + &node_of("aws:///a/i-1"), "a controller that is not AWS's"),
        (address, "unknown"),
        // The status says that it was served.
        (name + &node_of("k3s://n1"), "AWS NLB"),
        // Nothing tells which of the two it is.
        (service(&format!("{AWS}, {AZURE}"), ""), "unknown"),
    ];
    for (text, expected) in expected {
        let read = cluster(&text);
        let service = read.services.values().next().unwrap();
        let maker = match maker_of(service, &read.provider) {
            Maker::Product(product, _) => product.name().to_owned(),
            Maker::Other(name, _) => name,
            Maker::Unknown => "unknown".to_owned(),
            Maker::Model(_) => "a model".to_owned(),
        };
        assert_eq!(maker, expected, "{:?} for {text}", read.provider);
    }
}

/// Pods on nodes have no address but their nodes'.
#[test]
fn a_status_of_no_node_is_not_of_a_load_balancer_on_nodes() {
    let node = "---\napiVersion: v1\nkind: Node\nmetadata: {name: n1}\nspec: {providerID: 'k3s://n1'}\n\
                status: {addresses: [{type: InternalIP, address: 10.0.0.9}, \
                {type: ExternalIP, address: 192.0.2.9}]}\n";
    let found = |status: &str| gaps(&cluster(&[node, &balanced("web", "", "", status)].concat()));
    for own in ["", "{ip: 10.0.0.9}", "{ip: 192.0.2.9}", "{ip: 10.0.0.9}, {ip: 192.0.2.9}"] {
        assert_eq!(found(own), [""; 0], "{own}");
    }
    let foreign = ["1 load balancer of a controller that is not K3s ServiceLB"];
    for other in ["{ip: 203.0.113.9}", "{ip: 10.0.0.9}, {ip: 203.0.113.9}"] {
        assert_eq!(found(other), foreign, "{other}");
    }
}

/// Ingresses are of their class's controller. One in the cluster has its address from a
/// Service, which can be traced to.
#[test]
fn each_ingress_is_of_its_controller() {
    let ingress = |name: &str, class: &str, status: &str| {
        format!(
            "---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {{name: {name}, namespace: shop}}
spec: {{{class} rules: [{{host: a.example.com}}]}}
status: {{loadBalancer: {{ingress: [{status}]}}}}
"
        )
    };
    let class = |name: &str, controller: &str| {
        format!(
            "---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {{name: {name}}}
spec: {{controller: {controller}}}
"
        )
    };
    let text = [
        node_of("azure:///subscriptions/s/n1"),
        class("public", "k8s.io/ingress-nginx"),
        class("edge", "example.com/edge"),
        ingress("nginx", "ingressClassName: public,", "{ip: 10.0.0.9}"),
        ingress("own", "ingressClassName: edge,", ""),
        ingress("named", "ingressClassName: traefik,", ""),
        ingress("gateway", "ingressClassName: azure-application-gateway,", "{ip: 10.0.0.10}"),
        ingress("none", "", "{ip: 10.0.0.11}"),
        balanced("controller", "", "", "{ip: 10.0.0.9}"),
    ];
    let read = cluster(&text.concat());
    let expected = [
        "1 Ingress that Traefik serves",
        "1 Ingress that an unnamed controller serves",
        "1 Ingress that example.com/edge serves",
        "1 Ingress that ingress-nginx serves",
    ];
    assert_eq!(gaps(&read), expected);
    assert_eq!(
        &*read.unjudged[3].settle,
        "trace to svc/shop/controller, whose pods serve it; or give the Deployment or DaemonSet of the \
         controller, and its Service"
    );
}

/// Nothing names a cloud: none is supposed, and the load balancer is not judged.
#[test]
fn a_load_balancer_without_a_trace_is_of_nobody_known() {
    let service = balanced("a", "", "", "");
    let plain = cluster(&service);
    assert_eq!(plain.provider.value, Provider::Unknown);
    assert_eq!(gaps(&plain), ["1 load balancer of an unknown cloud"]);
    let settle = "state spec.provider in Facts, or for another cloud each port's snat in \
                  spec.loadBalancers";
    assert_eq!(&*plain.unjudged[0].settle, settle);
    assert!(plain.services[&name("shop/a")].load_balancer.is_empty());
    assert!(!is_assumed(&plain, "cloud"));
    let stated = |provider: &str| {
        let facts = "---\napiVersion: uturn.dev/v1alpha1\nkind: Facts\nspec: {provider: ";
        cluster(&format!("{service}{facts}{provider}}}\n"))
    };
    assert_eq!(gaps(&stated("none")), Vec::<String>::new());
    assert_eq!(gaps(&stated("f5")), Vec::<String>::new());
    let tke = stated("tke");
    assert_eq!(gaps(&tke), Vec::<String>::new());
    assert!(!tke.services[&name("shop/a")].load_balancer.is_empty());
}

#[test]
fn facts_give_a_load_balancer_its_address() {
    let text = format!(
        "{PULL_REQUEST}---
apiVersion: uturn.dev/v1alpha1
kind: Facts
spec: {{loadBalancers: [{{vip: 10.0.0.50, listeners: [{{port: 443}}]}}]}}
"
    );
    let cluster = cluster(&text);
    let vip = |ip: Option<std::net::IpAddr>| ip.unwrap().to_string();
    assert_eq!(vip(cluster.ingresses[&name("shop/web")].load_balancer[0].ip), "10.0.0.50");
    assert_eq!(vip(cluster.services[&name("shop/web")].load_balancer[0].ip), "10.0.0.100");
}

#[test]
fn k3s_says_on_its_nodes_how_kube_proxy_is_set() {
    let node = |args: &str| {
        format!(
            "
apiVersion: v1
kind: Node
metadata: {{name: n1, annotations: {{k3s.io/node-args: '{args}'}}}}
spec: {{podCIDR: 10.42.0.0/24}}
status: {{addresses: [{{type: InternalIP, address: 10.0.0.11}}]}}
---
apiVersion: v1
kind: Service
metadata: {{name: a}}
spec: {{clusterIP: 10.43.0.7, ports: [{{port: 80}}]}}
"
        )
    };
    let plain = cluster(&node(r#"["server"]"#));
    assert!(!plain.proxy.mode.is_supposed() && !plain.proxy.detector.is_supposed());
    assert_eq!(plain.proxy.mode.value, ProxyMode::Iptables);
    let ranges = |text: &str| LocalDetector::ClusterCidr(vec![text.parse().unwrap()]);
    assert_eq!(plain.proxy.detector.value, ranges("10.42.0.0/16"));
    let set = r#"["server","--cluster-cidr","10.52.0.0/16","--kube-proxy-arg=proxy-mode=ipvs"]"#;
    let set = cluster(&node(set));
    assert_eq!(set.proxy.mode.value, ProxyMode::Ipvs);
    assert_eq!(set.proxy.detector.value, ranges("10.52.0.0/16"));
    // What is no list of words says nothing.
    assert!(cluster(&node("server")).proxy.mode.is_supposed());
    // Nodes with another range were told of it where the arguments do not show it.
    let moved = cluster(&node(r#"["server"]"#).replace("10.42.0.0/24", "10.244.0.0/24"));
    assert!(moved.proxy.detector.is_supposed());
}

#[test]
fn kube_proxys_arguments_are_all_that_is_set_where_no_file_is_named() {
    let pod = |arguments: &str| {
        format!(
            "
apiVersion: v1
kind: Pod
metadata: {{name: kube-proxy-x, namespace: kube-system, labels: {{k8s-app: kube-proxy}}}}
spec:
  nodeName: n1
  hostNetwork: true
  containers: [{{name: kube-proxy, image: kube-proxy:v1.31.5, command: [kube-proxy, {arguments}]}}]
status: {{phase: Running, podIP: 10.0.0.11}}
---
apiVersion: v1
kind: Service
metadata: {{name: a}}
spec: {{clusterIP: 10.43.0.7, ports: [{{port: 80}}]}}
"
        )
    };
    let read = |arguments: &str| cluster(&pod(arguments)).proxy;
    let plain = read("--v=3, --detect-local-mode=ClusterCIDR, --pod-interface-name-prefix=");
    assert!(!plain.mode.is_supposed());
    assert_eq!(plain.detector.value, LocalDetector::None, "an empty flag is none");
    let prefix = read("--detect-local-mode=InterfaceNamePrefix, --pod-interface-name-prefix=azv");
    assert_eq!(prefix.detector.value, LocalDetector::InterfaceNamePrefix("azv".into()));
    assert!(read("--config=/etc/kube-proxy.conf").mode.is_supposed());
    // A static pod has another label, and perhaps a shell around the program.
    let fixed = |command: &str| {
        let text = pod("--proxy-mode=ipvs, --cluster-cidr=10.44.0.0/16");
        let text = text.replace("k8s-app: kube-proxy", "component: kube-proxy, tier: node");
        let whole = "[kube-proxy, --proxy-mode=ipvs, --cluster-cidr=10.44.0.0/16]";
        assert!(text.contains(whole));
        cluster(&text.replace(whole, command)).proxy
    };
    let ranges = LocalDetector::ClusterCidr(vec!["10.44.0.0/16".parse().unwrap()]);
    for command in [
        "[kube-proxy, --proxy-mode=ipvs, --cluster-cidr=10.44.0.0/16]",
        "[/bin/sh, -c, exec kube-proxy --cluster-cidr=10.44.0.0/16 --proxy-mode=ipvs 1>>/var/log/x 2>&1]",
    ] {
        let read = fixed(command);
        assert!(!read.mode.is_supposed() && read.mode.value == ProxyMode::Ipvs, "{command}");
        assert_eq!(read.detector.value, ranges, "{command}");
    }
}
