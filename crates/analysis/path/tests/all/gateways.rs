//! Requests through Gateways: by hosts and paths of routes, to the proxies' pods, and from there to
//! endpoints.

#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use uturn_model::{Cluster, Flow, Ingress, Protocol};
use uturn_path::Engine;
use uturn_snapshot::Source;
use uturn_testing::manifests::{facts, node};

fn pod(namespace: &str, name: &str, node: u8, host: u8, labels: &str, port: &str) -> String {
    format!(
        "---\n{{apiVersion: v1, kind: Pod, metadata: {{name: {name}-{node}, namespace: {namespace}, labels: \
         {{{labels}}}}}, spec: {{nodeName: n{node}, containers: [{{name: c, image: c, ports: [{port}]}}]}}, \
         status: {{phase: Running, podIP: 10.1.{node}.{host}, podIPs: [{{ip: 10.1.{node}.{host}}}], \
         conditions: [{{type: Ready, status: 'True'}}]}}}}\n"
    )
}

fn service(namespace: &str, name: &str, host: u8, selector: &str) -> String {
    format!(
        "---\n{{apiVersion: v1, kind: Service, metadata: {{name: {name}, namespace: {namespace}}}, spec: \
         {{clusterIP: 172.16.0.{host}, selector: {{{selector}}}, ports: [{{port: 80, targetPort: 8080}}]}}}}\n"
    )
}

/// As Envoy Gateway leaves them: a Service and pods in a namespace of its own, with labels.
const PROXY: &str = "---
apiVersion: v1
kind: Service
metadata:
  name: envoy-shop-edge-0a1b
  namespace: envoy-gateway-system
  labels: {gateway.envoyproxy.io/owning-gateway-name: edge, gateway.envoyproxy.io/owning-gateway-namespace: shop}
spec:
  type: LoadBalancer
  clusterIP: 172.16.0.10
  externalTrafficPolicy: Local
  selector: {gateway.envoyproxy.io/owning-gateway-name: edge}
  ports:
  - {name: http-80, port: 80, targetPort: 10080, nodePort: 30080}
  - {name: https-443, port: 443, targetPort: 10443, nodePort: 30443}
status: {loadBalancer: {ingress: [{ip: 10.0.0.100}]}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: eg}
spec: {controllerName: gateway.envoyproxy.io/gatewayclass-controller}
";

const GATEWAY: &str = "---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: shop}
spec:
  gatewayClassName: eg
  listeners:
  - {name: http, protocol: HTTP, port: 80, allowedRoutes: {namespaces: {from: All}}}
  - {name: https, protocol: HTTPS, port: 443, hostname: '*.example.com', tls: {certificateRefs: [{name: web}]}}
status: {addresses: [{type: IPAddress, value: 10.0.0.100}]}
";

/// Two nodes: a proxy on the first, a server of each version on both, and a client on the second.
fn objects() -> String {
    let mut text = [node(1), node(2), PROXY.to_owned()].concat();
    let proxy = "gateway.envoyproxy.io/owning-gateway-name: edge";
    text += &pod(
        "envoy-gateway-system",
        "proxy",
        1,
        20,
        proxy,
        "{containerPort: 10080}, {containerPort: 10443}",
    );
    for node in [1, 2] {
        text += &pod("shop", "web", node, 30, "app: web", "{containerPort: 8080}");
        text += &pod("pay", "pay", node, 31, "app: pay", "{containerPort: 8080}");
    }
    text += &pod("shop", "client", 2, 40, "app: client", "");
    text += &service("shop", "web", 11, "app: web");
    text += &service("shop", "empty", 12, "app: none");
    text += &service("pay", "pay", 13, "app: pay");
    text
}

fn route(namespace: &str, spec: &str) -> String {
    named("web", namespace, spec)
}

fn named(name: &str, namespace: &str, spec: &str) -> String {
    format!(
        "---\n{{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {{name: {name}, namespace: \
         {namespace}}}, spec: {{{spec}}}}}\n"
    )
}

fn cluster(manifests: &str) -> Cluster {
    let mode = "kubeProxy: {mode: iptables, version: v1.34.4}";
    let source = Source { name: "cluster.yaml".into(), text: facts(&[mode]) + manifests };
    uturn_snapshot::read(vec![source]).unwrap().cluster
}

fn asked(cluster: &Cluster, from: &str, to: &str) -> Vec<String> {
    let engine = Engine::new(cluster).unwrap();
    let flow =
        Flow { from: from.parse().unwrap(), to: to.parse().unwrap(), protocol: Protocol::Tcp };
    let verdict = engine.verdict(&flow).unwrap();
    let shown = |(end, share): &(uturn_model::Outcome, uturn_model::Share)| match (share.get()
        * 100.0)
        .round()
    {
        100.0 => end.to_string(),
        percent => format!("{percent} % {end}"),
    };
    verdict.outcomes.iter().map(shown).collect()
}

