//! Clusters that are well although something in them looks like a fault, each beside one that has
//! the fault.

use uturn_testing::manifests::{ReadyNode, RunningPod, balanced_service};

use super::common::{Folder, assert_found};

/// Two nodes of a cloud, with these labels. A server and a client are on n1, a client on n2.
fn nodes_and_pods(provider_id: &str, labels: &str) -> String {
    let node = |number: u32| {
        let spec = format!("podCIDR: 10.244.{number}.0/24, providerID: \"{provider_id}\"");
        let address = format!("10.0.0.{number}");
        ReadyNode { number, address: &address, labels, spec: &spec, more_addresses: "" }.to_string()
    };
    let pod = |name: &str, node: u32, at: u8| pod(name, "c", node, at, "{containerPort: 80}");
    [node(1), node(2), pod("web", 1, 9), pod("client", 1, 8), pod("other", 2, 7), FACTS.to_owned()]
        .concat()
}

const FACTS: &str = "---
apiVersion: uturn.dev/v1alpha1
kind: Facts
spec:
  kubeProxy: {mode: iptables, version: v1.34.0}
  network: {plugin: flannel, podCIDRs: [10.244.0.0/16], vpcCIDRs: [10.0.0.0/16]}
";

/// A pod that listens on a port.
fn pod(name: &str, image: &str, node: u32, at: u8, ports: &str) -> String {
    let address = &format!("10.244.{node}.{at}");
    RunningPod { name, app: name, node, address, image, ports, ..RunningPod::default() }.to_string()
}

/// The Service of the server, of type LoadBalancer.
fn service(notes: &str, spec: &str, status: &str) -> String {
    balanced_service("10.96.0.3", notes, spec, &format!("{{{status}}}"))
}

