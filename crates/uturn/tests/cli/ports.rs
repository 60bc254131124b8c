//! Undeclared ports: to declare a port is voluntary, so a pod listens where it is called, unless
//! Facts state that containers listen on declared ports only.

use super::common::Folder;

/// A Service that calls its pods at one port, and a client. The pods' one container has these
/// fields beside its name.
fn cluster(target: &str, container: &str) -> String {
    format!(
        "apiVersion: v1
kind: Service
metadata: {{name: web, namespace: shop}}
spec:
  selector: {{app: web}}
  ports: [{{name: http, port: 80, targetPort: {target}}}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: web, namespace: shop}}
spec:
  selector: {{matchLabels: {{app: web}}}}
  template:
    metadata: {{labels: {{app: web}}}}
    spec: {{containers: [{{name: web, image: web, {container}}}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: client, namespace: shop}}
spec:
  selector: {{matchLabels: {{app: client}}}}
  template:
    metadata: {{labels: {{app: client}}}}
    spec: {{containers: [{{name: client, image: client}}]}}
"
    )
}

const ONLY_DECLARED: &str = "---
apiVersion: uturn.dev/v1alpha1
kind: Facts
spec: {declaredPortsOnly: true}
";

const TRACE: [&str; 7] =
    ["trace", "-f", ".", "--from", "deploy/shop/client", "--to", "svc/shop/web"];

#[test]
fn a_port_that_is_not_declared_is_listened_on() {
    let folder = Folder::new("ports-undeclared");
    folder.file("a.yaml", &cluster("3000", "ports: [{containerPort: 9090}]"));
    let scan = folder.run(&["scan", "-q", "-f", "."]);
    assert!(scan.starts_with("exit 0\n--- stdout\nnothing found; "), "{scan}");
    let trace = folder.run(&TRACE);
    assert!(trace.starts_with("exit 0\n--- stdout\nanswered at once\n"), "{trace}");
    assert!(trace.contains("is supposed to listen here, though it does not declare"), "{trace}");
    let check = folder.run(&["check", "service", "shop/web", "-f", "."]);
    assert!(check.starts_with("exit 0\n"), "{check}");
    assert!(check.contains("unknown spec.ports lead where pods listen"), "{check}");
    // Where it is stated that nothing else is listened on, it is refused.
    folder.file("facts.yaml", ONLY_DECLARED);
    let scan = folder.run(&["scan", "-q", "-f", "."]);
    assert!(scan.starts_with("exit 1\n") && scan.contains("UT312"), "{scan}");
    let trace = folder.run(&TRACE);
    assert!(trace.starts_with("exit 1\n--- stdout\nrefused   UT312 wrong-port\n"), "{trace}");
    assert!(folder.run(&["check", "service", "shop/web", "-f", "."]).starts_with("exit 1\n"));
}

#[test]
fn a_port_that_is_almost_declared_is_a_hint() {
    let folder = Folder::new("ports-hint");
    let scan = |target: &str, container: &str| {
        folder.file("a.yaml", &cluster(target, container));
        folder.run(&["scan", "-q", "-f", ".", "-o", "wide"])
    };
    let hint = scan("8008", "ports: [{containerPort: 8080}]");
    assert!(hint.starts_with("exit 0\n") && hint.contains("\n1 finding (1 info); "), "{hint}");
    assert!(hint.contains("(if nothing listens on 8008)"), "{hint}");
    assert!(hint.contains("and 8080 is: is that what is meant?"), "{hint}");
    // The same name, and a number that is not.
    let hint = scan("9000", "ports: [{name: http, containerPort: 3000}]");
    assert!(hint.contains("and 3000 (http) is: is that what is meant?"), "{hint}");
    for (target, container) in [
        ("8081", "ports: [{containerPort: 8080}]"),
        ("8080", "ports: [{containerPort: 8080}, {containerPort: 8008}]"),
        // The kubelet asks there, so it listens.
        ("8008", "ports: [{containerPort: 8080}], readinessProbe: {httpGet: {port: 8008}}"),
        ("8008", "ports: [{containerPort: 8080}], livenessProbe: {tcpSocket: {port: 8008}}"),
        // It is told to.
        ("8008", "ports: [{containerPort: 8080}], args: ['--listen=0.0.0.0:8008']"),
        ("8008", "ports: [{containerPort: 8080}], command: [serve, -p, '8008']"),
        ("8008", "ports: [{containerPort: 8080}], env: [{name: ADDRESS, value: ':8008'}]"),
        // Where a program without privileges listens, whatever its image declares.
        ("8080", "ports: [{name: http, containerPort: 80}]"),
        // A container that declares no port may be the one that is called.
        ("8008", "ports: [{containerPort: 8080}]}, {name: proxy, image: proxy"),
    ] {
        let none = scan(target, container);
        assert!(none.contains("\nnothing found; "), "{target} {container}: {none}");
    }
}

/// A declared port that the Service leads to already is not the one that is meant.
#[test]
fn a_port_that_another_port_leads_to_is_no_hint() {
    let folder = Folder::new("ports-two");
    let one = cluster("18888", "ports: [{containerPort: 8888}]");
    folder.file("a.yaml", &one);
    let scan = ["scan", "-q", "-f", ".", "-o", "wide"];
    let hint = folder.run(&scan);
    assert!(hint.contains("and 8888 is: is that what is meant?"), "{hint}");
    let two = one.replace(
        "ports: [{name: http, port: 80,",
        "ports: [{name: web, port: 8888}, {name: http, port: 80,",
    );
    assert_ne!(one, two);
    folder.file("a.yaml", &two);
    let none = folder.run(&scan);
    assert!(none.contains("\nnothing found; "), "{none}");
}

