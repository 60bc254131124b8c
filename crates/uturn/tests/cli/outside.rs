//! Clients in the network around the nodes that are no nodes, and the addresses of load balancers that
//! have a name only.

use uturn_testing::manifests::{ReadyNode, RunningPod, balanced_service};

use super::common::{Folder, assert_has};

/// The node `nN` of a cluster with flannel, and kube-proxy in iptables mode.
fn node(number: u32) -> String {
    let (address, spec) = (format!("10.0.0.{number}"), format!("podCIDR: 10.244.{number}.0/24"));
    ReadyNode { number, address: &address, spec: &spec, ..ReadyNode::default() }.to_string()
}

const FACTS: &str = "---
apiVersion: uturn.dev/v1alpha1
kind: Facts
spec:
  kubeProxy: {mode: iptables, version: v1.34.0}
  network: {plugin: flannel, podCIDRs: [10.244.0.0/16]}
";

fn pod(name: &str, node: u32) -> String {
    let address = format!("10.244.{node}.9");
    let ports = "{containerPort: 80}";
    RunningPod { name, app: name, node, address: &address, ports, ..RunningPod::default() }
        .to_string()
}

/// A Service whose address a node announces. Its server is on n1.
fn service(notes: &str, spec: &str) -> String {
    balanced_service("10.96.0.3", notes, spec, "{ip: 10.0.0.240}")
}

fn cluster(test: &str, service: &str, more: &str) -> Folder {
    let folder = Folder::new(test);
    let parts = [node(1), node(2), node(3), pod("web", 1), pod("client", 2)].concat();
    folder.file("a.yaml", &[&parts, FACTS, service, more].concat());
    folder
}

const METALLB: &str = "metallb.io/address-pool: a";

/// The clients of a private address are in its own network.
#[test]
fn a_machine_of_the_same_network_is_a_client() {
    let wrong = service(METALLB, "").replace("port: 80,", "port: 80, targetPort: 81,");
    let facts =
        "---\napiVersion: uturn.dev/v1alpha1\nkind: Facts\nspec: {declaredPortsOnly: true}\n";
    let printed = cluster("outside-near", &wrong, facts).run(&["scan", "-f", ".", "-o", "wide"]);
    assert_has(&printed, &["exit 1\n", "outside in the same network", "wrong-port"]);
    let sctp = service(METALLB, "").replace("port: 80,", "port: 80, protocol: SCTP,");
    for well in [service(METALLB, ""), sctp] {
        let printed = cluster("outside-near-fine", &well, "").run(&["scan", "-f", "."]);
        assert_has(&printed, &["exit 0\n--- stdout\nnothing found; "]);
    }
}

/// Only clients that the Service lets in are asked for: some of that network, or none of it.
#[test]
fn clients_that_source_ranges_keep_out_are_not_missed() {
    for ranges in ["10.0.0.128/25", "10.0.3.0/24", "192.168.0.0/16", "10.0.0.0/8, 10.244.0.0/16"] {
        let own = service(METALLB, &format!("loadBalancerSourceRanges: [{ranges}]"));
        let printed = cluster("outside-ranges", &own, "").run(&["scan", "-f", "."]);
        assert!(!printed.contains("outside"), "{ranges}: {printed}");
    }
}

/// The same of a public address. Pods are kept out too, which is the Service's doing and no node's.
#[test]
fn source_ranges_of_a_public_address() {
    for mode in ["iptables", "nftables", "ipvs"] {
        let own = service(METALLB, "loadBalancerSourceRanges: [203.0.113.0/24]")
            .replace("10.0.0.240", "34.1.1.1");
        let folder = cluster(&format!("outside-ranges-{mode}"), &own, "");
        let text = std::fs::read_to_string(folder.0.join("a.yaml")).unwrap();
        folder.file("a.yaml", &text.replace("mode: iptables", &format!("mode: {mode}")));
        let printed = folder.run(&["scan", "-f", "."]);
        assert!(!printed.contains("outside"), "{mode}: {printed}");
        assert!(!printed.contains("Node/"), "{mode}: {printed}");
        assert_has(&printed, &["svc/shop/web 34.1.1.1:80", "(firewall)", "call svc/shop/web:80"]);
    }
}

