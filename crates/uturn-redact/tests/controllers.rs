//! Ingress controllers in the cluster are recognised in a redacted bundle as they are in the cluster.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod common;

use common::assert_same;
use uturn_snapshot::{Manifests, Source};

/// A controller as its chart installs it: its product, the controller of its class, its container, and
/// the port to which its Service sends port 80.
const CONTROLLERS: &[[&str; 4]] = &[
    [
        "Kong",
        "ingress-controllers.konghq.com/kong",
        "{name: proxy, image: kong/kong-gateway:3.9, ports: [{name: admin-tls, containerPort: 8444}, \
         {name: proxy, containerPort: 8000}, {name: proxy-tls, containerPort: 8443}, {name: status, containerPort: 8100}]}",
        "proxy",
    ],
    [
        "Traefik",
        "traefik.io/ingress-controller",
        "{name: edge, image: traefik:v3.3, ports: [{name: metrics, containerPort: 9100}, \
         {name: web, containerPort: 8000}, {name: websecure, containerPort: 8443}]}",
        "web",
    ],
    [
        "ingress-nginx",
        "k8s.io/ingress-nginx",
        "{name: controller, image: ingress-nginx/controller:v1.12.1, \
         args: [/nginx-ingress-controller], ports: [{name: http, containerPort: 80}, {name: webhook, containerPort: 8443}]}",
        "http",
    ],
];

fn cluster([_, class, container, port]: &[&str; 4]) -> String {
    let mut text = format!(
        "apiVersion: uturn.dev/v1alpha1
kind: Facts
spec: {{provider: hetzner, kubeProxy: {{version: v1.34.4}}}}
---
apiVersion: v1
kind: Service
metadata: {{name: acmeedge, namespace: acmeedge}}
spec: {{type: LoadBalancer, clusterIP: 172.16.0.10, selector: {{app: acmeedge}}, ports: [{{port: 80, targetPort: {port}, nodePort: 30080}}]}}
status: {{loadBalancer: {{ingress: [{{ip: 203.0.113.101}}]}}}}
---
apiVersion: v1
kind: Service
metadata: {{name: acmeweb, namespace: acmeshop}}
spec: {{clusterIP: 172.16.0.11, selector: {{app: acmeweb}}, ports: [{{port: 80, targetPort: 8080}}]}}
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {{name: acmeclass}}
spec: {{controller: {class}}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {{name: acmefront, namespace: acmeshop}}
spec:
  ingressClassName: acmeclass
  rules: [{{host: web.acme.example, http: {{paths: [{{path: /, pathType: Prefix, backend: {{service: {{name: acmeweb, port: {{number: 80}}}}}}}}]}}}}]
status: {{loadBalancer: {{ingress: [{{ip: 203.0.113.101}}]}}}}
"
    );
    let pod = |namespace: &str, app: &str, node: u8, host: u8, container: &str| {
        format!(
            "---
apiVersion: v1
kind: Pod
metadata: {{name: {app}-{node}, namespace: {namespace}, labels: {{app: {app}}}}}
spec: {{nodeName: acmenode-{node}, containers: [{container}]}}
status: {{phase: Running, podIP: 10.1.{node}.{host}, conditions: [{{type: Ready, status: \"True\"}}]}}
"
        )
    };
    for node in 1..=2 {
        text.push_str(&format!(
            "---
apiVersion: v1
kind: Node
metadata: {{name: acmenode-{node}}}
spec: {{podCIDR: 10.1.{node}.0/24}}
status: {{addresses: [{{type: InternalIP, address: 10.0.0.1{node}}}]}}
"
        ));
        text.push_str(&pod("acmeshop", "acmeweb", node, 20, "{name: c, image: acme/web}"));
    }
    text.push_str(&pod("acmeedge", "acmeedge", 1, 80, container));
    text
}

#[test]
fn controllers_are_recognised() {
    for controller in CONTROLLERS {
        let product = controller[0];
        let text = cluster(controller);
        let source = Source { name: "all.yaml".into(), text: text.clone() };
        let manifests = Manifests::of(vec![source]);
        let cluster = manifests.load().unwrap().cluster;
        let products: Vec<&str> = cluster.controllers.iter().map(|own| &*own.product).collect();
        assert_eq!(products, [product]);
        let redacted = assert_same(&manifests, 1, product);
        let all: String = redacted.files.values().map(String::as_str).collect();
        assert!(!all.contains("acme"), "{product}: {all}");
    }
}