const CLIENT: &str = "pod/shop/client-2";
const ANSWERED: [&str; 1] = ["answered at once"];
const EDGE: &str = "parentRefs: [{name: edge}], hostnames: [shop.example.com]";

#[test]
fn a_route_leads_through_the_gateway_to_an_endpoint() {
    let rules = "rules: [{matches: [{path: {type: PathPrefix, value: /shop}}], backendRefs: [{name: web, port: 80}]}]";
    let cluster = cluster(&(objects() + GATEWAY + &route("shop", &format!("{EDGE}, {rules}"))));
    assert!(cluster.ingresses.values().all(|ingress| ingress.unjudged.is_empty()));
    for from in [CLIENT, "pod/shop/web-1", "pod/pay/pay-2"] {
        for scheme in ["http", "https"] {
            let to = format!("{scheme}://shop.example.com/shop/cart");
            assert_eq!(asked(&cluster, from, &to), ANSWERED, "{from} {to}");
        }
    }
    assert_eq!(asked(&cluster, CLIENT, "httproute/shop/web"), ANSWERED);
    assert_eq!(asked(&cluster, CLIENT, "http://shop.example.com/"), ["404 at once"]);
    assert_eq!(asked(&cluster, CLIENT, "http://10.0.0.100/shop"), ["404 at once"]);
}

#[test]
fn sections_and_hosts_decide_which_listener_serves() {
    let to_tls = "rules: [{filters: [{type: RequestRedirect, requestRedirect: {scheme: https, statusCode: 301}}]}]";
    let web = "rules: [{backendRefs: [{name: web, port: 80}]}]";
    let on = |section: &str| {
        format!(
            "parentRefs: [{{name: edge, sectionName: {section}}}], hostnames: [shop.example.com]"
        )
    };
    let text = objects()
        + GATEWAY
        + &named("sent", "shop", &format!("{}, {to_tls}", on("http")))
        + &named("web", "shop", &format!("{}, {web}", on("https")));
    let both = cluster(&text);
    assert_eq!(asked(&both, CLIENT, "https://shop.example.com/"), ANSWERED);
    assert_eq!(asked(&both, CLIENT, "http://shop.example.com/"), ANSWERED, "by way of https");
    let only =
        cluster(&(objects() + GATEWAY + &named("web", "shop", &format!("{}, {web}", on("https")))));
    assert_eq!(asked(&only, CLIENT, "http://shop.example.com/"), ["404 at once"]);
    // A host that the listener does not serve, and one that a star stands for.
    let other = "parentRefs: [{name: edge, sectionName: https}], hostnames: [a.example.org]";
    let other = cluster(&(objects() + GATEWAY + &named("web", "shop", &format!("{other}, {web}"))));
    assert!(other.ingresses.values().all(Ingress::is_unserved));
    let wild = "parentRefs: [{name: edge, sectionName: https}]";
    let wild = cluster(&(objects() + GATEWAY + &named("web", "shop", &format!("{wild}, {web}"))));
    assert_eq!(asked(&wild, CLIENT, "https://a.example.com/"), ANSWERED);
}

/// Traefik's chart writes the ports of its entry points, which are the pods'.
#[test]
fn a_listener_at_a_port_of_the_pods_is_called_by_the_service_s() {
    let at_pods = GATEWAY.replace("port: 80,", "port: 10080,");
    let rules = "rules: [{backendRefs: [{name: web, port: 80}]}]";
    let text = objects() + &at_pods + &route("shop", &format!("{EDGE}, {rules}"));
    let cluster = cluster(&text);
    let ports = |ingress: &Ingress| -> Vec<u16> {
        let route = ingress.route.as_ref().unwrap();
        route.listeners.iter().map(|listener| listener.port.number()).collect()
    };
    assert!(cluster.ingresses.values().all(|ingress| !ports(ingress).contains(&10080)));
    assert_eq!(asked(&cluster, CLIENT, "httproute/shop/web"), ANSWERED);
    assert_eq!(asked(&cluster, CLIENT, "http://shop.example.com/"), ANSWERED);
}

/// A rule that sends clients to where they are ends at once: they take it for a loop.
#[test]
fn a_redirect_that_goes_round_ends() {
    let round = "rules: [{filters: [{type: RequestRedirect, requestRedirect: {scheme: https}}]}]";
    let cluster = cluster(&(objects() + GATEWAY + &route("shop", &format!("{EDGE}, {round}"))));
    assert_eq!(asked(&cluster, CLIENT, "https://shop.example.com/"), ["302 at once"]);
    assert_eq!(asked(&cluster, CLIENT, "http://shop.example.com/"), ["302 at once"]);
}

