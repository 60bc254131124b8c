//! Hosts of controllers that are asked by https, and routes that no listener takes.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use uturn_diagnose::{Code, Finding, Severity, diagnose};
use uturn_path::Engine;
use uturn_scan::Scanner;
use uturn_snapshot::{Manifests, Source};

/// A controller behind a load balancer, a server, and an Ingress. A test replaces parts of it.
pub(super) const CLUSTER: &str = "
apiVersion: v1
kind: Node
metadata: {name: n1}
spec: {podCIDR: 10.244.1.0/24, providerID: 'hcloud://1'}
status: {addresses: [{type: InternalIP, address: 10.0.0.11}], conditions: [{type: Ready, status: 'True'}]}
---
apiVersion: v1
kind: Pod
metadata: {name: front, namespace: web, labels: {app: front}}
spec:
  nodeName: n1
  containers: [CONTAINER]
status: {phase: Running, podIP: 10.244.1.8, conditions: [{type: Ready, status: 'True'}]}
---
apiVersion: v1
kind: Service
metadata: {name: front, namespace: web, annotations: {BALANCER}}
spec:
  type: LoadBalancer
  clusterIP: 10.96.0.8
  selector: {app: front}
  ports: [{name: http, port: 80, targetPort: TARGET, nodePort: 30080}, {name: https, port: 443, targetPort: BEHIND, nodePort: 30443}]
status: {loadBalancer: {ingress: [{ip: 203.0.113.10}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: shop, namespace: web, labels: {app: shop}}
spec:
  nodeName: n1
  containers: [{name: c, image: c, ports: [{containerPort: 8080}]}]
status: {phase: Running, podIP: 10.244.1.9, conditions: [{type: Ready, status: 'True'}]}
---
apiVersion: v1
kind: Service
metadata: {name: shop, namespace: web}
spec: {clusterIP: 10.96.0.20, selector: {app: shop}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: shop, namespace: web, annotations: {NOTES}}
spec:
  ingressClassName: own
  TLS
  rules: [{host: shop.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: shop, port: {number: 80}}}}]}}]
status: {loadBalancer: {ingress: [{ip: 203.0.113.10}]}}
---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: own}
spec: {controller: CLASS}
---
apiVersion: uturn.dev/v1alpha1
kind: Facts
spec:
  kubeProxy: {mode: iptables, version: v1.30.0}
  network: {plugin: flannel, podCIDRs: [10.244.0.0/16]}
---
";

const NGINX: [(&str, &str); 4] = [
    (
        "CONTAINER",
        "{name: c, image: 'registry.k8s.io/ingress-nginx/controller:v1.11.0', \
         args: [/nginx-ingress-controller, --ingress-class=own, --controller-class=k8s.io/own], \
         ports: [{name: http, containerPort: 80}, {name: https, containerPort: 443}]}",
    ),
    ("CLASS", "k8s.io/own"),
    ("TARGET", "http"),
    ("NOTES", ""),
];

pub(super) const TRAEFIK: [(&str, &str); 4] = [
    (
        "CONTAINER",
        "{name: c, image: 'traefik:v3.1.0', args: [--entryPoints.web.address=:8000/tcp, \
         --entryPoints.websecure.address=:8443/tcp, --entryPoints.websecure.http.tls=true, \
         --providers.kubernetesingress], \
         ports: [{name: web, containerPort: 8000}, {name: websecure, containerPort: 8443}]}",
    ),
    ("CLASS", "traefik.io/ingress-controller"),
    ("TARGET", "web"),
    ("BALANCER", ""),
];

fn diagnosed(text: &str) -> Vec<Finding> {
    let source = Source { name: "cluster.yaml".into(), text: text.to_owned() };
    let cluster = Manifests::of(vec![source]).complete_if(true).cluster().unwrap();
    let engine = Engine::new(&cluster).unwrap();
    let scanner = Scanner::new(&engine);
    diagnose(&scanner, &scanner.scan(&scanner.targets()).unwrap()).unwrap()
}

/// What is found by asking hosts by https: the subject, the severity and the outcome.
fn found(all: &[&[(&str, &str)]]) -> Vec<String> {
    let mut text = CLUSTER.to_owned();
    for (mark, value) in all.iter().copied().flatten() {
        text = text.replace(mark, value);
    }
    let shown =
        |finding: Finding| format!("{} {} {}", finding.subject, finding.severity, finding.outcome);
    let asked =
        |finding: &Finding| finding.targets.iter().any(|target| target.contains("by https"));
    diagnosed(&text).into_iter().filter(asked).map(shown).collect()
}

const NO_TLS: &[(&str, &str)] = &[("  TLS\n", "")];
const TLS: &[(&str, &str)] = &[("TLS", "tls: [{hosts: [shop.example.com], secretName: shop}]")];

