//! What cannot be judged is neither fine nor failing, and the first lines say so.

use super::common::Folder;

/// A cluster with a server on n2, a client on n1, and a Service whose load balancer another program
/// makes and has this status.
fn cluster(status: &str) -> String {
    let node = |number: u8| {
        format!(
            "---
apiVersion: v1
kind: Node
metadata: {{name: n{number}}}
spec: {{podCIDR: 10.244.{number}.0/24}}
status: {{addresses: [{{type: InternalIP, address: 10.224.0.{number}}}]}}
"
        )
    };
    let pod = |name: &str, number: u8| {
        format!(
            "---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: shop, labels: {{app: {name}}}}}
spec: {{nodeName: n{number}, containers: [{{name: c, image: c}}]}}
status: {{phase: Running, podIP: 10.244.{number}.9, conditions: [{{type: Ready, status: \"True\"}}]}}
"
        )
    };
    let service = format!(
        "---
apiVersion: v1
kind: Service
metadata: {{name: web, namespace: shop}}
spec:
  type: LoadBalancer
  loadBalancerClass: tailscale
  clusterIPs: [10.0.12.3]
  clusterIP: 10.0.12.3
  selector: {{app: web}}
  ports: [{{port: 80, nodePort: 30080}}]
status: {{loadBalancer: {{ingress: [{status}]}}}}
---
apiVersion: uturn.dev/v1alpha1
kind: Facts
spec: {{kubeProxy: {{mode: iptables, version: v1.34.0}}}}
"
    );
    [node(1), node(2), pod("client", 1), pod("web", 2), service].concat()
}

fn first_lines(text: &str, count: usize) -> String {
    text.lines().take(count).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_call_from_outside_to_a_load_balancer_without_a_profile_is_not_known() {
    let folder = Folder::new("unjudged-outside");
    folder.file("a.yaml", &cluster("{ip: 20.1.2.3}"));
    let trace = folder.run(&["trace", "-f", ".", "--from", "outside", "--to", "http://20.1.2.3/"]);
    assert!(trace.starts_with("exit 0\n--- stdout\nnot known   UT902 not-modelled\n"), "{trace}");
    // Pods are served on their own node, as ipMode VIP says.
    let inside = ["trace", "-f", ".", "--from", "pod/shop/client", "--to", "http://20.1.2.3/"];
    let inside = folder.run(&inside);
    assert!(inside.starts_with("exit 0\n--- stdout\nanswered at once\n"), "{inside}");
}

#[test]
fn ip_mode_proxy_leads_to_a_load_balancer_that_is_not_judged() {
    let folder = Folder::new("unjudged-ip-mode");
    folder.file("a.yaml", &cluster("{ip: 20.1.2.3, ipMode: Proxy}"));
    let scan = folder.run(&["scan", "-f", "."]);
    let lines = first_lines(&scan, 4);
    assert!(
        lines.starts_with("exit 0\n--- stdout\nnothing found; 2 of 4 calls fine, 2 not judged")
    );
    assert!(lines.contains("\nnot judged: 1 load balancer of "), "{lines}");
}

#[test]
fn the_host_name_of_a_load_balancer_without_a_profile_is_not_known() {
    let folder = Folder::new("unjudged-host-name");
    let name = "web-0123.example.net";
    folder.file("a.yaml", &cluster(&format!("{{hostname: {name}}}")));
    let to = format!("http://{name}/");
    let trace = folder.run(&["trace", "-f", ".", "--from", "pod/shop/client", "--to", &to]);
    assert!(trace.starts_with("exit 0\n--- stdout\nnot known   UT902 not-modelled\n"), "{trace}");
    let scan = folder.run(&["scan", "-f", "."]);
    assert!(scan.contains("\nnot judged: 1 load balancer of "), "{scan}");
}

#[test]
fn an_object_that_is_open_for_two_reasons_is_counted_once() {
    let folder = Folder::new("unjudged-twice");
    folder.file(
        "a.yaml",
        "apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: front, namespace: shop}
spec:
  rules:
  - http:
      paths:
      - {path: /old, pathType: Prefix, backend: {service: {name: moved, port: {name: use-annotation}}}}
      - {path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}
---
{apiVersion: uturn.dev/v1alpha1, kind: Facts, spec: {provider: tke}}
",
    );
    let scan = folder.run(&["scan", "-f", "."]);
    assert!(scan.contains("not judged: backends of 1 Ingress; "), "{scan}");
    assert!(scan.contains("an annotation says where a path leads"), "{scan}");
    assert!(scan.contains("a Service that is led to is not in the input"), "{scan}");
}