#[test]
fn weights_divide_requests() {
    let rules = "rules: [{backendRefs: [{name: web, port: 80, weight: 3}, {name: gone, port: 80, weight: 1}, \
                 {name: empty, port: 80, weight: 0}]}]";
    let text = objects() + GATEWAY + &route("shop", &format!("{EDGE}, {rules}"));
    let partly = cluster(&text);
    assert_eq!(
        asked(&partly, CLIENT, "http://shop.example.com/"),
        ["75 % answered at once", "25 % not known"]
    );
    let whole = cluster(&(text + SYSTEM));
    assert_eq!(
        asked(&whole, CLIENT, "http://shop.example.com/"),
        ["75 % answered at once", "25 % 500 at once"]
    );
}

/// A call of a method is a request for `/SERVICE/METHOD`, at the listeners that HTTPRoutes have too.
#[test]
fn a_grpc_route_leads_by_service_and_method() {
    let rule = |matched: &str, service: &str| {
        format!("{{matches: [{matched}], backendRefs: [{{name: {service}, port: 80}}]}}")
    };
    let rules = [
        rule("{method: {service: shop.Cart, method: Add}}", "web"),
        rule("{method: {service: shop.Stock}}", "web"),
        rule("{method: {service: 'shop[.]A.*', method: Get, type: RegularExpression}}", "empty"),
    ];
    let spec = format!("{EDGE}, rules: [{}]", rules.join(", "));
    let route = named("calls", "shop", &spec).replace("HTTPRoute", "GRPCRoute");
    let cluster = cluster(&(objects() + GATEWAY + &route));
    let ends = |path: &str| {
        asked(&cluster, CLIENT, &format!("grpcroute/shop/calls/shop.example.com{path}"))
    };
    for path in ["/shop.Cart/Add", "/shop.Stock/Take", "/shop.Stock/Put"] {
        assert_eq!(ends(path), ANSWERED, "{path}");
    }
    for path in ["/shop.Cart/Remove", "/shop.Stocks/Take", "/other"] {
        assert_eq!(ends(path), ["404 at once"], "{path}");
    }
    assert_eq!(asked(&cluster, CLIENT, "grpcroute/shop/calls"), ANSWERED);
}

#[test]
fn a_service_of_another_namespace_has_to_be_granted() {
    let rules = "rules: [{backendRefs: [{name: pay, namespace: pay, port: 80}]}]";
    let grant = |from: &str| {
        format!(
            "---\n{{apiVersion: gateway.networking.k8s.io/v1beta1, kind: ReferenceGrant, metadata: {{name: a, \
             namespace: pay}}, spec: {{from: [{{group: gateway.networking.k8s.io, kind: HTTPRoute, namespace: \
             {from}}}], to: [{{group: '', kind: Service}}]}}}}\n"
        )
    };
    let text = objects() + GATEWAY + &route("shop", &format!("{EDGE}, {rules}"));
    let to = "http://shop.example.com/";
    assert_eq!(asked(&cluster(&text), CLIENT, to), ["not known"]);
    assert_eq!(asked(&cluster(&(text.clone() + &grant("shop"))), CLIENT, to), ANSWERED);
    assert_eq!(asked(&cluster(&(text + &grant("other"))), CLIENT, to), ["500 at once"]);
}

#[test]
fn routes_of_other_namespaces_attach_where_they_may() {
    let spec = "parentRefs: [{name: edge, namespace: shop}], hostnames: [pay.example.com], rules: [{backendRefs: [{name: pay, port: 80}]}]";
    let cluster = cluster(&(objects() + GATEWAY + &route("pay", spec)));
    assert_eq!(asked(&cluster, CLIENT, "http://pay.example.com/"), ANSWERED);
    assert_eq!(asked(&cluster, CLIENT, "https://pay.example.com/"), ["404 at once"]);
}