/// Behind a load balancer that ends TLS, the controller's port has to take plain requests.
#[test]
fn plain_requests_to_a_port_with_tls_are_an_error() {
    const ENDS: (&str, &str) = ("BALANCER", "load-balancer.hetzner.cloud/protocol: https");
    const PASSES: (&str, &str) = ("BALANCER", "load-balancer.hetzner.cloud/protocol: tcp");
    for tls in [NO_TLS, TLS] {
        let to = |balancer, behind| found(&[&NGINX, tls, &[balancer, ("BEHIND", behind)]]);
        assert_eq!(to(ENDS, "https"), ["Service web/front error 400 at once"]);
        assert!(to(PASSES, "https").is_empty());
    }
    assert!(found(&[&NGINX, NO_TLS, &[ENDS, ("BEHIND", "http")]]).is_empty());
}

/// A router for plain requests only has no answer to https.
#[test]
fn a_host_without_a_rule_for_https_is_a_warning() {
    let at =
        |notes: &str, tls| found(&[&TRAEFIK, tls, &[("NOTES", notes), ("BEHIND", "websecure")]]);
    let only = "traefik.ingress.kubernetes.io/router.entrypoints: web";
    assert_eq!(at(only, NO_TLS), ["Ingress web/shop warning 404 at once"]);
    assert!(at("", NO_TLS).is_empty());
    assert!(at("", TLS).is_empty());
}

/// The hosts of an Ingress of a class that nobody serves lead to the controller that ignores it.
#[test]
fn an_ingress_that_nothing_serves_is_404_by_its_own_name_too() {
    let mut text = CLUSTER.replace("ingressClassName: own", "ingressClassName: nginx");
    let status = text.rfind("status: {loadBalancer").unwrap();
    let end = status + text[status..].find('\n').unwrap() + 1;
    text.replace_range(status..end, "");
    for (mark, value) in NGINX.iter().chain(NO_TLS).chain(&[("BALANCER", ""), ("BEHIND", "https")])
    {
        text = text.replace(mark, value);
    }
    let source = Source { name: "cluster.yaml".into(), text };
    let cluster = Manifests::of(vec![source]).complete_if(true).cluster().unwrap();
    let engine = Engine::new(&cluster).unwrap();
    for to in ["ingress/web/shop", "http://shop.example.com/"] {
        let flow = uturn_model::Flow {
            from: "pod/web/shop".parse().unwrap(),
            to: to.parse().unwrap(),
            protocol: uturn_model::Protocol::Tcp,
        };
        let outcomes = engine.verdict(&flow).unwrap().outcomes;
        let shown: Vec<String> = outcomes.iter().map(|(outcome, _)| outcome.to_string()).collect();
        assert_eq!(shown, ["404 at once"], "{to}");
    }
}

/// A route that no listener of its Gateway takes is named, with the reason.
#[test]
fn a_route_that_no_listener_takes_is_found() {
    let routes = "
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: traefik}
spec: {controllerName: traefik.io/gateway-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: edge}
spec: {gatewayClassName: traefik, listeners: [{name: web, protocol: HTTP, port: 8000, FROM}]}
STATUS
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: shop, namespace: web}
spec: {parentRefs: [{name: edge, namespace: edge}], hostnames: [route.example.com], rules: [{backendRefs: [{name: shop, port: 80}]}]}
";
    let mut text = CLUSTER.to_owned() + routes;
    let more = [("NOTES", ""), ("BEHIND", "websecure"), ("  TLS\n", "")];
    for (mark, value) in TRAEFIK.iter().chain(&more) {
        text = text.replace(mark, value);
    }
    let all = "allowedRoutes: {namespaces: {from: All}}";
    let refused = "status: {listeners: [{name: web, conditions: \
                   [{type: Accepted, status: 'False', reason: PortUnavailable}]}]}";
    for (from, status, why) in [
        ("", "", "listener web takes routes of namespace edge only"),
        (all, refused, "listener web is not accepted (PortUnavailable)"),
        (all, "", ""),
    ] {
        let from = if from.is_empty() { "hostname: '*.example.com'" } else { from };
        let findings = diagnosed(&text.replace("FROM", from).replace("STATUS", status));
        let ignored: Vec<&Finding> =
            findings.iter().filter(|finding| finding.code == Code::IngressIgnored).collect();
        if why.is_empty() {
            assert!(ignored.is_empty());
            continue;
        }
        let [finding] = &ignored[..] else { panic!("{why}: {}", ignored.len()) };
        assert_eq!(finding.subject.to_string(), "HTTPRoute web/shop");
        assert_eq!(finding.severity, Severity::Error);
        assert!(finding.other_evidence[0].what.contains(why), "{}", finding.other_evidence[0].what);
    }
}

