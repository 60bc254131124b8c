//! Health checks of clouds, as clusters show them.

use super::common::Folder;

/// Nodes of a cloud, and a Service of UDP whose only pod is on the first.
fn cluster(policy: &str) -> String {
    let node = |number: u8| {
        format!(
            "apiVersion: v1
kind: Node
metadata: {{name: n{number}}}
spec:
  podCIDR: 10.244.{number}.0/24
  providerID: azure:///subscriptions/0/resourceGroups/g/providers/Microsoft.Compute/virtualMachineScaleSets/s/virtualMachines/{number}
status: {{addresses: [{{type: InternalIP, address: 10.224.0.{number}}}]}}
---
"
        )
    };
    let service = format!(
        "apiVersion: v1
kind: Service
metadata: {{name: dns, namespace: default}}
spec:
  type: LoadBalancer
  clusterIP: 10.0.0.77
  selector: {{app: dns}}
  {policy}
  ports: [{{name: dns, protocol: UDP, port: 53, nodePort: 30053}}]
status: {{loadBalancer: {{ingress: [{{ip: 203.0.113.8}}]}}}}
---
apiVersion: v1
kind: Pod
metadata: {{name: dns, namespace: default, labels: {{app: dns}}}}
spec: {{nodeName: n1, containers: [{{name: c, image: c, ports: [{{containerPort: 53, protocol: UDP}}]}}]}}
status: {{phase: Running, podIP: 10.244.1.9, conditions: [{{type: Ready, status: \"True\"}}]}}
"
    );
    [node(1), node(2), node(3), service].concat()
}

/// A port of UDP has the health check of policy Local: nodes without a pod get no packets.
#[test]
fn a_port_of_udp_has_the_probe_of_policy_local() {
    for (test, policy) in [
        ("probes-local", "externalTrafficPolicy: Local\n  healthCheckNodePort: 30999"),
        ("probes-cluster", "externalTrafficPolicy: Cluster"),
    ] {
        let folder = Folder::new(test);
        folder.file("a.yaml", &cluster(policy));
        let scan = folder.run(&["scan", "-f", "."]);
        assert!(scan.starts_with("exit 0\n--- stdout\nnothing found; "), "{scan}");
        let flow = ["--proto", "udp", "--from", "outside", "--to", "203.0.113.8:53"];
        let trace = folder.run(&[&["trace", "-f", "."][..], &flow].concat());
        assert!(trace.starts_with("exit 0\n--- stdout\nanswered at once\n"), "{trace}");
    }
}
