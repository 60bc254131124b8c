//! Nodes whose status has an ExternalIP: the network translates such an address to the node's own.

use super::common::Folder;

/// Two nodes with public addresses, a client on the first, a server with a host port and a Service
/// for local endpoints on the second.
const CLUSTER: &str = "---
apiVersion: uturn.dev/v1alpha1
kind: Facts
spec:
  kubeProxy: {mode: MODE, version: 1.33.1}
  network: {plugin: flannel, podCIDRs: [10.244.0.0/16]}
---
apiVersion: v1
kind: Node
metadata: {name: n1}
spec: {podCIDR: 10.244.1.0/24}
status:
  addresses: [{type: InternalIP, address: 192.168.1.21}, {type: ExternalIP, address: 198.51.100.21}]
  conditions: [{type: Ready, status: \"True\"}]
---
apiVersion: v1
kind: Node
metadata: {name: n2}
spec: {podCIDR: 10.244.2.0/24}
status:
  addresses: [{type: InternalIP, address: 192.168.1.22}, {type: ExternalIP, address: 198.51.100.22}]
  conditions: [{type: Ready, status: \"True\"}]
---
apiVersion: v1
kind: Pod
metadata: {name: client, namespace: default}
spec: {nodeName: n1, containers: [{name: c, image: c}]}
status: {phase: Running, podIP: 10.244.1.9, conditions: [{type: Ready, status: \"True\"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: default, labels: {app: web}}
spec:
  nodeName: n2
  containers: [{name: c, image: c, ports: [{containerPort: 80, hostPort: 8080}]}]
status: {phase: Running, podIP: 10.244.2.9, conditions: [{type: Ready, status: \"True\"}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: default}
spec:
  type: NodePort
  clusterIP: 10.96.1.1
  selector: {app: web}
  externalTrafficPolicy: Local
  ports: [{port: 80, nodePort: 30080}]
";

const MODES: [&str; 3] = ["iptables", "ipvs", "nftables"];

/// What a trace prints.
fn trace(test: &str, mode: &str, to: &str) -> String {
    let folder = Folder::new(&format!("public-nodes-{test}-{mode}"));
    folder.file("cluster.yaml", &CLUSTER.replace("MODE", mode));
    folder.run(&["trace", "-f", "cluster.yaml", "--from", "pod/default/client", "--to", to])
}

#[test]
fn node_ports_and_host_ports_are_reached_at_another_nodes_external_address() {
    for mode in MODES {
        for port in [30080, 8080] {
            let printed = trace("other", mode, &format!("198.51.100.22:{port}"));
            assert!(printed.starts_with("exit 0\n--- stdout\nanswered at once\n"), "{printed}");
            assert!(printed.contains("to 198.51.100.22:"), "{printed}");
            assert!(
                printed.contains("supposed: what 198.51.100.22 leads to: 192.168.1.22 of node n2"),
                "{printed}"
            );
        }
    }
}

#[test]
fn a_node_is_reached_at_its_own_external_address_from_within() {
    // The only endpoint is on the other node: kube-proxy drops the call there, but in IPVS mode it
    // sends it on, and flannel gives it the node's address on the way.
    for (mode, ends) in [
        ("iptables", "exit 1\n--- stdout\nhangs   UT311 no-endpoint\n"),
        ("ipvs", "exit 0\n--- stdout\nanswered at once\n"),
        ("nftables", "exit 1\n--- stdout\nhangs   UT311 no-endpoint\n"),
    ] {
        let printed = trace("own", mode, "198.51.100.21:30080");
        assert!(printed.starts_with(ends), "{mode}: {printed}");
    }
}

#[test]
fn whether_a_node_itself_listens_is_not_known() {
    let printed = trace("listens", "iptables", "198.51.100.21:8080");
    assert!(printed.starts_with("exit 0\n--- stdout\nnot known   UT902 not-given\n"), "{printed}");
}
