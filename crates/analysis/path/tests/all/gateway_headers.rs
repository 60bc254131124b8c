//! Gateways whose proxies expect a PROXY header, by objects of their controllers' own kinds: as Envoy
//! Gateway and NGINX Gateway Fabric leave them.

#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use uturn_model::{Cluster, Flow, ProxyExpectation};
use uturn_path::Engine;
use uturn_snapshot::{Manifests, Source};
use uturn_testing::manifests::node;

/// A Gateway `edge` of a class, its Service with these annotations, its proxy on the first node, and a
/// server and a client on the second.
fn objects(class: &str, parameters: &str, infrastructure: &str, annotations: &str) -> String {
    let given = format!(
        "apiVersion: uturn.dev/v1alpha1
kind: Facts
spec: {{provider: hetzner, kubeProxy: {{mode: iptables, version: v1.34.4}}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {{name: edge}}
spec: {{controllerName: {class}{parameters}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: edge, namespace: shop, labels: {{tier: public}}}}
spec:
  gatewayClassName: edge{infrastructure}
  listeners:
  - {{name: http, protocol: HTTP, port: 80}}
  - {{name: other, protocol: HTTP, port: 8080}}
status: {{addresses: [{{type: IPAddress, value: 203.0.113.100}}]}}
---
apiVersion: v1
kind: Service
metadata:
  name: edge
  namespace: shop
  labels: {{gateway.networking.k8s.io/gateway-name: edge}}
  annotations: {{{annotations}}}
spec:
  type: LoadBalancer
  clusterIP: 172.16.0.10
  selector: {{app: edge}}
  ports:
  - {{name: http-80, port: 80, targetPort: 10080, nodePort: 30080}}
  - {{name: http-8080, port: 8080, targetPort: 18080, nodePort: 30081}}
status: {{loadBalancer: {{ingress: [{{ip: 203.0.113.100}}]}}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {{name: web, namespace: shop}}
spec:
  parentRefs: [{{name: edge}}]
  hostnames: [a.example.com]
  rules: [{{backendRefs: [{{name: web, port: 80}}]}}]
---
apiVersion: v1
kind: Service
metadata: {{name: web, namespace: shop}}
spec: {{clusterIP: 172.16.0.11, selector: {{app: web}}, ports: [{{port: 80, targetPort: 8080}}]}}
"
    );
    let pod = |name: &str, node: u8, host: u8, port: &str| {
        format!(
            "---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: shop, labels: {{app: {name}}}}}
spec: {{nodeName: n{node}, containers: [{{name: c, image: c, ports: [{port}]}}]}}
status: {{phase: Running, podIP: 10.1.{node}.{host}, conditions: [{{type: Ready, status: \"True\"}}]}}
"
        )
    };
    let ports = "{containerPort: 10080}, {containerPort: 18080}";
    let pods = [
        pod("edge", 1, 20, ports),
        pod("web", 2, 30, "{containerPort: 8080}"),
        pod("client", 2, 40, ""),
    ];
    given + &node(1) + &node(2) + &pods.concat()
}

fn cluster(text: String, complete: bool) -> Cluster {
    let source = Source { name: "cluster.yaml".into(), text };
    Manifests::of(vec![source]).complete_if(complete).load().unwrap().cluster
}

/// What is expected at a port of the proxies.
fn expected(text: &str, complete: bool, port: u16) -> &'static str {
    let cluster = cluster(text.to_owned(), complete);
    let pod = cluster.pods.values().find(|pod| pod.name.name.as_str() == "edge").unwrap();
    match cluster.proxy_expectation(pod, port).unwrap() {
        ProxyExpectation::Required(_) => "required",
        ProxyExpectation::Accepted(_) => "accepted",
        ProxyExpectation::NotExpected => "none",
        ProxyExpectation::Unasked(_) => "none as far as it is given",
        ProxyExpectation::Unknown(_) => "not known",
    }
}

/// How a call of the route ends, and what is supposed of the proxies then.
fn asked(text: &str, from: &str) -> (String, Option<String>) {
    let cluster = cluster(text.to_owned(), false);
    let engine = Engine::new(&cluster).unwrap();
    let flow = Flow {
        from: from.parse().unwrap(),
        to: "http://a.example.com/".parse().unwrap(),
        protocol: uturn_model::Protocol::Tcp,
    };
    let verdict = engine.verdict(&flow).unwrap();
    let ends: Vec<String> = verdict.outcomes.iter().map(|(end, _)| end.to_string()).collect();
    let supposed = verdict.supposed.iter().find_map(uturn_path::supposed_of_servers);
    (ends.join(", "), supposed.map(|what| what.to_string()))
}

const ENVOY: &str = "gateway.envoyproxy.io/gatewayclass-controller";
const NGINX: &str = "gateway.nginx.org/nginx-gateway-controller";
const SENDS: &str = "load-balancer.hetzner.cloud/uses-proxyprotocol: 'true'";
const CLIENT: &str = "pod/shop/client";

fn policy(name: &str, namespace: &str, spec: &str) -> String {
    format!(
        "---
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: ClientTrafficPolicy
metadata: {{name: {name}, namespace: {namespace}}}
spec: {{{spec}}}
"
    )
}

fn target(section: &str) -> String {
    format!(
        "targetRefs: [{{group: gateway.networking.k8s.io, kind: Gateway, name: edge{section}}}]"
    )
}

#[test]
fn a_policy_makes_the_proxies_expect_a_header() {
    let of = |annotations: &str, setting: &str| {
        let own = policy("own", "shop", &format!("{}, {setting}", target("")));
        objects(ENVOY, "", "", annotations) + &own
    };
    let empty = || ("empty reply".to_owned(), None);
    let answered = || ("answered at once".to_owned(), None);
    for required in
        ["enableProxyProtocol: true", "proxyProtocol: {}", "proxyProtocol: {optional: false}"]
    {
        // The load balancer sends one, and pods call the proxies themselves.
        assert_eq!(asked(&of(SENDS, required), CLIENT), empty(), "{required}");
        assert_eq!(asked(&of(SENDS, required), "outside"), answered(), "{required}");
        // Nobody sends one.
        assert_eq!(asked(&of("", required), CLIENT), empty(), "{required}");
        assert_eq!(asked(&of("", required), "outside"), empty(), "{required}");
    }
    let both = "enableProxyProtocol: true, proxyProtocol: {optional: true}";
    for annotations in ["", SENDS] {
        assert_eq!(asked(&of(annotations, both), CLIENT), answered());
        assert_eq!(asked(&of(annotations, both), "outside"), answered());
    }
}

/// Without a policy the proxies expect none. That there is no other policy is only known where all are
/// given.
#[test]
fn without_a_policy_a_header_is_a_bad_request() {
    let plain = objects(ENVOY, "", "", SENDS);
    assert_eq!(expected(&plain, false, 10080), "none as far as it is given");
    assert_eq!(expected(&plain, true, 10080), "none");
    let none = Some("its pods expect no PROXY header".to_owned());
    assert_eq!(asked(&plain, "outside"), ("400 at once".to_owned(), none.clone()));
    assert_eq!(asked(&plain, CLIENT), ("answered at once".to_owned(), none));
    let silent = objects(ENVOY, "", "", "");
    assert_eq!(asked(&silent, "outside"), ("answered at once".to_owned(), None));
    assert_eq!(asked(&silent, CLIENT), ("answered at once".to_owned(), None));
    let patched = plain
        + "---\n{apiVersion: gateway.envoyproxy.io/v1alpha1, kind: EnvoyPatchPolicy, metadata: {name: p, namespace: shop}}\n";
    assert_eq!(expected(&patched, true, 10080), "none as far as it is given");
}

#[test]
fn the_closest_policy_decides_alone() {
    let base = objects(ENVOY, "", "", SENDS);
    let wide = policy("wide", "shop", &format!("{}, enableProxyProtocol: true", target("")));
    let narrow =
        policy("narrow", "shop", &format!("{}, timeout: {{}}", target(", sectionName: http")));
    let both = format!("{base}{wide}{narrow}");
    assert_eq!(expected(&both, false, 10080), "none");
    assert_eq!(expected(&both, false, 18080), "required");
    // Of two that are equally close, the older one decides.
    let second =
        policy("second", "shop", &format!("{}, proxyProtocol: {{optional: true}}", target("")));
    assert_eq!(expected(&format!("{base}{wide}{second}"), false, 10080), "not known");
    let elsewhere = policy("own", "pay", &format!("{}, enableProxyProtocol: true", target("")));
    assert_eq!(expected(&format!("{base}{elsewhere}"), true, 10080), "none");
    let old = "targetRef: {group: gateway.networking.k8s.io, kind: Gateway, name: edge}, enableProxyProtocol: true";
    assert_eq!(
        expected(&format!("{base}{}", policy("old", "shop", old)), false, 10080),
        "required"
    );
    let refused = wide
        + "status: {ancestors: [{conditions: [{type: Accepted, status: 'False', reason: Conflicted}]}]}\n";
    assert_eq!(expected(&format!("{base}{refused}"), false, 10080), "not known");
}

#[test]
fn labels_select_gateways() {
    let base = objects(ENVOY, "", "", SENDS);
    let by = |namespace: &str, labels: &str, more: &str| {
        let target =
            format!("targetSelectors: [{{kind: Gateway, matchLabels: {{tier: {labels}}}{more}}}]");
        let text = policy("all", namespace, &format!("{target}, enableProxyProtocol: true"));
        expected(&format!("{base}{text}"), true, 10080)
    };
    assert_eq!(by("shop", "public", ""), "required");
    assert_eq!(by("shop", "internal", ""), "none");
    assert_eq!(by("pay", "public", ""), "none");
    assert_eq!(by("pay", "public", ", namespaces: {from: All}"), "not known", "it takes a grant");
    let expression = ", matchExpressions: [{key: tier, operator: DoesNotExist}]";
    assert_eq!(by("shop", "public", expression), "none");
}

#[test]
fn settings_of_classes_and_gateways_make_nginx_expect_a_header() {
    let settings = |name: &str, mode: &str| {
        format!(
            "---
apiVersion: gateway.nginx.org/v1alpha2
kind: NginxProxy
metadata: {{name: {name}, namespace: nginx-gateway}}
spec: {{{mode}}}
"
        )
    };
    let header = "rewriteClientIP: {mode: ProxyProtocol, trustedAddresses: [{type: CIDR, value: 0.0.0.0/0}]}";
    let forwarded = "rewriteClientIP: {mode: XForwardedFor, trustedAddresses: [{type: CIDR, value: 10.0.0.0/8}]}";
    let of_class = ", parametersRef: {group: gateway.nginx.org, kind: NginxProxy, name: all, namespace: nginx-gateway}";
    let base = |annotations: &str| objects(NGINX, of_class, "", annotations);
    let required = base("") + &settings("all", header);
    assert_eq!(expected(&required, false, 10080), "required");
    assert_eq!(asked(&required, "outside"), ("empty reply".to_owned(), None));
    assert_eq!(expected(&(base("") + &settings("all", forwarded)), false, 10080), "none");
    assert_eq!(expected(&(base("") + &settings("all", "")), false, 10080), "none");
    assert_eq!(expected(&base(""), false, 10080), "not known", "the settings are not given");
    assert_eq!(expected(&objects(NGINX, "", "", ""), false, 10080), "none");
    // What the Gateway's own settings say comes first, and what they leave open is the class's.
    let own = "\n  infrastructure: {parametersRef: {group: gateway.nginx.org, kind: NginxProxy, name: own}}";
    let own_settings =
        |mode: &str| settings("own", mode).replace("namespace: nginx-gateway", "namespace: shop");
    let both = |own_mode: &str| {
        let text = objects(NGINX, of_class, own, "") + &settings("all", header);
        expected(&(text + &own_settings(own_mode)), false, 10080)
    };
    assert_eq!(both(forwarded), "none");
    assert_eq!(both("ipFamily: ipv4"), "required");
}

/// Settings of the class that older releases have without a namespace.
#[test]
fn older_settings_have_no_namespace() {
    let of_class = ", parametersRef: {group: gateway.nginx.org, kind: NginxProxy, name: all}";
    let settings = "---
apiVersion: gateway.nginx.org/v1alpha1
kind: NginxProxy
metadata: {name: all}
spec: {rewriteClientIP: {mode: ProxyProtocol, trustedAddresses: [{type: CIDR, value: 0.0.0.0/0}]}}
";
    let text = objects(NGINX, of_class, "", "") + settings;
    assert_eq!(expected(&text, false, 10080), "required");
}