/// A route that no listener takes is kept: the Gateway's proxies answer 404 for its hosts.
#[test]
fn a_route_that_no_listener_takes_is_404() {
    let rules = "rules: [{backendRefs: [{name: pay, port: 80}]}]";
    let spec = |parent: &str, host: &str| {
        format!(
            "parentRefs: [{{name: edge, namespace: shop{parent}}}], hostnames: [{host}], {rules}"
        )
    };
    let refusal = "status: {parents: [{parentRef: {name: edge, namespace: shop}, controllerName: c, \
                   conditions: [{type: Accepted, status: 'False', reason: NoMatchingParent}]}]}";
    for (parent, host, status, why) in [
        (
            ", sectionName: https",
            "pay.example.com",
            "",
            "listener https takes routes of namespace shop",
        ),
        (", sectionName: gone", "pay.example.com", "", "it has no listener gone"),
        (", port: 81", "pay.example.com", "", "it has no listener of port 81"),
        ("", "pay.example.com", refusal, "its status says NoMatchingParent"),
    ] {
        let one = route("pay", &spec(parent, host)).replace("}}\n", &format!("}}, {status}}}\n"));
        let cluster = cluster(&(objects() + GATEWAY + &one));
        let ingress = cluster.ingresses.values().next().unwrap();
        let because = &ingress.unserved.as_ref().unwrap().because;
        assert!(because.contains(why), "{because}");
        assert!(ingress.unjudged.is_empty());
        for to in ["http://pay.example.com/", "httproute/pay/web"] {
            assert_eq!(asked(&cluster, CLIENT, to), ["404 at once"], "{because} {to}");
        }
    }
    // One of two listeners takes it: nothing is wrong with the other.
    let one = route("pay", &spec("", "pay.example.com"));
    let cluster = cluster(&(objects() + GATEWAY + &one));
    let ingress = cluster.ingresses.values().next().unwrap();
    assert!(ingress.unserved.is_none() && ingress.route.as_ref().unwrap().refused.is_empty());
}

#[test]
fn a_service_without_endpoints_is_503() {
    let rules = "rules: [{backendRefs: [{name: empty, port: 80}]}]";
    let text = objects() + GATEWAY + &route("shop", &format!("{EDGE}, {rules}")) + SYSTEM;
    assert_eq!(asked(&cluster(&text), CLIENT, "http://shop.example.com/"), ["503 at once"]);
}

#[test]
fn what_is_missing_is_said() {
    let rules = "rules: [{backendRefs: [{name: web, port: 80}]}]";
    let own = route("shop", &format!("{EDGE}, {rules}"));
    let because = |text: &str| {
        let gaps = cluster(text).unjudged;
        gaps.iter().map(|gap| format!("{gap}: {}", gap.because)).collect::<Vec<_>>().join("; ")
    };
    let without_gateway = because(&(objects() + &own));
    assert!(without_gateway.contains("Gateway shop/edge is not in the input"), "{without_gateway}");
    let bare = objects()
        .replace("gateway.envoyproxy.io/owning-gateway-name: edge, ", "")
        .replace("10.0.0.100", "10.0.0.101");
    let without_service = because(&(bare + GATEWAY + &own));
    assert!(
        without_service.contains("no Service is labelled as that of Gateway shop/edge"),
        "{without_service}"
    );
    let cilium = (objects() + GATEWAY + &own)
        .replace("gateway.envoyproxy.io/gatewayclass-controller", "io.cilium/gateway-controller");
    assert!(
        because(&cilium).contains("1 route that Cilium Gateway serves"),
        "{}",
        because(&cilium)
    );
    assert_eq!(asked(&cluster(&cilium), CLIENT, "httproute/shop/web"), ["not known"]);
}

/// A cloud's load balancer serves the Gateway: pods are its targets.
#[test]
fn a_cloud_serves_a_gateway() {
    let rules = "rules: [{backendRefs: [{name: web, port: 80}]}]";
    let gateway = GATEWAY.replace("gatewayClassName: eg", "gatewayClassName: gke-l7-rilb");
    let text = objects()
        + &gateway.replace("10.0.0.100", "10.0.0.120")
        + &route("shop", &format!("{EDGE}, {rules}"));
    let cluster = cluster(&text);
    for scheme in ["http", "https"] {
        assert_eq!(asked(&cluster, CLIENT, &format!("{scheme}://shop.example.com/")), ANSWERED);
    }
    assert_eq!(asked(&cluster, CLIENT, "http://10.0.0.120/"), ["404 at once"]);
}

/// What only a listing of a whole cluster has.
const SYSTEM: &str = "---
{apiVersion: v1, kind: Service, metadata: {name: kubernetes, namespace: default}, spec: {clusterIP: 172.16.0.1, ports: [{port: 443}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: kube-dns, namespace: kube-system}, spec: {clusterIP: 172.16.0.2, ports: [{port: 53, protocol: UDP}]}}
---
{apiVersion: v1, kind: Endpoints, metadata: {name: kubernetes, namespace: default}, subsets: [{addresses: [{ip: 10.0.0.9}], ports: [{port: 6443}]}]}
---
{apiVersion: v1, kind: Endpoints, metadata: {name: kube-dns, namespace: kube-system}, subsets: [{addresses: [{ip: 10.1.1.9}], ports: [{port: 53, protocol: UDP}]}]}
";
