//! Istio's gateways expect a PROXY header where an EnvoyFilter, their pods or the mesh say so.

#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use uturn_model::{Cluster, Flow, ProxyExpectation};
use uturn_path::Engine;
use uturn_snapshot::Source;
use uturn_testing::manifests::{facts, node};

/// A gateway of this release, whose pods have these annotations.
fn objects(release: &str, annotations: &str) -> String {
    let gateway = format!(
        "---
apiVersion: v1
kind: Pod
metadata:
  name: gateway
  namespace: istio-ingress
  labels: {{app: gateway, istio: ingressgateway}}
  annotations: {{{annotations}}}
spec:
  nodeName: n1
  containers:
  - {{name: istio-proxy, image: \"registry.example/proxyv2:{release}\", args: [proxy, router], \
     ports: [{{containerPort: 8080}}, {{containerPort: 8443}}]}}
status: {{phase: Running, podIP: 10.1.1.20, podIPs: [{{ip: 10.1.1.20}}], conditions: [{{type: Ready, status: \"True\"}}]}}
"
    );
    let others = "---
apiVersion: v1
kind: Service
metadata: {name: gateway, namespace: istio-ingress}
spec:
  type: LoadBalancer
  clusterIP: 172.16.0.10
  selector: {istio: ingressgateway}
  ports: [{name: http2, port: 80, targetPort: 8080, nodePort: 30080}, {name: https, port: 443, targetPort: 8443}]
status: {loadBalancer: {ingress: [{ip: 10.0.0.100}]}}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {clusterIP: 172.16.0.11, selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: front, namespace: shop}
spec: {ingressClassName: istio, rules: [{host: a.example.com, http: {paths: [{path: /, pathType: Prefix, \
       backend: {service: {name: web, port: {number: 80}}}}]}}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web, namespace: shop, labels: {app: web}}
spec: {nodeName: n2, containers: [{name: web, image: web}]}
status: {phase: Running, podIP: 10.1.2.30, podIPs: [{ip: 10.1.2.30}], conditions: [{type: Ready, status: \"True\"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: client, namespace: shop}
spec: {nodeName: n2, containers: [{name: c, image: c}]}
status: {phase: Running, podIP: 10.1.2.40, podIPs: [{ip: 10.1.2.40}], conditions: [{type: Ready, status: \"True\"}]}
";
    gateway + others + &node(1) + &node(2)
}

fn cluster(text: &str) -> Cluster {
    let text = facts(&["kubeProxy: {mode: iptables, version: v1.34.4}"]) + text;
    let source = Source { name: "cluster.yaml".into(), text };
    uturn_snapshot::read(vec![source]).unwrap().cluster
}

/// What is expected at the port of the gateway's pods.
fn expected(text: &str, port: u16) -> &'static str {
    let cluster = cluster(text);
    let pod = cluster.pods.values().find(|pod| pod.name.name.as_str() == "gateway").unwrap();
    match cluster.proxy_expectation(pod, port).unwrap() {
        ProxyExpectation::Required(_) => "required",
        ProxyExpectation::Accepted(_) => "accepted",
        ProxyExpectation::NotExpected | ProxyExpectation::Unasked(_) => "none",
        ProxyExpectation::Unknown(_) => "not known",
    }
}

fn asked(text: &str, to: &str) -> String {
    let cluster = cluster(text);
    let engine = Engine::new(&cluster).unwrap();
    let flow = Flow {
        from: "pod/shop/client".parse().unwrap(),
        to: to.parse().unwrap(),
        protocol: uturn_model::Protocol::Tcp,
    };
    let outcomes = engine.verdict(&flow).unwrap().outcomes;
    outcomes
        .iter()
        .map(|(outcome, share)| format!("{share} {outcome}"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// An EnvoyFilter of a namespace with this in its `spec`.
fn filter(namespace: &str, selector: &str, patch: &str) -> String {
    format!(
        "---
apiVersion: networking.istio.io/v1alpha3
kind: EnvoyFilter
metadata: {{name: headers, namespace: {namespace}}}
spec:
  workloadSelector: {{labels: {{istio: {selector}}}}}
  configPatches: [{{{patch}}}]
"
    )
}

const MERGED: &str = "applyTo: LISTENER, patch: {operation: MERGE, value: {listener_filters: \
     [{name: envoy.filters.listener.proxy_protocol}, {name: envoy.filters.listener.tls_inspector}]}}";
const OWN: &str = "proxy.istio.io/config: '{\"gatewayTopology\": {\"proxyProtocol\": {}}}'";

/// The load balancer sends no header, and neither do pods.
#[test]
fn a_gateway_closes_connections_without_the_header() {
    let plain = objects("1.22.1", "");
    let usual = "1 answered at once";
    assert_eq!(asked(&plain, "http://a.example.com/"), usual);
    let wanted = plain + &filter("istio-system", "ingressgateway", MERGED);
    assert_eq!(asked(&wanted, "http://a.example.com/"), "1 empty reply");
    assert_eq!(asked(&wanted, "svc/istio-ingress/gateway:80"), "1 empty reply");
    assert_eq!(asked(&objects("1.22.1", OWN), "http://a.example.com/"), "1 empty reply");
}

#[test]
fn a_filter_is_for_its_pods_and_ports() {
    let with = |namespace: &str, selector: &str, patch: &str| {
        objects("1.22.1", "") + &filter(namespace, selector, patch)
    };
    assert_eq!(expected(&with("istio-ingress", "ingressgateway", MERGED), 8080), "required");
    assert_eq!(expected(&with("shop", "ingressgateway", MERGED), 8080), "not known");
    assert_eq!(expected(&with("istio-system", "egressgateway", MERGED), 8080), "not known");
    let one = format!("match: {{context: GATEWAY, listener: {{portNumber: 8443}}}}, {MERGED}");
    let one = with("istio-system", "ingressgateway", &one);
    assert_eq!(expected(&one, 8443), "required");
    assert_eq!(expected(&one, 8080), "not known");
    let inner = format!("match: {{context: SIDECAR_INBOUND}}, {MERGED}");
    assert_eq!(expected(&with("istio-system", "ingressgateway", &inner), 8080), "not known");
    let other = MERGED.replace("proxy_protocol", "http_inspector");
    assert_eq!(expected(&with("istio-system", "ingressgateway", &other), 8080), "not known");
    let optional = "applyTo: LISTENER_FILTER, patch: {operation: INSERT_FIRST, value: {name: headers, \
         typed_config: {'@type': type.googleapis.com/envoy.extensions.filters.listener.proxy_protocol.v3.ProxyProtocol, \
         allow_requests_without_proxy_protocol: true}}}";
    let optional = with("istio-system", "ingressgateway", optional);
    assert_eq!(expected(&optional, 8080), "accepted");
    assert_eq!(asked(&optional, "http://a.example.com/"), "1 answered at once");
}

#[test]
fn the_mesh_and_the_pods_own_settings_say_it_too() {
    let mesh = "---
apiVersion: v1
kind: ConfigMap
metadata: {name: istio, namespace: istio-system}
data:
  mesh: |-
    defaultConfig:
      discoveryAddress: istiod.istio-system.svc:15012
      gatewayTopology:
        proxyProtocol: {}
    trustDomain: cluster.local
";
    assert_eq!(expected(&(objects("1.22.1", "") + mesh), 8080), "required");
    let counted = "proxy.istio.io/config: '{\"gatewayTopology\": {\"numTrustedProxies\": 1}}'";
    assert_eq!(expected(&objects("1.22.1", counted), 8080), "not known");
    assert_eq!(expected(&objects("1.20.0-distroless", OWN), 8080), "required");
    // Proxies before 1.19 do not know the setting.
    assert_eq!(expected(&objects("1.16.0", OWN), 8080), "not known");
}
