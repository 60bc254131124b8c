//! Cures of load balancers that no Service owns.

use super::controllers_cured::site;
use super::more_cures::{IPTABLES, changes, cures, offered, service, web};

/// A load balancer before node n1 that hands calls on with the client's address.
const API: &str = "loadBalancers: [{vip: 10.0.0.100, scope: private, listeners: \
                   [{port: 443, snat: false, targets: {nodes: [n1], port: 6443}}]}]";

/// A pod in the network of node n1.
fn on_host(container: &str, image: &str, ports: &str) -> String {
    format!(
        "---
apiVersion: v1
kind: Pod
metadata: {{name: host, namespace: kube-system}}
spec:
  nodeName: n1
  hostNetwork: true
  containers: [{{name: {container}, image: {image}, ports: [{ports}]}}]
status: {{phase: Running, podIP: 10.0.0.11, conditions: [{{type: Ready, status: 'True'}}]}}
"
    )
}

/// A target that is its own client gets no answer; its own server is beside it.
#[test]
fn a_node_calls_its_own_api_server() {
    let server = on_host("kube-apiserver", "kube-apiserver:v1.34.4", "{containerPort: 6443}");
    let named = "dns: {outside: {api.example.com: 10.0.0.100}}";
    for (to, new, more) in [
        ("https://10.0.0.100/", "https://10.0.0.100 becomes https://10.0.0.11:6443;", ""),
        ("10.0.0.100:443", "10.0.0.100:443 becomes 10.0.0.11:6443;", ""),
        (
            "https://api.example.com/",
            "https://api.example.com becomes https://10.0.0.11:6443",
            ", or in its /etc/hosts: 10.0.0.11 api.example.com;",
        ),
    ] {
        let all = cures(&[IPTABLES, API, named], &server, "node/n1", to);
        let title = "call 10.0.0.11:6443, the own address of n1";
        assert_eq!(offered(&all), [("call-own-target", title)], "{to}");
        let said = all[0].commands[0].to_string();
        assert!(said.contains("kubelet.conf") && said.contains(new), "{said}");
        assert!(said.contains(more), "{said}");
    }
    // Another server is in some configuration of its own.
    let server = on_host("registry", "registry", "{containerPort: 6443}");
    let all = cures(&[IPTABLES, API], &server, "node/n1", "10.0.0.100:443");
    let said = all[0].commands[0].to_string();
    assert!(said.starts_with("in the caller's configuration on node n1:"), "{said}");
}

/// The load balancer of Facts sends a header, and the controller behind it reads none.
#[test]
fn a_stated_header_is_switched_off_or_read() {
    let settings = "---
apiVersion: v1
kind: ConfigMap
metadata: {name: nginx, namespace: shop}
data: {}
";
    let site = site("number: 80").replace(
        "[/nginx-ingress-controller]",
        "[/nginx-ingress-controller, --configmap=shop/nginx]",
    );
    let service = service("clusterIP: 172.16.0.10, ports: [{port: 80, targetPort: 8080}]");
    let objects = [&*service, &web(2), &site, settings].concat();
    for entry in ["vip: 203.0.113.7", "vip: 203.0.113.7, hostname: shop.example.com"] {
        let balancer = format!(
            "loadBalancers: [{{{entry}, listeners: \
             [{{port: 80, snat: true, proxyHeader: v1, targets: {{nodes: [n1]}}}}]}}]"
        );
        let name = "dns: {outside: {shop.example.com: 203.0.113.7}}";
        let all =
            cures(&[IPTABLES, &balancer, name], &objects, "outside", "http://shop.example.com/");
        let off = ("no-proxy-header", "no PROXY header from the load balancer");
        assert!(offered(&all).contains(&off), "{entry}: {:?}", offered(&all));
        let lines = changes(&all, "no-proxy-header");
        assert!(lines[1].contains("proxyHeader: null"), "{lines:?}");
    }
}
