//! A load balancer ends TLS, and calls from inside go past it: the server gets a handshake that it does
//! not understand. And what checklists say of such servers, and of others that are well.

use uturn_testing::manifests::RunningPod;

use super::common::Folder;

const NODES: &str = "---
apiVersion: v1
kind: Node
metadata: {name: n1}
spec: {podCIDR: 10.244.1.0/24, providerID: \"digitalocean://1\"}
status: {addresses: [{type: InternalIP, address: 10.132.0.11}], conditions: [{type: Ready, status: \"True\"}]}
---
apiVersion: v1
kind: Node
metadata: {name: n2}
spec: {podCIDR: 10.244.2.0/24, providerID: \"digitalocean://2\"}
status: {addresses: [{type: InternalIP, address: 10.132.0.12}], conditions: [{type: Ready, status: \"True\"}]}
";

/// Cilium in place of kube-proxy, which replaces addresses as clients connect.
const CILIUM: &str = "---
apiVersion: uturn.dev/v1alpha1
kind: Facts
spec: {kubeProxy: {replacedBy: cilium}, network: {plugin: cilium, podCIDRs: [10.244.0.0/16]}}
";

const KUBE_PROXY: &str = "---
apiVersion: uturn.dev/v1alpha1
kind: Facts
spec: {kubeProxy: {mode: iptables, version: v1.34.0}, network: {plugin: calico, podCIDRs: [10.244.0.0/16]}}
";

fn pod(name: &str, node: u32, image: &str) -> String {
    let (address, ports) = (&format!("10.244.{node}.9"), "{containerPort: 80}");
    RunningPod { name, app: name, node, address, image, ports, ..RunningPod::default() }.to_string()
}

/// A load balancer with a certificate at 443, which sends what is in it to port 80 of the server.
const SERVICE: &str = "---
apiVersion: v1
kind: Service
metadata:
  name: web
  namespace: shop
  annotations:
    service.beta.kubernetes.io/do-loadbalancer-protocol: http
    service.beta.kubernetes.io/do-loadbalancer-tls-ports: \"443\"
    service.beta.kubernetes.io/do-loadbalancer-certificate-id: abc
spec:
  type: LoadBalancer
  clusterIP: 10.245.0.9
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: 80, nodePort: 30080}, {name: https, port: 443, targetPort: 80, nodePort: 30443}]
status: {loadBalancer: {ingress: [{ip: 167.99.10.11}]}}
";

const INGRESS: &str = "---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: app, namespace: shop}
spec:
  ingressClassName: nginx
  rules: [{host: shop.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: back, port: {number: 80}}}}]}}]
status: {loadBalancer: {ingress: [{ip: 167.99.10.11}]}}
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: nginx}
spec: {controller: k8s.io/ingress-nginx}
---
apiVersion: v1
kind: Service
metadata: {name: back, namespace: shop}
spec: {clusterIP: 10.245.0.10, selector: {app: client}, ports: [{port: 80}]}
";

const PLAIN: &str = "web";

#[track_caller]
fn assert_bypassed(test: &str, parts: &[&str], host: &str) {
    let folder = Folder::new(test);
    folder.file("a.yaml", &parts.concat());
    let url = format!("https://{host}/");
    let trace = folder.run(&["trace", "-f", ".", "--from", "pod/shop/client", "--to", &url]);
    assert!(trace.starts_with("exit 1\n--- stdout\nTLS error   UT106 tls-bypassed\n"), "{trace}");
    let scan = folder.run(&["scan", "-f", ".", "-o", "wide"]);
    assert!(
        scan.contains(
            "svc/shop/web 167.99.10.11:443  the node answers for 167.99.10.11:443 itself"
        ),
        "{scan}"
    );
    let check = folder.run(&["check", "service", "shop/web", "-f", "."]);
    let failed = "pod/shop/client to https://167.99.10.11/: TLS error (tls-bypassed)";
    assert!(check.starts_with("exit 1\n") && check.contains(failed), "{check}");
}

#[test]
fn a_server_behind_it_gets_the_handshake() {
    let pods = [pod("web", 1, PLAIN), pod("client", 2, PLAIN)].concat();
    for (test, proxy) in [("tls-cilium", CILIUM), ("tls-kube-proxy", KUBE_PROXY)] {
        assert_bypassed(test, &[NODES, proxy, &pods, SERVICE], "167.99.10.11");
    }
}

#[test]
fn an_ingress_controller_behind_it_gets_the_handshake() {
    let controller = "registry.example/ingress-nginx/controller:v1.11.2, \
                      args: [/nginx-ingress-controller, --publish-service=shop/web]";
    let pods = [pod("web", 1, controller), pod("client", 2, PLAIN)].concat();
    for (test, proxy) in [("tls-controller-cilium", CILIUM), ("tls-controller", KUBE_PROXY)] {
        let parts = [NODES, proxy, &pods, SERVICE, INGRESS];
        assert_bypassed(test, &parts, "shop.example.com");
    }
}

#[test]
fn pods_on_the_host_network_that_ask_their_node_are_no_fault() {
    let host = pod("speaker", 1, PLAIN).replace("hostNetwork: false", "hostNetwork: true");
    let folder = Folder::new("tls-host-network");
    folder.file("a.yaml", &[NODES, KUBE_PROXY, &host, &pod("client", 2, PLAIN)].concat());
    let printed = folder.run(&["check", "dns", "-f", "."]);
    assert!(printed.contains("unknown pods ask the cluster's DNS\n"), "{printed}");
    assert!(printed.contains("names of the cluster: shop/speaker;"), "{printed}");
}