/// A client outside that names a Service calls its load balancer: no cluster IP is known there.
#[test]
fn a_service_is_called_at_its_load_balancer_from_outside() {
    let folder = cluster("outside-by-name", &service(METALLB, ""), "");
    for port in ["", ":80"] {
        let to = format!("svc/shop/web{port}");
        let from = "outside/10.0.0.200";
        let printed = folder.run(&["trace", "-f", ".", "--from", from, "--to", &to]);
        assert_has(
            &printed,
            &[
                &format!("exit 0\n--- stdout\nanswered at once\n{from} → {to} (TCP)\n"),
                "10.0.0.200:40000 → 10.0.0.240:80",
            ],
        );
    }
}

/// A port that the Service lacks is called at its load balancer too, and what has no address yet, or
/// one that is not given, is not called at the cluster IP instead.
#[test]
fn ports_and_addresses_that_a_load_balancer_lacks() {
    let from_outside = |folder: &Folder, to: &str| {
        folder.run(&["trace", "-f", ".", "--from", "outside/10.0.0.200", "--to", to])
    };
    let folder = cluster("outside-no-port", &service(METALLB, ""), "");
    let printed = from_outside(&folder, "svc/shop/web:81");
    assert_has(&printed, &["exit 1\n", "10.0.0.200:40000 → 10.0.0.240:81"]);
    let printed = from_outside(&folder, "svc/shop/web:metrics");
    assert_has(&printed, &["exit 2\n", "svc/shop/web has no port metrics"]);

    let pending = service(METALLB, "").replace("{ingress: [{ip: 10.0.0.240}]}", "{}");
    let printed = from_outside(&cluster("outside-pending", &pending, ""), "svc/shop/web");
    assert_has(&printed, &["exit 2\n", "Service shop/web has no address yet"]);

    let named = service(METALLB, "").replace("ip: 10.0.0.240", "hostname: lb.example.com");
    let printed = from_outside(&cluster("outside-named", &named, ""), "svc/shop/web");
    assert_has(&printed, &["exit 0\n--- stdout\nnot known ", "is not modelled"]);
    assert!(!printed.contains("0.0.0.0:0") && !printed.contains("10.96.0.3"), "{printed}");
}

/// A mode that the stated release lacks is an error that says so.
#[test]
fn a_mode_that_the_release_lacks() {
    let folder = cluster("outside-no-mode", &service(METALLB, ""), "");
    let text = std::fs::read_to_string(folder.0.join("a.yaml")).unwrap();
    let stated = "kubeProxy: {mode: nftables, version: v1.29.4}";
    let text = text.replace("kubeProxy: {mode: iptables, version: v1.34.0}", stated);
    folder.file("a.yaml", &text);
    let printed = folder.run(&["scan", "-f", "."]);
    assert!(printed.starts_with("exit 3\n"), "{printed}");
    assert_has(&printed, &["kube-proxy v1.29.4 has no nftables mode"]);
}

const KUBE_VIP: &str = "kube-vip.io/loadbalancerIPs: 10.0.0.240";

fn lease(namespace: &str, name: &str, holder: &str) -> String {
    format!(
        "---
apiVersion: coordination.k8s.io/v1
kind: Lease
metadata: {{name: {name}, namespace: {namespace}}}
spec: {{holderIdentity: {holder}}}
"
    )
}