/// A program with these arguments.
fn program(kind: &str, image: &str, arguments: &str) -> String {
    format!(
        "---
apiVersion: apps/v1
kind: {kind}
metadata: {{name: program, namespace: metal}}
spec:
  selector: {{matchLabels: {{app: program}}}}
  template:
    metadata: {{labels: {{app: program}}}}
    spec:
      hostNetwork: true
      containers: [{{name: c, image: \"{image}\", args: [{arguments}]}}]
"
    )
}

fn scan(test: &str, parts: &[String]) -> String {
    Folder::of(test, parts).run(&["scan", "-f", "."])
}

#[track_caller]
fn assert_well(printed: &str) {
    assert!(printed.starts_with("exit 0\n--- stdout\nnothing found; "), "{printed}");
}

/// The label that kubeadm puts on nodes of the control plane is for controllers of clouds. What
/// announces addresses from nodes may read it or not.
#[test]
fn nodes_that_are_excluded_from_load_balancers_announce_addresses() {
    const EXCLUDED: &str = "node.kubernetes.io/exclude-from-external-load-balancers: ''";
    let announced = |test: &str, class: &str, more: String| {
        let class = format!("loadBalancerClass: {class}");
        let service = service("", &class, "ip: 10.0.0.240");
        let parts = [nodes_and_pods("", EXCLUDED), service, more];
        let folder = Folder::of(test, &parts);
        let to = ["--from", "outside/10.0.0.200", "--to", "10.0.0.240:80"];
        let traced = folder.run(&[&["trace", "-f", "."][..], &to].concat());
        (folder.run(&["scan", "-f", "."]), folder.run(&["scan", "-f", ".", "-o", "json"]), traced)
    };
    let image = |version: &str| format!("registry:5000/metallb/speaker:{version}");
    let speaker = |arguments: &str| program("DaemonSet", &image("v0.14.5"), arguments);
    let well = [
        ("healthy-kube-vip", "kube-vip.io/kube-vip-class", String::new()),
        ("healthy-cilium", "io.cilium/l2-announcer", String::new()),
        ("healthy-metallb-on", "metallb.io/metallb", speaker("--port=7472, --ignore-exclude-lb")),
        ("healthy-metallb-true", "metallb.io/metallb", speaker("--ignore-exclude-lb=true")),
        // An older release knows no such nodes.
        (
            "healthy-metallb-old",
            "metallb.io/metallb",
            program("DaemonSet", &image("v0.13.12"), "--port=7472"),
        ),
    ];
    for (test, class, more) in well {
        let (scanned, _, traced) = announced(test, class, more);
        assert_well(&scanned);
        assert!(traced.starts_with("exit 0\n--- stdout\nanswered at once\n"), "{class}: {traced}");
    }
    let excluded = [
        ("healthy-metallb", "metallb.io/metallb", speaker("--port=7472")),
        ("healthy-metallb-off", "metallb.io/metallb", speaker("--ignore-exclude-lb=false")),
        // Another program's argument.
        (
            "healthy-metallb-other",
            "metallb.io/metallb",
            program("DaemonSet", "registry/other:v1", "--ignore-exclude-lb"),
        ),
    ];
    for (test, class, more) in excluded {
        let (scanned, evidence, traced) = announced(test, class, more);
        assert_found(&scanned, 1, &["UT203"]);
        let label = "the label node.kubernetes.io/exclude-from-external-load-balancers keeps node";
        assert_found(&evidence, 1, &[label]);
        assert_found(&traced, 1, &["hangs", "has no target"]);
    }
}

const NLB: &str = "hostname: k8s-shop-web-0123.elb.eu-central-1.amazonaws.com";
const ON_AWS: &str = "aws:///eu-central-1a/i-0";
const AUTO_MODE: &str = "loadBalancerClass: eks.amazonaws.com/nlb";
const INSTALLED: &str = "loadBalancerClass: service.k8s.aws/nlb";

fn scan_on_aws(test: &str, notes: &str, class: &str, more: &str) -> String {
    const SCHEME: &str = "service.beta.kubernetes.io/aws-load-balancer-scheme: internal";
    let notes = if notes.is_empty() { SCHEME.to_owned() } else { format!("{SCHEME}, {notes}") };
    let parts = [nodes_and_pods(ON_AWS, ""), service(&notes, class, NLB), more.to_owned()];
    scan(test, &parts.map(|part| on_network(&part)))
}

/// The same with pods that have addresses of the network around the nodes, so that load balancers
/// reach them.
fn on_network(text: &str) -> String {
    text.replace("plugin: flannel", "plugin: unknown")
        .replace("10.244.0.0/16", "10.0.128.0/17")
        .replace("10.244.", "10.0.13")
}

/// Which targets a Network Load Balancer has that nothing else asks for is up to its controller.
#[test]
fn pods_are_the_targets_where_the_controller_takes_them_by_default() {
    const NODES: &str = "service.beta.kubernetes.io/aws-load-balancer-nlb-target-type: instance";
    let controller = |arguments: &str| {
        let image = "public.ecr.aws/eks/aws-load-balancer-controller:v2.8.2";
        program("Deployment", image, arguments)
    };
    let pods = controller("--cluster-name=x, --default-target-type=ip");
    let nodes = controller("--cluster-name=x, --default-target-type=instance");
    assert_well(&scan_on_aws("healthy-auto-mode", "", AUTO_MODE, ""));
    assert_well(&scan_on_aws("healthy-default-ip", "", INSTALLED, &pods));
    for (test, notes, class, more) in [
        ("healthy-auto-mode-nodes", NODES, AUTO_MODE, ""),
        ("healthy-auto-mode-apart", "", INSTALLED, ""),
        ("healthy-default-nodes", "", INSTALLED, &*nodes),
        ("healthy-default-overruled", NODES, INSTALLED, &*pods),
    ] {
        assert_found(&scan_on_aws(test, notes, class, more), 1, &["UT102", "asymmetric-return"]);
    }
}

/// EKS Auto Mode does not read the annotation that asks the installed controller for headers, and
/// reads the attribute.
#[test]
fn auto_mode_sends_headers_where_an_attribute_asks_for_them() {
    const ANNOTATED: &str = "service.beta.kubernetes.io/aws-load-balancer-proxy-protocol: '*'";
    const ATTRIBUTE: &str = "service.beta.kubernetes.io/aws-load-balancer-target-group-attributes: \
         proxy_protocol_v2.enabled=true";
    assert_well(&scan_on_aws("healthy-auto-mode-header", ANNOTATED, AUTO_MODE, ""));
    let asked = scan_on_aws("healthy-auto-mode-attribute", ATTRIBUTE, AUTO_MODE, "");
    assert_found(&asked, 0, &["UT108"]);
}

/// A load balancer that sends PROXY headers does not tell that servers want them on each connection:
/// some take both. What is concluded from it is conditional, and fails no build.
#[test]
fn servers_whose_settings_are_not_known_may_take_connections_without_a_header() {
    const HEADER: &str = "service.beta.kubernetes.io/linode-loadbalancer-proxy-protocol: v2";
    let parts = [nodes_and_pods("linode://1", ""), service(HEADER, "", "ip: 172.104.1.1")];
    let folder = Folder::of("healthy-header", &parts);
    let printed = folder.run(&["scan", "-f", ".", "-o", "wide"]);
    let condition = "its pods expect a PROXY header";
    assert_found(&printed, 0, &["UT108", &format!("if {condition}")]);
    let supposed = "\nsupposed: whether the pods of the Service expect a PROXY header: they do (";
    assert_found(&printed, 0, &[supposed]);
    let each = folder.run(&["scan", "-f", ".", "--exhaustive", "-o", "wide"]);
    assert_found(&each, 0, &["UT108", &format!("if {condition}")]);
    // Who wants warnings to fail gets them.
    assert_found(&folder.run(&["scan", "-f", ".", "--fail-on", "warning"]), 1, &["UT108"]);
}

/// Where the settings are read, nothing is supposed.
#[test]
fn a_controller_that_is_set_to_expect_a_header_is_known_to() {
    const HEADER: &str = "service.beta.kubernetes.io/linode-loadbalancer-proxy-protocol: v2";
    let settings = "---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
data: {use-proxy-protocol: 'true'}
";
    let parts = [
        ingress_nginx("linode://1"),
        service(HEADER, "", "ip: 172.104.1.1"),
        settings.to_owned(),
        ingress("ip: 172.104.1.1"),
    ];
    let printed = scan("healthy-header-known", &parts);
    assert_found(&printed, 1, &["UT108"]);
    assert!(!printed.contains("expect a PROXY header"), "{printed}");
}

/// Two nodes and ingress-nginx in place of the server.
fn ingress_nginx(provider_id: &str) -> String {
    let image = "registry.k8s.io/ingress-nginx/controller:v1.9.5";
    let ports = "{containerPort: 80, name: http}, {containerPort: 443, name: https}";
    let plain = pod("web", "c", 1, 9, "{containerPort: 80}");
    let arguments = format!(
        "{image}, args: [/nginx-ingress-controller, --controller-class=k8s.io/ingress-nginx, \
         --configmap=shop/settings, --publish-service=shop/web]"
    );
    let controller = pod("web", &arguments, 1, 9, ports);
    let class = "---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: nginx}
spec: {controller: k8s.io/ingress-nginx}
";
    nodes_and_pods(provider_id, "").replace(&plain, &controller)
        + class
        + &pod("backend", "c", 2, 6, "{containerPort: 8080}")
        + "---
apiVersion: v1
kind: Service
metadata: {name: backend, namespace: shop}
spec: {clusterIP: 10.96.0.4, selector: {app: backend}, ports: [{port: 80, targetPort: 8080}]}
"
}

/// An Ingress of that controller, with this address.
fn ingress(status: &str) -> String {
    format!(
        "---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {{name: shop, namespace: shop}}
spec:
  ingressClassName: nginx
  rules:
  - host: shop.example.com
    http:
      paths:
      - path: /
        pathType: Prefix
        backend: {{service: {{name: backend, port: {{number: 80}}}}}}
status: {{loadBalancer: {{ingress: [{{{status}}}]}}}}
"
    )
}

/// TLS ends at a load balancer on layer 4, and a controller behind it serves hosts. It has no rule for
/// the bare address, which nobody asks for. One that closes the connections is still found.
#[test]
fn nobody_asks_for_the_address_of_a_balancer_before_a_controller() {
    const TLS: &str = "service.beta.kubernetes.io/aws-load-balancer-type: external, \
         service.beta.kubernetes.io/aws-load-balancer-nlb-target-type: ip, \
         service.beta.kubernetes.io/aws-load-balancer-scheme: internet-facing, \
         service.beta.kubernetes.io/aws-load-balancer-ssl-cert: 'arn:aws:acm:x', \
         service.beta.kubernetes.io/aws-load-balancer-ssl-ports: '443'";
    let settings = "---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: shop}
";
    let balancer = service(TLS, "", NLB).replace(
        "{port: 80, nodePort: 30080}",
        "{name: http, port: 80, targetPort: http, nodePort: 30080}, {name: https, port: 443, \
         targetPort: http, nodePort: 30443}",
    );
    assert!(balancer.contains("30443"));
    let parts = [ingress_nginx(ON_AWS), balancer, settings.to_owned(), ingress(NLB)];
    let parts = parts.map(|part| on_network(&part));
    let folder = Folder::of("healthy-tls", &parts);
    assert_well(&folder.run(&["scan", "-f", "."]));
    let to = ["--from", "outside", "--to", "https://198.18.0.200/"];
    assert_found(&folder.run(&[&["trace", "-f", "."][..], &to].concat()), 1, &["404", "UT401"]);
    let parts = parts.map(|part| {
        if part == settings {
            format!("{part}data: {{use-proxy-protocol: 'true'}}\n")
        } else {
            part
        }
    });
    assert_found(&scan("healthy-tls-lost", &parts), 1, &["outside", "UT108"]);
}
