//! Ingresses that Kong serves, as its chart installs it: its settings are in the environment.

#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use crate::front;

use crate::front::{ANSWERED, asked};
use uturn_model::Cluster;

const LISTENS: &str = "0.0.0.0:8000, [::]:8000, 0.0.0.0:8443 http2 ssl, [::]:8443 http2 ssl";

/// Kong that listens so and serves this class, and an Ingress with these annotations and this in its
/// `spec`.
fn cluster(listens: &str, class: &str, annotations: &str, spec: &str) -> Cluster {
    let text = format!(
        "---
apiVersion: v1
kind: Pod
metadata: {{name: kong, namespace: kong, labels: {{app: kong}}}}
spec:
  nodeName: n1
  containers:
  - name: ingress-controller
    image: kong/kubernetes-ingress-controller:3.4
    env: [{{name: CONTROLLER_INGRESS_CLASS, value: {class}}}, {{name: CONTROLLER_PUBLISH_SERVICE, value: kong/kong-proxy}}]
    ports: [{{name: cmetrics, containerPort: 10255}}]
  - name: proxy
    image: kong:3.9
    env: [{{name: KONG_PROXY_LISTEN, value: '{listens}'}}]
    ports: [{{name: proxy, containerPort: 8000}}, {{name: proxy-tls, containerPort: 8443}}]
status: {{phase: Running, podIP: 10.1.1.20, podIPs: [{{ip: 10.1.1.20}}], conditions: [{{type: Ready, status: \"True\"}}]}}
---
apiVersion: v1
kind: Service
metadata: {{name: kong-proxy, namespace: kong}}
spec:
  type: LoadBalancer
  clusterIP: 172.16.0.10
  selector: {{app: kong}}
  ports: [{{name: kong-proxy, port: 80, targetPort: 8000, nodePort: 30080}}, {{name: kong-proxy-tls, port: 443, targetPort: 8443, nodePort: 30443}}]
status: {{loadBalancer: {{ingress: [{{ip: 10.0.0.100}}]}}}}
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {{name: kong}}
spec: {{controller: ingress-controllers.konghq.com/kong}}
"
    );
    front::cluster(&(text + &front::ingress("kong", annotations, spec)))
}

/// What comes of calls by http, by https, and of the Ingress itself.
fn all(annotations: &str, spec: &str) -> [String; 3] {
    front::all(&cluster(LISTENS, "kong", annotations, spec))
}

#[test]
fn kong_serves_both_protocols() {
    assert_eq!(all("", ""), [ANSWERED; 3]);
    assert_eq!(all("", "tls: [{hosts: [a.example.com], secretName: a}], "), [ANSWERED; 3]);
    let plain = cluster(LISTENS, "kong", "", "");
    assert_eq!(asked(&plain, "http://10.0.0.100/"), "404 at once");
    assert_eq!(plain.controllers[0].product.as_ref(), "Kong");
}

#[test]
fn protocols_of_an_ingress_decide() {
    let https = "konghq.com/protocols: https";
    assert_eq!(all(https, ""), ["426 at once", ANSWERED, ANSWERED]);
    let sent = format!("{https}, konghq.com/https-redirect-status-code: '301'");
    assert_eq!(all(&sent, ""), [ANSWERED; 3]);
    let forced = "ingress.kubernetes.io/force-ssl-redirect: 'true'";
    assert_eq!(all(forced, ""), [ANSWERED; 3]);
    let http = "konghq.com/protocols: http";
    assert_eq!(all(http, ""), [ANSWERED, "404 at once", ANSWERED]);
    assert_eq!(all("konghq.com/protocols: 'http,https'", ""), [ANSWERED; 3]);
}

#[test]
fn annotations_that_decide_nothing_are_no_hindrance() {
    let own = "konghq.com/strip-path: 'true', konghq.com/preserve-host: 'false', konghq.com/methods: 'GET,POST'";
    assert_eq!(all(own, ""), [ANSWERED; 3]);
    for key in ["plugins: auth", "methods: POST", "snis: b.example.com", "protocols: grpc"] {
        assert_eq!(all(&format!("konghq.com/{key}"), "")[2], "not known", "{key}");
    }
}

#[test]
fn the_environment_says_which_connections_begin_with_a_header() {
    let listens = "0.0.0.0:8000 proxy_protocol, 0.0.0.0:8443 http2 ssl";
    let header = cluster(listens, "kong", "", "");
    assert_eq!(asked(&header, "http://a.example.com/"), "empty reply");
    assert_eq!(asked(&header, "https://a.example.com/"), ANSWERED);
}

#[test]
fn a_controller_of_another_class_serves_nothing() {
    let other = cluster(LISTENS, "internal", "", "");
    assert_eq!(asked(&other, "ingress/shop/front"), "not known");
    assert!(other.unjudged.iter().any(|gap| gap.because.contains("set to serve other classes")));
}