/// No cure edits what works: it is the page that asks.
#[test]
fn a_hint_has_no_cure() {
    let folder = Folder::new("ports-no-cure");
    folder.file("a.yaml", &cluster("8008", "ports: [{containerPort: 8080}]"));
    let json = folder.run(&["scan", "-q", "-f", ".", "-o", "json"]);
    assert!(json.contains("\"code\": \"UT312\"") && json.contains("\"cures\": []"), "{json}");
    assert!(json.contains("\"severity\": \"info\""), "{json}");
    let cure = folder.run(&["cure", "UT312", "shop/web", "-f", "."]);
    assert!(!cure.contains("targetPort: 8080"), "{cure}");
}

/// Endpoints at a node's address are of programs that listen there, declared or not; what else
/// listens on a node is not known.
#[test]
fn programs_of_nodes_listen_where_endpoints_say() {
    let folder = Folder::new("ports-host");
    let node = "---
apiVersion: v1
kind: Node
metadata: {name: n1}
spec: {podCIDR: 10.1.1.0/24}
status: {addresses: [{type: InternalIP, address: 10.0.0.11}]}
";
    let api = "---
apiVersion: v1
kind: Service
metadata: {name: kubernetes, namespace: default}
spec: {clusterIP: 172.16.0.1, ports: [{name: https, port: 443, targetPort: 6443}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: kubernetes, namespace: default, labels: {kubernetes.io/service-name: kubernetes}}
addressType: IPv4
ports: [{name: https, port: 6443}]
endpoints: [{addresses: [10.0.0.11]}]
";
    let of_host = "hostNetwork: true, containers: [{name: web,";
    let web = cluster("9100", "ports: [{containerPort: 9200}]");
    let web = web.replacen("containers: [{name: web,", of_host, 1);
    folder.file("a.yaml", &[node, api, "---\n", &web].concat());
    let scan = folder.run(&["scan", "-q", "-f", "."]);
    assert!(scan.starts_with("exit 0\n--- stdout\nnothing found; "), "{scan}");
    let to = |to: &str| {
        let trace = ["trace", "-f", ".", "--from", "deploy/shop/client", "--to", to];
        folder.run(&trace)
    };
    assert!(to("10.0.0.11:22").starts_with("exit 0\n--- stdout\nnot known   UT902 not-given\n"));
    // No program of the node listens on a port of the NodePort range.
    assert!(to("10.0.0.11:30999").starts_with("exit 1\n--- stdout\nrefused   UT312 wrong-port\n"));
}

/// That a port speaks no TLS is said of those only whose name or number says it.
#[test]
fn tls_is_not_refused_on_a_guess() {
    let folder = Folder::new("ports-tls");
    let to = "https://web.shop:80/";
    let trace = ["trace", "-f", ".", "--from", "deploy/shop/client", "--to", to];
    folder.file("a.yaml", &cluster("3000", "ports: [{containerPort: 3000}]"));
    assert!(folder.run(&trace).starts_with("exit 0\n--- stdout\nanswered at once\n"));
    folder.file("a.yaml", &cluster("3000", "ports: [{name: http, containerPort: 3000}]"));
    assert!(folder.run(&trace).starts_with("exit 1\n--- stdout\nTLS error"));
}

/// CoreDNS may serve a cluster's domain that has another name.
#[test]
fn another_domain_of_the_cluster_is_no_fault_of_its_dns() {
    let folder = Folder::new("ports-domain");
    let corefile = "---
apiVersion: v1
kind: ConfigMap
metadata: {name: coredns, namespace: kube-system}
data:
  Corefile: |
    .:53 {
        kubernetes corp.internal in-addr.arpa ip6.arpa {
            fallthrough in-addr.arpa ip6.arpa
        }
        forward . /etc/resolv.conf
    }
";
    let web = cluster("3000", "ports: [{containerPort: 3000}]");
    folder.file("a.yaml", &[&web, corefile].concat());
    let scan = folder.run(&["scan", "-q", "-f", ".", "-o", "wide"]);
    assert!(scan.starts_with("exit 0\n--- stdout\nnothing found; "), "{scan}");
    assert!(scan.contains("\nsupposed: the cluster's domain: corp.internal ("), "{scan}");
    // Stated otherwise, no Service has its name.
    let stated = "---
apiVersion: uturn.dev/v1alpha1
kind: Facts
spec: {dns: {domain: cluster.local}}
";
    folder.file("b.yaml", stated);
    let scan = folder.run(&["scan", "-q", "-f", "."]);
    assert!(scan.starts_with("exit 1\n") && scan.contains("UT501"), "{scan}");
}

#[test]
fn a_port_of_another_protocol_alone_is_called_by_that() {
    let folder = Folder::new("ports-udp");
    let udp = "port: 80, protocol: UDP, targetPort";
    folder.file("a.yaml", &cluster("3000", "").replace("port: 80, targetPort", udp));
    let trace = folder.run(&TRACE);
    assert!(trace.starts_with("exit 0\n--- stdout\nanswered at once\n"), "{trace}");
    assert!(trace.contains("deploy/shop/client → svc/shop/web (UDP)\n"), "{trace}");
    // Whoever names the protocol gets it.
    let tcp = folder.run(&[&TRACE[..], &["--proto", "tcp"]].concat());
    assert!(tcp.starts_with("exit 1\n--- stdout\n"), "{tcp}");
    assert!(tcp.contains("svc/shop/web (TCP)\n"), "{tcp}");
    // A port that has both is called by TCP.
    let both = "port: 80, protocol: UDP, targetPort: 3000}, {name: tcp, port: 80, targetPort";
    folder.file("a.yaml", &cluster("3000", "").replace("port: 80, targetPort", both));
    assert!(folder.run(&TRACE).contains("svc/shop/web (TCP)\n"));
}
