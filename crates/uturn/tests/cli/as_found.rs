//! Manifests as clusters and public repositories have them: what is unusual about them is no fault,
//! and what is not known is not judged.

use std::fs;

use uturn_testing::manifests::RunningPod;

use super::common::{Folder, assert_printed};

const FACTS: &str = "---
apiVersion: uturn.dev/v1alpha1
kind: Facts
spec:
  kubeProxy: {mode: MODE, version: VERSION}
  network: {plugin: flannel, podCIDRs: [10.244.0.0/16]}
";

pub(super) fn facts(mode: &str, version: &str) -> String {
    FACTS.replace("MODE", mode).replace("VERSION", version)
}

fn node(number: u8, labels: &str) -> String {
    format!(
        "---
apiVersion: v1
kind: Node
metadata: {{name: n{number}, labels: {{{labels}}}}}
spec: {{podCIDR: 10.244.{number}.0/24}}
status:
  addresses: [{{type: InternalIP, address: 192.168.1.2{number}}}]
  conditions: [{{type: Ready, status: \"True\"}}]
"
    )
}

/// Two nodes.
pub(super) fn nodes() -> String {
    [node(1, ""), node(2, "")].concat()
}

/// A pod that declares a port.
pub(super) fn pod(name: &str, node: u32, port: &str) -> String {
    RunningPod {
        namespace: "default",
        name,
        app: name,
        node,
        address: &format!("10.244.{node}.9"),
        ports: &format!("{{{port}}}"),
        ..RunningPod::default()
    }
    .to_string()
}

pub(super) fn service(name: &str, notes: &str, spec: &str, status: &str) -> String {
    format!(
        "---
apiVersion: v1
kind: Service
metadata: {{name: {name}, namespace: default, annotations: {{{notes}}}}}
spec: {{{spec}}}
status: {{loadBalancer: {{ingress: [{status}]}}}}
"
    )
}

/// The server's Service, with a load balancer at these addresses.
fn balanced(notes: &str, spec: &str, status: &str) -> String {
    let spec = format!(
        "type: LoadBalancer, clusterIP: 10.96.1.1, selector: {{app: web}}, {spec} \
         ports: [{{port: 80, nodePort: 30080}}]"
    );
    service("web", notes, &spec, status)
}

/// The API server's Service, whose endpoint is the first node.
pub(super) const KUBERNETES: &str = "---
apiVersion: v1
kind: Service
metadata: {name: kubernetes, namespace: default}
spec: {clusterIP: 10.96.0.1, ports: [{name: https, port: 443, targetPort: 6443}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
addressType: IPv4
metadata: {name: kubernetes, namespace: default, labels: {kubernetes.io/service-name: kubernetes}}
ports: [{name: https, port: 6443}]
endpoints: [{addresses: [192.168.1.21], conditions: {ready: true}}]
";

pub(super) const WELL: &str = "exit 0\n--- stdout\nnothing found; ";
pub(super) const ANSWERED: &str = "exit 0\n--- stdout\nanswered at once\n";

/// Some controllers write the nodes' own addresses into a status. Packets for them reach the nodes, at
/// every port.
#[test]
fn nodes_own_addresses_in_a_status_are_no_load_balancers() {
    let both = "{ip: 192.168.1.21}, {ip: 192.168.1.22}";
    for (test, notes, class) in [
        ("found-node-ipam", "", "loadBalancerClass: io.cilium/node,"),
        ("found-kube-vip", "kube-vip.io/loadbalancerIPs: 192.168.1.50", ""),
        ("found-metallb", "metallb.universe.tf/address-pool: a", ""),
    ] {
        let parts = [
            nodes(),
            KUBERNETES.to_owned(),
            pod("web", 2, "containerPort: 80"),
            balanced(notes, class, both),
            facts("iptables", "v1.33.1"),
        ];
        let folder = Folder::of(test, &parts);
        assert_printed(&folder.run(&["scan", "-f", "."]), WELL, &[]);
        for to in ["svc/default/kubernetes:443", "192.168.1.21:80"] {
            let printed =
                folder.run(&["trace", "-f", ".", "--from", "pod/default/web", "--to", to]);
            assert_printed(&printed, ANSWERED, &[]);
        }
    }
}

/// `minikube tunnel` writes 127.0.0.1, which is that of the developer's machine.
#[test]
fn a_loopback_address_in_a_status_is_called_by_no_pod() {
    let parts = [
        nodes(),
        pod("web", 1, "containerPort: 80"),
        pod("client", 2, "containerPort: 9000"),
        balanced("", "", "{ip: 127.0.0.1}"),
        facts("iptables", "v1.33.1"),
    ];
    let folder = Folder::of("found-loopback", &parts);
    assert_printed(&folder.run(&["scan", "-f", "."]), WELL, &[]);
    let from = ["trace", "-f", ".", "--from", "pod/default/client", "--to", "127.0.0.1:9000"];
    let printed = folder.run(&from);
    assert_printed(&printed, ANSWERED, &["pod     default/client"]);
    assert!(!printed.contains("node "), "it stays in the pod: {printed}");
}

const COREDNS: &str = "---
apiVersion: v1
kind: Service
metadata: {name: kube-dns, namespace: kube-system}
spec: {clusterIP: 10.96.0.10, ports: [{name: dns, port: 53, protocol: UDP}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: coredns, namespace: kube-system}
data:
  Corefile: |
    .:53 {
      kubernetes cluster.local
      hosts /etc/coredns/NodeHosts {
        ttl 60
        FALLTHROUGH
      }
      forward . /etc/resolv.conf
    }
";

/// CoreDNS starts without a hosts file, and has no line of it then.
#[test]
fn a_hosts_file_that_is_not_given_is_nobodys_fault() {
    let name = "kubernetes.default.svc.cluster.local:443";
    let from = ["trace", "-f", ".", "--from", "pod/default/web", "--to", name];
    for (test, more, begin) in [
        ("found-hosts", "fallthrough", ANSWERED),
        // Then every name depends on the file.
        ("found-hosts-alone", "", "exit "),
    ] {
        let parts = [
            nodes(),
            KUBERNETES.to_owned(),
            pod("web", 2, "containerPort: 80"),
            COREDNS.replace("FALLTHROUGH", more),
            facts("iptables", "v1.33.1"),
        ];
        let folder = Folder::of(test, &parts);
        let scanned = folder.run(&["scan", "-f", "."]);
        assert!(!scanned.contains("UT501"), "{scanned}");
        let parts = if more.is_empty() { &["what /etc/coredns/NodeHosts"][..] } else { &[] };
        assert_printed(&folder.run(&from), begin, parts);
    }
}

/// The name of a headless Service has the addresses of its pods: nothing translates a port.
#[test]
fn a_headless_service_translates_no_port() {
    let parts = |target: &str, declared: &str| {
        let spec = "clusterIP: None, selector: {app: web}, ports: [{port: 80, targetPort: TARGET}]";
        [
            nodes(),
            pod("web", 1, declared),
            pod("client", 2, "containerPort: 9000"),
            service("web", "", &spec.replace("TARGET", target), ""),
            facts("iptables", "v1.33.1"),
        ]
    };
    let name = "web.default.svc.cluster.local:80";
    let trace = |folder: &Folder, to: &str| {
        folder.run(&["trace", "-f", ".", "--from", "pod/default/client", "--to", to])
    };
    let dead = Folder::of("found-headless", &parts("8000", "containerPort: 8000"));
    let found = [
        "always refused",
        "every client that calls it by its name",
        "UT312",
        "svc/default/web :80",
    ];
    assert_printed(&dead.run(&["scan", "-f", ".", "-o", "wide"]), "exit ", &found);
    let why = "no process listens on port 80: Service default/web is headless";
    assert_printed(&trace(&dead, name), "exit 1\n--- stdout\nrefused   UT312", &[why]);
    assert_printed(&trace(&dead, &name.replace(":80", ":8000")), ANSWERED, &[]);
    // What nothing tells of is supposed, and said to be.
    let supposed = "supposed: port 81 of Pod default/web: a process listens there";
    assert_printed(&trace(&dead, "10.244.1.9:81"), ANSWERED, &[supposed]);
    for (test, target, declared) in [
        ("found-headless-same", "80", "containerPort: 8000"),
        ("found-headless-declared", "8000", "containerPort: 80"),
        ("found-headless-both", "8000", "containerPort: 8000}, {containerPort: 80"),
    ] {
        let well = Folder::of(test, &parts(target, declared));
        let scanned = well.run(&["scan", "-f", "."]);
        assert!(!scanned.contains("every client that calls"), "{test}: {scanned}");
        assert_printed(&trace(&well, name), ANSWERED, &[]);
    }
}

/// No cloud's own build of kube-proxy is in question where the nodes are known and have no trace of it.
#[test]
fn only_a_clouds_own_nodes_may_run_its_kube_proxy() {
    let parts = [
        nodes(),
        pod("web", 1, "containerPort: 80"),
        pod("client", 2, "containerPort: 9000"),
        balanced("lb.example/allocated-by: someone", "", "{ip: 192.168.1.240}"),
        facts("ipvs", "v1.29.4"),
    ];
    let folder = Folder::of("found-ipvs", &parts);
    let printed = folder.run(&[
        "trace",
        "-f",
        ".",
        "--from",
        "pod/default/client",
        "--to",
        "192.168.1.240:80",
    ]);
    assert_printed(&printed, ANSWERED, &[]);
    assert!(!printed.contains("build"), "{printed}");
}

#[test]
fn what_windows_nodes_do_is_not_judged() {
    let info = node(2, "").replace(
        "  conditions:",
        "  nodeInfo: {operatingSystem: windows, kernelVersion: 10.0.20348.2402}\n  conditions:",
    );
    for (test, windows) in
        [("found-windows", node(2, "kubernetes.io/os: windows")), ("found-windows-info", info)]
    {
        let parts = [
            node(1, "kubernetes.io/os: linux"),
            windows,
            pod("web", 1, "containerPort: 80"),
            pod("client", 2, "containerPort: 9000"),
            service(
                "web",
                "",
                "clusterIP: 10.96.1.1, selector: {app: web}, ports: [{port: 80}]",
                "",
            ),
            service(
                "away",
                "",
                "clusterIP: 10.96.1.2, selector: {app: client}, ports: [{port: 9000}]",
                "",
            ),
            facts("iptables", "v1.33.1"),
        ];
        let folder = Folder::of(test, &parts);
        let trace =
            |from: &str, to: &str| folder.run(&["trace", "-f", ".", "--from", from, "--to", to]);
        let unknown = "exit 0\n--- stdout\nnot known   UT902 not-modelled\n";
        let why = "the node runs Windows, and what it does with packets is not modelled";
        assert_printed(&trace("pod/default/client", "svc/default/web:80"), unknown, &[why]);
        assert_printed(&trace("pod/default/web", "svc/default/away:9000"), unknown, &[why]);
        assert_printed(&trace("pod/default/web", "svc/default/web:80"), ANSWERED, &[]);
        let listed =
            ["not judged: 1 node that runs Windows", "Node/n2: its label kubernetes.io/os"];
        assert_printed(&folder.run(&["scan", "-f", "."]), WELL, &listed);
    }
}

/// Since 1.29, source ranges in IPVS mode stop calls of nodes that are not in them: a node has the address
/// that it calls, and takes it for its source.
#[test]
fn source_ranges_of_ipvs_stop_nodes() {
    for (version, begin) in
        [("v1.27.4", ANSWERED), ("v1.30.4", "exit 1\n--- stdout\nhangs   UT601")]
    {
        let ranges = "loadBalancerSourceRanges: [192.168.2.0/24],";
        let parts = [
            nodes(),
            pod("web", 1, "containerPort: 80"),
            balanced("", ranges, "{ip: 10.5.0.1}"),
            facts("ipvs", version),
        ];
        let folder = Folder::of("found-ipvs-ranges", &parts);
        let printed = folder.run(&["trace", "-f", ".", "--from", "node/n2", "--to", "10.5.0.1:80"]);
        assert_printed(&printed, begin, &["10.5.0.1:40000 → 10.5.0.1:80"]);
    }
}

/// An external IP is brought to some node by whoever administers the network: here every node answers.
#[test]
fn an_external_ip_is_walked_at_whichever_node_gets_it() {
    let spec =
        "clusterIP: 10.96.1.1, externalIPs: [10.7.16.2], selector: {app: web}, ports: [{port: 80}]";
    let parts = [
        nodes(),
        pod("web", 1, "containerPort: 80"),
        service("web", "", spec, ""),
        facts("iptables", "v1.33.1"),
    ];
    let folder = Folder::of("found-external-ip", &parts);
    let trace =
        |from: &str| folder.run(&["trace", "-f", ".", "--from", from, "--to", "10.7.16.2:80"]);
    let why = "what 10.7.16.2 leads to: a node of the cluster (it is an external IP of Service default/web";
    assert_printed(&trace("outside"), ANSWERED, &[why]);
    assert_printed(&trace("pod/default/web"), ANSWERED, &[]);
}

/// PowerShell writes UTF-16, and kubectl reads it. The API server takes an empty protocol for TCP, and
/// any name for a backend of another kind.
#[test]
fn what_kubectl_and_the_api_server_take_is_read() {
    const ROUTE: &str = "---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: parent, namespace: default}
spec:
  parentRefs: [{name: edge}]
  rules:
  - backendRefs: [{group: gateway.networking.k8s.io, kind: HTTPRoute, name: \"*\", namespace: default}]
";
    let spec = "clusterIP: 10.96.1.1, selector: {app: web}, ports: [{port: 80, protocol: \"\"}]";
    let text = [
        nodes(),
        pod("web", 1, "containerPort: 80, protocol: \"\""),
        service("web", "größer: ja", spec, ""),
        ROUTE.to_owned(),
        facts("iptables", "v1.33.1"),
    ]
    .concat();
    let folder = Folder::new("found-encodings");
    let json = r#"{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "ö"}}"#;
    let write = |name: &str, text: &str, bytes: fn(u16) -> [u8; 2]| {
        let mut file = bytes(0xfeff).to_vec();
        file.extend(text.encode_utf16().flat_map(bytes));
        fs::write(folder.0.join(name), file).unwrap();
    };
    for (name, bytes) in
        [("little.yaml", u16::to_le_bytes as fn(u16) -> [u8; 2]), ("big.yaml", u16::to_be_bytes)]
    {
        write(name, &text, bytes);
        let printed = folder.run(&["scan", "-f", name]);
        assert_printed(&printed, WELL, &["1 of 1 call fine"]);
        write("pod.json", json, bytes);
        let printed = folder.run(&["scan", "-f", "pod.json"]);
        assert_printed(&printed, "exit 2\n", &["pod.json:1:58: metadata.name: expected a name"]);
    }
}
