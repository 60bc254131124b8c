//! Cures of calls that an ingress controller of the cluster receives.

use super::more_cures::{CLIENT, IPTABLES, changes, client, cures, offered, pod, service, web};

/// An ingress-nginx in its node's network, its class, and an Ingress for shop.example.com with this
/// port of Service `web`.
pub(crate) fn site(port: &str) -> String {
    format!(
        "---
apiVersion: v1
kind: Pod
metadata: {{name: nginx, namespace: shop, labels: {{app: nginx}}}}
spec:
  nodeName: n1
  hostNetwork: true
  containers:
  - name: controller
    image: registry.k8s.io/ingress-nginx/controller:v1.12.0
    args: [/nginx-ingress-controller]
    ports: [{{name: http, containerPort: 80}}, {{name: https, containerPort: 443}}]
status: {{phase: Running, podIP: 10.0.0.11, conditions: [{{type: Ready, status: 'True'}}]}}
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {{name: nginx}}
spec: {{controller: k8s.io/ingress-nginx}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {{name: site, namespace: shop}}
spec:
  ingressClassName: nginx
  rules:
  - host: shop.example.com
    http:
      paths:
      - path: /
        pathType: Prefix
        backend: {{service: {{name: web, port: {{{port}}}}}}}
status: {{loadBalancer: {{ingress: [{{ip: 10.0.0.11}}]}}}}
"
    )
}

const HOST: &str = "dns: {outside: {shop.example.com: 10.0.0.11}}";

/// Behind a controller too: the port that the Service has, in the form in which it was written.
#[test]
fn a_port_that_the_backend_lacks_becomes_its_own() {
    let service =
        service("clusterIP: 172.16.0.10, ports: [{name: web, port: 80, targetPort: 8080}]");
    for (port, title, new) in [
        (
            "number: 8080",
            "port 80 of svc/shop/web instead of 8080, which it does not have",
            "{number: 80}",
        ),
        (
            "name: http",
            "port web of svc/shop/web instead of http, which it does not have",
            "{name: web}",
        ),
    ] {
        let objects = [&*service, &site(port), &web(2), &client(2)].concat();
        for (from, to) in [
            ("outside", "http://shop.example.com/"),
            ("outside", "ingress/shop/site"),
            (CLIENT, "http://shop.example.com/"),
        ] {
            let cures = cures(&[IPTABLES, HOST], &objects, from, to);
            assert_eq!(offered(&cures)[0], ("ingress-backend", title), "{from} {to}");
            let lines = changes(&cures, "ingress-backend");
            assert!(lines[1].contains(new), "{from} {to}: {lines:?}");
        }
    }
}

/// The Service behind the controller selects nothing: its selector is at fault for the Ingress too.
#[test]
fn the_backend_of_an_ingress_is_cured() {
    let service = service("clusterIP: 172.16.0.10, ports: [{port: 80, targetPort: 8080}]")
        .replace("app: web", "app: wep");
    let objects = [&*service, &site("number: 80"), &web(2)].concat();
    for to in ["http://shop.example.com/", "ingress/shop/site"] {
        let cures = cures(&[IPTABLES, HOST], &objects, "outside", to);
        assert_eq!(offered(&cures)[0], ("selector", "select app=web for svc/shop/web"), "{to}");
    }
}

/// Returns a load balancer that ends TLS, whose port 443 leads to the controller's port with this
/// target.
fn behind_tls(target: &str) -> String {
    let nginx = "---
apiVersion: v1
kind: Pod
metadata: {name: nginx, namespace: shop, labels: {app: nginx}}
spec:
  nodeName: n1
  containers:
  - name: controller
    image: registry.k8s.io/ingress-nginx/controller:v1.12.0
    args: [/nginx-ingress-controller, --publish-service=shop/nginx]
    ports: [{name: http, containerPort: 80}, {name: https, containerPort: 443}]
status: {phase: Running, podIP: 10.1.1.20, conditions: [{type: Ready, status: 'True'}]}
";
    let balanced = format!(
        "---
apiVersion: v1
kind: Service
metadata:
  name: nginx
  namespace: shop
  annotations:
    service.beta.kubernetes.io/aws-load-balancer-scheme: internet-facing
    service.beta.kubernetes.io/aws-load-balancer-ssl-cert: arn
    service.beta.kubernetes.io/aws-load-balancer-ssl-ports: https
spec:
  type: LoadBalancer
  clusterIP: 172.16.0.20
  selector: {{app: nginx}}
  ports:
  - {{name: http, port: 80, targetPort: http, nodePort: 30080}}
  - {{name: https, port: 443, targetPort: {target}, nodePort: 30443}}
status: {{loadBalancer: {{ingress: [{{hostname: a-1.elb.eu-west-1.amazonaws.com}}]}}}}
"
    );
    let site = site("number: 80");
    let rest = site.split_once("kind: IngressClass").map(|(_, rest)| rest).unwrap_or_default();
    let class = "---\napiVersion: networking.k8s.io/v1\nkind: IngressClass";
    let rest = rest.replace("[{ip: 10.0.0.11}]", "[{hostname: a-1.elb.eu-west-1.amazonaws.com}]");
    [nginx, &balanced, class, &rest].concat()
}

#[test]
fn a_load_balancer_that_ends_tls_leads_to_the_plain_port() {
    let service = service("clusterIP: 172.16.0.10, ports: [{port: 80, targetPort: 8080}]");
    let stated = [
        IPTABLES,
        "provider: aws",
        "dns: {outside: {shop.example.com: 203.0.113.9, a-1.elb.eu-west-1.amazonaws.com: 203.0.113.9}}",
    ];
    for (target, title, new) in [
        (
            "https",
            "targetPort http (80) instead of https for svc/shop/nginx port 443",
            "targetPort: http,",
        ),
        ("443", "targetPort 80 instead of 443 for svc/shop/nginx port 443", "targetPort: 80,"),
    ] {
        let objects = [&*service, &behind_tls(target), &web(2)].concat();
        let cures = cures(&stated, &objects, "outside", "https://shop.example.com/");
        assert_eq!(offered(&cures), [("target-port", title)]);
        let lines = changes(&cures, "target-port");
        assert!(lines[1].contains(new), "{lines:?}");
    }
    // The controller's own port is right where the load balancer hands TLS on.
    let objects = [&*service, &behind_tls("https"), &web(2)].concat();
    let passed =
        objects.replace("aws-load-balancer-ssl-ports: https", "aws-load-balancer-ssl-ports: none");
    let all = cures(&stated, &passed, "outside", "https://shop.example.com/");
    assert!(all.iter().all(|cure| cure.name != "target-port"), "{all:#?}");
}

/// A proxy of a mesh opens ports for its own metrics and health, which are nobody's service.
#[test]
fn ports_of_a_meshs_proxy_are_never_targets() {
    let proxy = "containers: [{name: istio-proxy, image: proxyv2, args: [proxy, sidecar], ports: [{name: http-envoy-prom, containerPort: 15090}, {containerPort: 15020}]}, ";
    let server = pod("web-1", 1, ", labels: {app: web}", "").replace("containers: [", proxy);
    let service = service("clusterIP: 172.16.0.10, ports: [{port: 80, targetPort: 9999}]");
    let objects = [service, server, client(2)].concat();
    let stated = [IPTABLES, "declaredPortsOnly: true"];
    let cures = cures(&stated, &objects, CLIENT, "svc/shop/web:80");
    let offered = offered(&cures);
    assert_eq!(
        offered,
        [("target-port", "targetPort 8080 instead of 9999 for svc/shop/web port 80")]
    );
}
