//! Backends that controllers call in another way than they are meant, and Services whose selector has
//! more pods than are meant.

use super::more_cures::{changes, cures, offered};
use uturn_diagnose::analysis::{Options, analyze};
use uturn_diagnose::doubts;
use uturn_diagnose::{Code, Finding, Severity};
use uturn_model::{Flow, Outcome, Protocol, Share};
use uturn_path::Engine;
use uturn_snapshot::{Manifests, Source};
use uturn_testing::manifests::{facts, node};

const FACTS: &[&str] =
    &["provider: none", "kubeProxy: {mode: iptables, version: v1.34.4, variant: upstream}"];

/// Returns the findings about wrong ports, with the titles of their cures.
fn found(objects: &str) -> Vec<Finding> {
    let text = [&facts(FACTS), objects, &node(1), &node(2)].concat();
    let manifests = Manifests::of(vec![Source { name: "a.yaml".into(), text }]).complete_if(true);
    let cluster = manifests.cluster().unwrap();
    let mut all = analyze(&manifests, &cluster, &Options::default()).unwrap().findings;
    all.retain(|finding| finding.code == Code::WrongPort);
    all
}

/// A pod that runs these containers.
fn pod(name: &str, on: u8, address: u8, labels: &str, containers: &str) -> String {
    format!(
        "---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: shop, labels: {{{labels}}}}}
spec: {{nodeName: n{on}, containers: [{containers}]}}
status: {{phase: Running, podIP: 10.1.{on}.{address}, conditions: [{{type: Ready, status: 'True'}}]}}
"
    )
}

fn service(name: &str, address: u8, more: &str, ports: &str) -> String {
    format!(
        "---
apiVersion: v1
kind: Service
metadata: {{name: {name}, namespace: shop{more}}}
spec: {{clusterIP: 172.16.0.{address}, selector: {{app: {name}}}, ports: [{ports}]}}
"
    )
}