/// Under policy Local, what reaches a node without a pod is dropped there, and one node has the address.
#[test]
fn what_is_sent_to_a_holder_without_a_pod_is_lost() {
    const LOCAL: &str = "externalTrafficPolicy: Local";
    let host = |node: &str| format!("{KUBE_VIP}, kube-vip.io/vipHost: {node}");
    let cilium = "io.cilium/lb-ipam-ips: 10.0.0.240";
    let common = |node: &str| lease("kube-system", "plndr-svcs-lock", node);
    let own = |node: &str| lease("shop", "kubevip-web", node);
    let of_cilium = |node: &str| lease("kube-system", "cilium-l2announce-shop-web", node);
    let cases = [
        (host("n3"), String::new(), false),
        (host("n1"), String::new(), true),
        (KUBE_VIP.to_owned(), common("n3"), false),
        (KUBE_VIP.to_owned(), common("n1"), true),
        // One that is elected for each Service wins; a node that is gone holds nothing.
        (KUBE_VIP.to_owned(), common("n3") + &own("n1"), true),
        (host("n9"), String::new(), true),
        (cilium.to_owned(), of_cilium("n3"), false),
        (cilium.to_owned(), of_cilium("n1"), true),
        (cilium.to_owned(), common("n3"), true),
    ];
    for (notes, leases, is_fine) in cases {
        let folder = cluster("outside-holder", &service(&notes, LOCAL), &leases);
        let to = ["--from", "outside/10.0.0.200", "--to", "10.0.0.240:80"];
        let traced = folder.run(&[&["trace", "-f", "."][..], &to].concat());
        let scanned = folder.run(&["scan", "-f", ".", "-o", "wide"]);
        assert!(!scanned.contains("not needed"), "{scanned}");
        if is_fine {
            assert_has(&traced, &["exit 0\n--- stdout\nanswered at once\n"]);
        } else {
            assert_has(&traced, &["exit 1\n", "hangs   UT311 no-endpoint\n"]);
            assert_has(&scanned, &["always hangs", "outside in the same network", "no-endpoint"]);
        }
        // Under policy Cluster each node serves.
        let folder = cluster("outside-holder-cluster", &service(&notes, ""), &leases);
        assert_has(&folder.run(&["scan", "-f", "."]), &["exit 0\n--- stdout\nnothing found; "]);
    }
}

/// A cluster of IPv6: the name of its load balancer has an address that pods can call, and that has
/// targets.
#[test]
fn a_name_has_ipv6_addresses_where_the_servers_have_no_other() {
    let node = |number: u32| {
        ReadyNode {
            number,
            address: &format!("10.0.0.{number}"),
            labels: "topology.kubernetes.io/zone: eu-west-1a",
            spec: &format!("providerID: aws:///eu-west-1a/i-{number}"),
            more_addresses: &format!(", {{type: InternalIP, address: \"2a05:d018:1::{number}\"}}"),
        }
        .to_string()
    };
    let pod = |name: &str, number: u32| {
        let own = pod(name, number);
        own.replace(&format!("10.244.{number}.9"), &format!("\"2a05:d018:1:{number}::9\""))
    };
    let notes = |scheme: &str| {
        let key = "service.beta.kubernetes.io/aws-load-balancer-";
        format!(
            "{key}type: external, {key}nlb-target-type: ip, {key}scheme: {scheme}, {key}ip-address-type: dualstack"
        )
    };
    const NLB: &str = "k8s-shop-web-0123456789.elb.eu-west-1.amazonaws.com";
    const ALB: &str = "k8s-shop-shop-0123456789-12345.eu-west-1.elb.amazonaws.com";
    let ingress = format!(
        "---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata:
  name: shop
  namespace: shop
  annotations: {{alb.ingress.kubernetes.io/scheme: internal, alb.ingress.kubernetes.io/target-type: ip, alb.ingress.kubernetes.io/ip-address-type: dualstack}}
spec: {{ingressClassName: alb, defaultBackend: {{service: {{name: web, port: {{number: 80}}}}}}}}
status: {{loadBalancer: {{ingress: [{{hostname: {ALB}}}]}}}}
"
    );
    for scheme in ["internal", "internet-facing"] {
        let service = service(&notes(scheme), "ipFamilies: [IPv6]")
            .replace("10.96.0.3", "\"fd73:1::3\"")
            .replace("{ip: 10.0.0.240}", &format!("{{hostname: {NLB}}}"));
        let folder = Folder::new("outside-v6");
        let parts = [node(1), node(2), pod("web", 1), pod("client", 2), service, ingress.clone()];
        folder.file("a.yaml", &parts.concat());
        let scanned = folder.run(&["scan", "-f", ".", "-o", "wide"]);
        assert_has(&scanned, &["exit 0\n--- stdout\nnothing found; "]);
        for host in [NLB, ALB] {
            let to = format!("{host}:80");
            for from in ["pod/shop/client", "outside"] {
                let traced = folder.run(&["trace", "-f", ".", "--from", from, "--to", &to]);
                assert_has(&traced, &["exit 0\n--- stdout\nanswered at once\n"]);
            }
        }
    }
}
