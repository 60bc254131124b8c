//! Cures of what fails behind an Ingress controller in the cluster.

use super::common::Folder;

/// Nodes of a cloud, an Ingress without a host, its controller, and the Service behind, which selects
/// nothing.
const CLUSTER: &str = "apiVersion: v1
kind: Node
metadata: {name: n1}
spec: {podCIDR: 10.244.1.0/24, providerID: \"gce://shop/europe-west1-b/n1\"}
status: {addresses: [{type: InternalIP, address: 10.132.0.11}]}
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: nginx}
spec: {controller: k8s.io/ingress-nginx}
---
apiVersion: v1
kind: Service
metadata: {name: controller, namespace: ingress}
spec:
  type: LoadBalancer
  clusterIP: 10.96.0.50
  selector: {app: controller}
  ports: [{name: http, port: 80, targetPort: http, nodePort: 30080}]
status: {loadBalancer: {ingress: [{ip: 203.0.113.7}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: controller-a, namespace: ingress, labels: {app: controller}}
spec:
  nodeName: n1
  containers:
  - name: controller
    image: registry.example/ingress-nginx/controller:v1.11.2
    args: [/nginx-ingress-controller, --publish-service=ingress/controller]
    ports: [{name: http, containerPort: 80}, {name: webhook, containerPort: 8443}]
status: {phase: Running, podIP: 10.244.1.7, conditions: [{type: Ready, status: \"True\"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: client, namespace: shop, labels: {app: client}}
spec: {nodeName: n1, containers: [{name: c, image: c}]}
status: {phase: Running, podIP: 10.244.1.8, conditions: [{type: Ready, status: \"True\"}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {clusterIP: 10.96.0.51, selector: {app: web}, ports: [{port: 80, targetPort: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-x, namespace: shop, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
ports: []
endpoints: []
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: shop}
spec:
  ingressClassName: nginx
  rules: [{http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]
status: {loadBalancer: {ingress: [{ip: 203.0.113.7}]}}
";

/// The controller answers by its own name as it does by that of the load balancer, and another port of
/// its pods would end every Ingress.
#[test]
fn the_controller_is_not_called_or_changed_where_its_backend_fails() {
    for (test, host) in [("behind-no-host", ""), ("behind-host", "host: a.example.com, ")] {
        let folder = Folder::new(test);
        folder.file("a.yaml", &CLUSTER.replace("rules: [{", &format!("rules: [{{{host}")));
        let flow = ["--from", "pod/shop/client", "--to", "ingress/shop/web"];
        let trace = folder.run(&[&["trace", "-f", "."][..], &flow].concat());
        assert!(trace.starts_with("exit 1\n--- stdout\n503 at once   UT311"), "{trace}");
        let scan = folder.run(&["scan", "-f", "."]);
        let cure = folder.run(&["cure", "-f", ".", "UT311", "shop/web"]);
        for printed in [scan, cure] {
            assert!(printed.contains("503 at once"), "{printed}");
            for wrong in ["call svc/ingress/controller", "targetPort webhook"] {
                assert!(!printed.contains(wrong), "{wrong}: {printed}");
            }
        }
    }
}

/// A cure of the Service behind the controller is offered.
#[test]
fn the_service_behind_a_controller_is_cured() {
    let folder = Folder::new("behind-selector");
    let cluster = CLUSTER.replace("{app: client}}", "{app: webb}}");
    let (before, after) = cluster.split_once("---\napiVersion: discovery").unwrap();
    let (_, ingress) = after.split_once("endpoints: []\n").unwrap();
    let ports = before.replace("image: c}", "image: c, ports: [{containerPort: 80}]}");
    folder.file("a.yaml", &(ports + ingress));
    let flow = ["--from", "pod/shop/client", "--to", "ingress/shop/web"];
    let cure = folder.run(&[&["cure", "--complete", "-f", "."][..], &flow].concat());
    assert!(cure.contains("1. select app=webb for svc/shop/web"), "{cure}");
}