/// An Ingress of a class for the Service `web`, at the address of the Service `front`.
fn ingress(controller: &str, port: u16) -> String {
    format!(
        "---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {{name: own}}
spec: {{controller: {controller}}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {{name: site, namespace: shop}}
spec:
  ingressClassName: own
  rules: [{{host: shop.example.com, http: {{paths: [{{path: /, pathType: Prefix, backend: {{service: {{name: web, port: {{number: {port}}}}}}}}}]}}}}]
status: {{loadBalancer: {{ingress: [{{ip: 172.16.0.30}}]}}}}
"
    )
}

/// Kong in front of a server, with these notes of its Service and this port.
fn kong(notes: &str, port: &str) -> String {
    let containers = "{name: ingress-controller, image: 'kong/kubernetes-ingress-controller:3.4', env: \
                      [{name: CONTROLLER_INGRESS_CLASS, value: own}, {name: CONTROLLER_PUBLISH_SERVICE, \
                      value: shop/front}]}, {name: proxy, image: 'kong:3.9', env: [{name: KONG_PROXY_LISTEN, \
                      value: '0.0.0.0:8000, 0.0.0.0:8443 http2 ssl'}], ports: [{name: proxy, containerPort: \
                      8000}, {name: proxy-tls, containerPort: 8443}]}";
    [
        pod("front", 1, 30, "app: front", containers),
        service("front", 30, "", "{name: kong-proxy, port: 80, targetPort: 8000}"),
        pod("web", 2, 10, "app: web", port),
        service("web", 10, notes, "{port: 443, targetPort: 8443}"),
        ingress("ingress-controllers.konghq.com/kong", 443),
    ]
    .concat()
}

#[test]
fn kong_speaks_plain_http_to_a_port_of_tls() {
    const TLS: &str = "{name: c, image: c, ports: [{name: https, containerPort: 8443}]}";
    let all = found(&kong("", TLS));
    let [finding] = all.as_slice() else { panic!("{all:#?}") };
    assert_eq!(finding.subject.to_string(), "Ingress shop/site");
    assert_eq!(finding.severity, Severity::Warning);
    assert_eq!(finding.conditions[0].as_ref(), "the pods of svc/shop/web speak TLS there");
    assert!(matches!(finding.outcome, Outcome::Status { code: 400, .. }));
    assert_eq!(&*finding.cures[0].text, "konghq.com/protocol: https for svc/shop/web");
    let stated = ", annotations: {konghq.com/protocol: https}";
    assert_eq!(found(&kong(stated, TLS)).len(), 0);
    let plain = ", annotations: {konghq.com/protocol: http}";
    assert_eq!(found(&kong(plain, TLS)).len(), 0);
    let named = "{name: c, image: c, ports: [{name: http, containerPort: 8080}]}";
    let http = kong("", named).replace("targetPort: 8443", "targetPort: 8080");
    assert_eq!(found(&http).len(), 0);
}

/// Contour's Envoy, and an Ingress with this in its `spec`.
fn contour(tls: &str) -> String {
    let envoy = "{name: shutdown-manager, image: 'ghcr.io/projectcontour/contour:v1.30.0', command: [/bin/contour], \
                 args: [envoy, shutdown-manager]}, {name: envoy, image: 'docker.io/envoyproxy/envoy:v1.31.0', command: \
                 [envoy], ports: [{name: http, containerPort: 8080}, {name: https, containerPort: 8443}, {name: metrics, containerPort: \
                 8002}]}";
    let contour = "{name: contour, image: 'ghcr.io/projectcontour/contour:v1.30.0', command: [contour], args: [serve]}";
    [
        pod("front", 1, 30, "app: front", envoy),
        pod("contour", 1, 31, "app: contour", contour),
        service(
            "front",
            30,
            "",
            "{name: http, port: 80, targetPort: 8080}, {name: https, port: 443, targetPort: 8443}",
        ),
        pod("web", 2, 10, "app: web", "{name: c, image: c, ports: [{containerPort: 8080}]}"),
        pod("client", 2, 11, "app: client", "{name: c, image: c}"),
        service("web", 10, "", "{port: 80, targetPort: 8080}"),
        ingress("projectcontour.io/contour", 80).replace("  rules:", &format!("  {tls}\n  rules:")),
    ]
    .concat()
}

/// Contour listens for TLS only once a host has it: without one, https is refused, which is no fault
/// of a cluster that wants none.
#[test]
fn contour_opens_the_port_for_tls_on_demand() {
    let all = found(&contour(""));
    assert!(!all.is_empty());
    assert!(all.iter().all(|finding| finding.severity == Severity::Info), "{all:#?}");
    assert!(all.iter().all(|finding| finding.outcome == Outcome::Refused), "{all:#?}");
    // Another port of Envoy's is no cure.
    let mut offers = all.iter().flat_map(|finding| &finding.cures);
    assert!(offers.all(|cure| cure.name != "target-port"), "{all:#?}");
    let host = [FACTS[0], FACTS[1], "dns: {outside: {shop.example.com: 172.16.0.30}}"];
    let cures = cures(&host, &contour(""), "pod/shop/client", "https://shop.example.com/");
    let title = "tls for shop.example.com in ingress/shop/site, with Secret site-tls";
    assert_eq!(offered(&cures)[0], ("ingress-tls", title));
    let lines = changes(&cures, "ingress-tls").join("\n");
    assert!(lines.contains("secretName: site-tls"), "{lines}");
    let served = contour("tls: [{hosts: [shop.example.com], secretName: site}]");
    assert_eq!(found(&served).len(), 0);
}

/// Two Deployments with pods of one label; those of the second declare these ports.
fn twins(ports: &str, more: &str) -> String {
    let deployment = |name: &str, labels: &str, ports: &str| {
        format!(
            "---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: {name}, namespace: shop}}
spec:
  replicas: 1
  selector: {{matchLabels: {{part: {name}}}}}
  template:
    metadata: {{labels: {{app: web, {labels}}}}}
    spec: {{containers: [{{name: c, image: c, ports: [{ports}]}}]}}
"
        )
    };
    [
        deployment("hook", "part: hook", "{containerPort: 8443}"),
        deployment("main", &format!("part: main{more}"), ports),
        service("web", 10, "", "{port: 443, targetPort: 8443}"),
    ]
    .concat()
}

#[test]
fn a_selector_with_pods_of_two_workloads() {
    let all = found(&twins("{containerPort: 9090}", ""));
    let [finding] = all.as_slice() else { panic!("{all:#?}") };
    assert_eq!((finding.severity, finding.share_failing), (Severity::Warning, Share::of(1, 2)));
    assert_eq!(
        finding.conditions[0].as_ref(),
        "pods of Deployment shop/main do not listen on 8443"
    );
    assert_eq!(&*finding.cures[0].text, "select part=hook too, for svc/shop/web");
    let client = pod("client", 1, 9, "app: client", "{name: c, image: c}");
    let text =
        [facts(FACTS), twins("{containerPort: 9090}", ""), client, node(1), node(2)].concat();
    let cluster = Manifests::of(vec![Source { name: "a.yaml".into(), text }]).cluster().unwrap();
    let engine = Engine::new(&cluster).unwrap();
    let (from, to) = ("pod/shop/client".parse().unwrap(), "svc/shop/web:443".parse().unwrap());
    let cases = doubts::cases(&engine, &Flow { from, to, protocol: Protocol::Tcp }).unwrap();
    let [listens_not, listens] = &*cases.verdicts() else { panic!("{cases:#?}") };
    assert_eq!(listens_not.share_failing(), Share::of(1, 2));
    assert!(listens.is_fine(), "{listens:#?}");
    // Both declare it, or nothing tells where the second listens.
    assert_eq!(found(&twins("{containerPort: 8443}", "")).len(), 0);
    assert_eq!(found(&twins("", "")).len(), 0);
}
