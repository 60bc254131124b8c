//! Ingress controllers in the cluster are recognised in a redacted bundle as they are in the cluster.

use super::common::assert_same;
use uturn_model::ProxyExpectation;
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

/// Entry points have names, in arguments and in annotations.
#[test]
fn entry_points_keep_their_rules() {
    let arguments = "args: [--entryPoints.web.address=:8000/tcp, --entryPoints.acmeentry.address=:8443/tcp, \
         --entryPoints.acmeentry.http.tls=true, --entryPoints.web.http.redirections.entryPoint.to=acmeentry], ports";
    for annotations in [
        "router.entrypoints: web",
        "router.entrypoints: acmeentry",
        "router.tls: 'true', traefik.ingress.kubernetes.io/service.acme: x",
        "router.middlewares: acmeauth@kubernetescrd",
    ] {
        let [product, class, container, port] = CONTROLLERS[1];
        let container = container.replacen("ports", arguments, 1);
        let text = cluster(&[product, class, &container, port]).replace(
            "metadata: {name: acmefront, namespace: acmeshop}",
            &format!(
                "metadata: {{name: acmefront, namespace: acmeshop, annotations: \
                 {{traefik.ingress.kubernetes.io/{annotations}}}}}"
            ),
        );
        let source = Source { name: "all.yaml".into(), text: text.clone() };
        let manifests = Manifests::of(vec![source]);
        let cluster = manifests.load().unwrap().cluster;
        let entry = cluster.controllers[0].listener(8443).unwrap().entry_point.as_ref();
        assert_eq!(entry.map(|entry| (&*entry.name, entry.tls)), Some(("acmeentry", true)));
        let redacted = assert_same(&manifests, 1, annotations);
        let all: String = redacted.files.values().map(String::as_str).collect();
        assert!(!all.contains("acme"), "{annotations}: {all}");
    }
}

/// Of the environment of containers only a few variables are kept, and what they name.
#[test]
fn what_a_controller_reads_of_its_environment_is_kept() {
    let [product, class, container, port] = CONTROLLERS[0];
    let own = ", {name: acmesteers, image: kong/kubernetes-ingress-controller:3.4, env: [{name: \
               CONTROLLER_INGRESS_CLASS, value: acmeclass}, {name: CONTROLLER_PUBLISH_SERVICE, value: acmeedge/acmeedge}, \
               {name: CONTROLLER_KONG_ADMIN_TOKEN, value: acmesecret}]}";
    for listen in [
        "0.0.0.0:8000 reuseport backlog=16384",
        "0.0.0.0:8000 proxy_protocol, [::]:8000 proxy_protocol",
    ] {
        let env = format!("env: [{{name: KONG_PROXY_LISTEN, value: '{listen}'}}], ports");
        let container = container.replacen("ports", &env, 1) + own;
        let text = cluster(&[product, class, &container, port]);
        let manifests = Manifests::of(vec![Source { name: "all.yaml".into(), text }]);
        let cluster = manifests.load().unwrap().cluster;
        let pod =
            cluster.pods.values().find(|pod| pod.name.namespace.as_str() == "acmeedge").unwrap();
        let required = ProxyExpectation::Required(Vec::new());
        let expected = cluster.proxy_expectation(pod, 8000);
        assert_eq!(expected == Some(&required), listen.contains("proxy_protocol"), "{expected:?}");
        let redacted = assert_same(&manifests, 1, listen);
        let all: String = redacted.files.values().map(String::as_str).collect();
        assert!(!all.contains("acme") && !all.contains("ADMIN_TOKEN"), "{all}");
    }
}
