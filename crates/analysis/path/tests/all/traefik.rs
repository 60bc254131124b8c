//! Ingresses that Traefik serves at some of its entry points, as its chart and k3s start it.

#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use crate::front;

use crate::front::{ANSWERED, all, asked};
use uturn_model::controller::EntryRedirect;
use uturn_model::{Cluster, Port};

/// The arguments of k3s' chart that name entry points.
const USUAL: &str = "--entryPoints.metrics.address=:9100/tcp, --entryPoints.traefik.address=:8080/tcp, \
     --entryPoints.web.address=:8000/tcp, --entryPoints.websecure.address=:8443/tcp, \
     --entryPoints.websecure.http.tls=true, --providers.kubernetesingress";

/// The status that the controller writes.
const STATUS: &str = "status: {loadBalancer: {ingress: [{ip: 10.0.0.100}]}}\n";

/// Traefik with these arguments, and an Ingress with these annotations and this in its `spec`.
fn cluster(arguments: &str, annotations: &str, spec: &str) -> Cluster {
    front::cluster(&(traefik(arguments) + &front::ingress("traefik", annotations, spec) + STATUS))
}

/// Traefik's pod with these arguments, its Service and its class.
fn traefik(arguments: &str) -> String {
    format!(
        "---
apiVersion: v1
kind: Pod
metadata: {{name: traefik, namespace: kube-system, labels: {{app: traefik}}}}
spec:
  nodeName: n1
  containers:
  - name: traefik
    image: rancher/mirrored-library-traefik:3.3.6
    args: [{arguments}]
    ports: [{{name: metrics, containerPort: 9100}}, {{name: traefik, containerPort: 8080}}, \
             {{name: web, containerPort: 8000}}, {{name: websecure, containerPort: 8443}}]
status: {{phase: Running, podIP: 10.1.1.20, podIPs: [{{ip: 10.1.1.20}}], conditions: [{{type: Ready, status: \"True\"}}]}}
---
apiVersion: v1
kind: Service
metadata: {{name: traefik, namespace: kube-system}}
spec:
  type: LoadBalancer
  clusterIP: 172.16.0.10
  selector: {{app: traefik}}
  ports: [{{name: web, port: 80, targetPort: web, nodePort: 30080}}, {{name: websecure, port: 443, targetPort: websecure, nodePort: 30443}}]
status: {{loadBalancer: {{ingress: [{{ip: 10.0.0.100}}]}}}}
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {{name: traefik}}
spec: {{controller: traefik.io/ingress-controller}}
"
    )
}

const NOT_FOUND: &str = "404 at once";
const PREFIX: &str = "traefik.ingress.kubernetes.io/router";

#[test]
fn without_entry_points_all_serve_an_ingress() {
    assert_eq!(all(&cluster(USUAL, "", "")), [ANSWERED; 3]);
    // Without TLS of its own, the entry point has no router for https.
    let plain = USUAL.replace("--entryPoints.websecure.http.tls=true, ", "");
    assert_eq!(all(&cluster(&plain, "", "")), [ANSWERED, NOT_FOUND, ANSWERED]);
    let tls = "tls: [{hosts: [a.example.com], secretName: a}], ";
    assert_eq!(all(&cluster(&plain, "", tls)), [ANSWERED, NOT_FOUND, ANSWERED]);
    assert_eq!(all(&cluster(USUAL, "", tls)), [ANSWERED; 3]);
}

#[test]
fn a_router_answers_at_its_entry_points_only() {
    let on = |names: &str, more: &str| {
        all(&cluster(USUAL, &format!("{PREFIX}.entrypoints: '{names}'{more}"), ""))
    };
    assert_eq!(on("web", ""), [ANSWERED, NOT_FOUND, ANSWERED]);
    assert_eq!(on("websecure", ""), [NOT_FOUND, ANSWERED, ANSWERED]);
    assert_eq!(on("web,websecure", ""), [ANSWERED; 3]);
    assert_eq!(on("gone", ""), [NOT_FOUND; 3]);
    // A router that asks for TLS has none of the requests without.
    let tls = format!(", {PREFIX}.tls: 'true'");
    assert_eq!(on("websecure", &tls), [NOT_FOUND, ANSWERED, ANSWERED]);
    assert_eq!(on("web", &tls)[0], NOT_FOUND);
    let resolver = format!(", {PREFIX}.tls.certresolver: letsencrypt");
    assert_eq!(on("websecure", &resolver), [NOT_FOUND, ANSWERED, ANSWERED]);
}

#[test]
fn default_entry_points_are_those_that_say_so() {
    let one = format!("{USUAL}, --entryPoints.websecure.asDefault=true");
    assert_eq!(all(&cluster(&one, "", "")), [NOT_FOUND, ANSWERED, ANSWERED]);
    // Ports of Traefik's own pages have no router of an Ingress.
    let own = "--entryPoints.traefik.address=:8000/tcp, --entryPoints.websecure.address=:8443/tcp, \
               --entryPoints.websecure.http.tls=true";
    assert_eq!(all(&cluster(own, "", "")), [NOT_FOUND, ANSWERED, ANSWERED]);
}

#[test]
fn an_entry_point_sends_clients_to_another() {
    let sent = |to: &str| {
        format!(
            "{USUAL}, '--entryPoints.web.http.redirections.entryPoint.to={to}', \
                 --entryPoints.web.http.redirections.entryPoint.scheme=https"
        )
    };
    assert_eq!(all(&cluster(&sent(":443"), "", "")), [ANSWERED; 3]);
    let only = format!("{PREFIX}.entrypoints: web");
    assert_eq!(all(&cluster(&sent(":443"), &only, "")), [NOT_FOUND; 3]);
    // Its name stands for the port of the pods.
    let named = cluster(&sent("websecure"), "", "");
    let entry = named.controllers[0].listener(8000).unwrap().entry_point.clone().unwrap();
    let EntryRedirect::To(redirect) = entry.redirect else { panic!("{entry:?}") };
    assert_eq!((redirect.code, redirect.port.map(Port::number)), (301, Some(8443)));
    let low = sent(":443") + ", --entryPoints.web.http.redirections.entryPoint.priority=10";
    assert_eq!(asked(&cluster(&low, "", ""), "http://a.example.com/"), "not known");
}

/// A router whose service cannot be made is not made either.
#[test]
fn a_backend_that_is_not_there_is_404() {
    let alias = "---
apiVersion: v1
kind: Service
metadata: {name: alias, namespace: shop}
spec: {type: ExternalName, externalName: shop.example.org, ports: [{port: 80}]}
";
    let to = |service: &str, port: u16, more: &str| {
        let front = front::ingress("traefik", "", "")
            .replace("name: web", &format!("name: {service}"))
            .replace("number: 80", &format!("number: {port}"));
        let text = traefik(&format!("{USUAL}{more}")) + &front + STATUS + alias;
        asked(&front::cluster(&text), "http://a.example.com/")
    };
    assert_eq!(to("web", 80, ""), ANSWERED);
    assert_eq!(to("web", 81, ""), NOT_FOUND);
    assert_eq!(to("alias", 80, ""), NOT_FOUND);
    let allows = ", --providers.kubernetesingress.allowExternalNameServices=true";
    assert_eq!(to("alias", 80, allows), "not known");
}

/// Routes of a Gateway without a load balancer: the node ports of Traefik's only Service.
#[test]
fn a_gateway_is_served_at_node_ports() {
    let routes = "---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: traefik}
spec: {controllerName: traefik.io/gateway-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: shop}
spec: {gatewayClassName: traefik, listeners: [{name: web, protocol: HTTP, port: 8000}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: web, namespace: shop}
spec: {parentRefs: [{name: edge}], hostnames: [a.example.com], rules: [{backendRefs: [{name: web, port: 80}]}]}
";
    let at_nodes = traefik(USUAL)
        .replace("type: LoadBalancer", "type: NodePort")
        .replace("status: {loadBalancer: {ingress: [{ip: 10.0.0.100}]}}\n", "");
    let cluster = front::cluster(&(at_nodes + routes));
    assert_eq!(asked(&cluster, "httproute/shop/web"), ANSWERED);
    assert_eq!(asked(&cluster, "http://a.example.com:30080/"), ANSWERED);
    assert_eq!(asked(&cluster, "https://a.example.com:30443/"), NOT_FOUND);
    let found = asked(&cluster, "http://a.example.com/");
    assert_ne!(found, ANSWERED, "nothing is known to listen there");
}

/// Arguments may leave entry points to a file or to the environment.
#[test]
fn what_is_not_stated_is_not_judged() {
    let on = format!("{PREFIX}.entrypoints: web");
    assert_eq!(all(&cluster("--providers.kubernetesingress", &on, "")), ["not known"; 3]);
    let file = format!("{USUAL}, --configFile=/etc/traefik/traefik.yml");
    assert_eq!(asked(&cluster(&file, &on, ""), "http://a.example.com/"), "not known");
    assert_eq!(asked(&cluster(&file, "", ""), "http://a.example.com/"), ANSWERED);
    for key in [
        "middlewares: shop-auth@kubernetescrd",
        "priority: '7'",
        "tls.options: shop-mutual@kubernetescrd",
    ] {
        let cluster = cluster(USUAL, &format!("{PREFIX}.{key}"), "");
        assert_eq!(asked(&cluster, "ingress/shop/front"), "not known", "{key}");
    }
    let old = "traefik.ingress.kubernetes.io/frontend-entry-points: http";
    assert_eq!(asked(&cluster(USUAL, old, ""), "http://a.example.com/"), "not known");
}