/// A VirtualService is read by the Gateways that it names with their namespace.
#[test]
fn a_gateway_has_no_route_for_a_host_that_no_virtual_service_brings_to_it() {
    let mesh = "
apiVersion: v1
kind: Pod
metadata: {name: gateway, namespace: mesh, labels: {app: gateway}}
spec:
  nodeName: n1
  containers: [{name: istio-proxy, image: proxyv2, args: [proxy, router], ports: [{containerPort: 8080}]}]
status: {phase: Running, podIP: 10.244.1.7, conditions: [{type: Ready, status: 'True'}]}
---
apiVersion: v1
kind: Service
metadata: {name: gateway, namespace: mesh}
spec: {clusterIP: 10.96.0.7, selector: {app: gateway}, ports: [{name: http, port: 80, targetPort: 8080}]}
---
apiVersion: networking.istio.io/v1
kind: Gateway
metadata: {name: edge, namespace: mesh}
spec: {selector: {app: gateway}, servers: [{port: {number: 80, protocol: HTTP, name: http}, hosts: ['*']}]}
---
apiVersion: networking.istio.io/v1
kind: VirtualService
metadata: {name: shop, namespace: web}
spec: {hosts: [a.example.com], gateways: [NAMED], http: [{route: [{destination: {host: shop}}]}]}
";
    let mut text = CLUSTER.to_owned() + mesh;
    let more = [("NOTES", ""), ("BEHIND", "websecure"), ("  TLS\n", "")];
    for (mark, value) in TRAEFIK.iter().chain(&more) {
        text = text.replace(mark, value);
    }
    let text = text
        .replace("kind: Facts\nspec:\n", "kind: Facts\nspec:\n  dns: {outside: {a.example.com: 10.244.1.7, b.example.com: 10.244.1.7}}\n");
    let asked = |text: &str, host: &str| {
        let source = Source { name: "cluster.yaml".into(), text: text.to_owned() };
        let cluster = Manifests::of(vec![source]).complete_if(true).cluster().unwrap();
        let engine = Engine::new(&cluster).unwrap();
        let flow = uturn_model::Flow {
            from: "pod/web/shop".parse().unwrap(),
            to: format!("http://{host}:8080/").parse().unwrap(),
            protocol: uturn_model::Protocol::Tcp,
        };
        let outcomes = engine.verdict(&flow).unwrap().outcomes;
        outcomes.iter().map(|(outcome, _)| outcome.to_string()).collect::<String>()
    };
    let found = |text: &str| {
        let all = diagnosed(text).into_iter();
        all.filter(|finding| finding.code == Code::GatewayOpensNothing).collect::<Vec<_>>()
    };
    let right = text.replace("NAMED", "mesh/edge");
    assert_eq!(asked(&right, "a.example.com"), "answered at once");
    assert_eq!(asked(&right, "b.example.com"), "404 at once");
    assert!(found(&right).is_empty());
    let wrong = text.replace("NAMED", "edge");
    assert_eq!(asked(&wrong, "a.example.com"), "404 at once");
    let all = found(&wrong);
    let [finding] = &all[..] else { panic!("{}", all.len()) };
    assert_eq!(finding.subject.to_string(), "Gateway mesh/edge");
    let what = &finding.other_evidence[0].what;
    assert!(what.contains("is for Gateway web/edge, which does not exist"), "{what}");
}

/// Endpoints of a Service without a selector belong to a port by its name.
#[test]
fn endpoints_of_another_port_name_are_none() {
    let by_hand = "
apiVersion: v1
kind: Service
metadata: {name: data, namespace: web}
spec: {clusterIP: 10.96.0.30, ports: [{name: sql, port: 5432}]}
---
apiVersion: v1
kind: Endpoints
metadata: {name: data, namespace: web}
subsets: [{addresses: [{ip: 192.0.2.7}], ports: [{NAME port: 5432}]}]
";
    let mut text = CLUSTER.to_owned() + by_hand;
    let more = [("NOTES", ""), ("BEHIND", "websecure"), ("  TLS\n", "")];
    for (mark, value) in TRAEFIK.iter().chain(&more) {
        text = text.replace(mark, value);
    }
    let found = |name: &str| {
        let all = diagnosed(&text.replace("NAME", name));
        let is_it = |finding: &Finding| finding.subject.to_string() == "Service web/data";
        all.into_iter().filter(is_it).collect::<Vec<Finding>>()
    };
    assert!(found("name: sql,").is_empty());
    for (name, words) in
        [("", "a port (5432) that has no name"), ("name: db,", "that is called db")]
    {
        let all = found(name);
        let [finding] = &all[..] else { panic!("{name}: {}", all.len()) };
        assert_eq!(finding.code, Code::NoEndpoints);
        assert!(
            finding.other_evidence[0].what.contains(words),
            "{}",
            finding.other_evidence[0].what
        );
    }
}
