//! Connections through Gateways: by TCPRoutes and TLSRoutes to the proxies' pods, which pass on what is
//! said to an endpoint.

#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use uturn_model::route::{Leg, Place};
use uturn_model::{Cluster, Flow, Mechanism, ObjectKind, Protocol, Verdict};
use uturn_path::Engine;
use uturn_snapshot::{Source, read};
use uturn_testing::manifests::{facts, node};

const ENVOY: &str = "gateway.envoyproxy.io/gatewayclass-controller";

fn pod(name: &str, node: u8, host: u8, labels: &str, port: &str) -> String {
    format!(
        "---\n{{apiVersion: v1, kind: Pod, metadata: {{name: {name}, namespace: shop, labels: {{{labels}}}}}, \
         spec: {{nodeName: n{node}, containers: [{{name: c, image: c, ports: [{port}]}}]}}, \
         status: {{phase: Running, podIP: 10.1.{node}.{host}, podIPs: [{{ip: 10.1.{node}.{host}}}], \
         conditions: [{{type: Ready, status: 'True'}}]}}}}\n"
    )
}

fn service(name: &str, host: u8, port: u16, target: u16) -> String {
    format!(
        "---\n{{apiVersion: v1, kind: Service, metadata: {{name: {name}, namespace: shop}}, spec: {{clusterIP: \
         172.16.0.{host}, selector: {{app: {name}}}, ports: [{{port: {port}, targetPort: {target}}}]}}}}\n"
    )
}

/// Two nodes: a proxy on the first, a database on the second, and a client on each.
fn objects(controller: &str) -> String {
    let mut text = [node(1), node(2)].concat();
    text += &format!(
        "---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {{name: edge}}
spec: {{controllerName: {controller}}}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {{name: edge, namespace: shop}}
spec:
  gatewayClassName: edge
  listeners:
  - {{name: db, protocol: TCP, port: 5432}}
  - {{name: other, protocol: TCP, port: 5433, allowedRoutes: {{kinds: [{{kind: TCPRoute}}]}}}}
  - {{name: pass, protocol: TLS, port: 8443, hostname: '*.example.com', tls: {{mode: Passthrough}}}}
  - {{name: end, protocol: TLS, port: 9443, tls: {{mode: Terminate, certificateRefs: [{{name: a}}]}}}}
  - {{name: https, protocol: HTTPS, port: 443, hostname: web.example.org, tls: {{certificateRefs: [{{name: a}}]}}}}
  - {{name: beside, protocol: TLS, port: 443, hostname: '*.example.com', tls: {{mode: Passthrough}}}}
status: {{addresses: [{{type: IPAddress, value: 10.0.0.100}}]}}
---
apiVersion: v1
kind: Service
metadata:
  name: edge
  namespace: shop
  labels: {{gateway.networking.k8s.io/gateway-name: edge}}
spec:
  type: LoadBalancer
  clusterIP: 172.16.0.10
  selector: {{app: edge}}
  ports:
  - {{name: db, port: 5432, targetPort: 15432, nodePort: 30001}}
  - {{name: other, port: 5433, targetPort: 15433, nodePort: 30002}}
  - {{name: pass, port: 8443, targetPort: 18443, nodePort: 30003}}
  - {{name: end, port: 9443, targetPort: 19443, nodePort: 30004}}
  - {{name: https, port: 443, targetPort: 10443, nodePort: 30005}}
status: {{loadBalancer: {{ingress: [{{ip: 10.0.0.100}}]}}}}
"
    );
    text += &pod("proxy", 1, 20, "app: edge", "");
    text += &pod("db-0", 2, 30, "app: db", "{containerPort: 5432}");
    text += &pod("web-0", 2, 31, "app: web", "{containerPort: 8443}");
    text += &pod("client-1", 1, 40, "app: client", "");
    text += &pod("client-2", 2, 41, "app: client", "");
    text += &service("db", 11, 5432, 5432);
    text += &service("web", 12, 443, 8443);
    text += &service("empty", 13, 5432, 5432);
    text += &service("closed", 14, 5432, 1);
    text + &pod("closed-0", 2, 32, "app: closed", "{containerPort: 5432}")
}

/// A route that its controller has accepted.
fn route(kind: &str, name: &str, section: &str, spec: &str) -> String {
    format!(
        "---\n{{apiVersion: gateway.networking.k8s.io/v1alpha2, kind: {kind}, metadata: {{name: {name}, \
         namespace: shop}}, spec: {{parentRefs: [{{name: edge, sectionName: {section}}}], {spec}}}, status: \
         {{parents: [{{controllerName: c, parentRef: {{name: edge, sectionName: {section}}}, conditions: \
         [{{type: Accepted, status: 'True'}}]}}]}}}}\n"
    )
}

fn to(backends: &str) -> String {
    format!("rules: [{{backendRefs: [{backends}]}}]")
}

const DB: &str = "{name: db, port: 5432}";

fn cluster(manifests: &str) -> Cluster {
    let mode = "kubeProxy: {mode: iptables, version: v1.34.4}";
    let text = facts(&[mode]) + manifests;
    let mut cluster = read(vec![Source { name: "cluster.yaml".into(), text }]).unwrap().cluster;
    // Programs listen at the ports that containers declare, and at no others.
    cluster.extent.listeners = true;
    cluster
}

fn flow(from: &str, to: &str) -> Flow {
    Flow { from: from.parse().unwrap(), to: to.parse().unwrap(), protocol: Protocol::Tcp }
}

fn verdict(cluster: &Cluster, from: &str, to: &str) -> Verdict {
    Engine::new(cluster).unwrap().verdict(&flow(from, to)).unwrap()
}

fn asked(cluster: &Cluster, from: &str, to: &str) -> Vec<String> {
    let shown = |(end, share): &(uturn_model::Outcome, uturn_model::Share)| match (share.get()
        * 100.0)
        .round()
    {
        100.0 => end.to_string(),
        percent => format!("{percent} % {end}"),
    };
    verdict(cluster, from, to).outcomes.iter().map(shown).collect()
}

const CLIENT: &str = "pod/shop/client-2";
const ANSWERED: [&str; 1] = ["answered at once"];

#[test]
fn a_connection_is_passed_to_an_endpoint() {
    let text = objects(ENVOY) + &route("TCPRoute", "db", "db", &to(DB));
    let cluster = cluster(&text);
    assert!(cluster.ingresses.values().all(|ingress| ingress.unjudged.is_empty()));
    for called in ["10.0.0.100:5432", "tcproute/shop/db", "tcproute/shop/db:5432"] {
        for from in [CLIENT, "pod/shop/client-1", "pod/shop/db-0", "node/n1", "node/n2"] {
            assert_eq!(asked(&cluster, from, called), ANSWERED, "{from} {called}");
        }
    }
    // What is spoken does not matter to the proxy. The endpoint does not speak TLS.
    assert_eq!(asked(&cluster, CLIENT, "http://10.0.0.100:5432/"), ANSWERED);
    assert_eq!(asked(&cluster, CLIENT, "https://10.0.0.100:5432/"), ["TLS error"]);
    assert_eq!(asked(&cluster, CLIENT, "svc/shop/edge:5432"), ANSWERED);
}

/// The endpoint sees the proxy's address.
#[test]
fn the_proxy_is_the_client_of_the_endpoint() {
    let text = objects(ENVOY) + &route("TCPRoute", "db", "db", &to(DB));
    let cluster = cluster(&text);
    let engine = Engine::new(&cluster).unwrap();
    let routes = engine.verdict(&flow(CLIENT, "tcproute/shop/db")).unwrap().routes;
    let seen: Vec<Leg> = routes
        .iter()
        .flat_map(|route| &route.hops)
        .filter(|hop| hop.place == Place::Pod("shop/db-0".parse().unwrap()))
        .flat_map(|hop| hop.steps.iter().filter_map(|step| step.after))
        .collect();
    assert!(!seen.is_empty());
    assert!(seen.iter().any(|leg| leg.src.ip().to_string() == "10.1.1.20"), "{seen:?}");
    assert!(seen.iter().all(|leg| leg.src.ip().to_string() != "10.1.2.41"), "{seen:?}");
}

#[test]
fn what_no_endpoint_takes_is_closed() {
    let mechanism = |to: &str| verdict(&cluster(to), CLIENT, "tcproute/shop/db").mechanisms;
    let whole = objects(ENVOY) + SYSTEM;
    for (backends, why) in [
        ("{name: empty, port: 5432}", Mechanism::NoEndpoint),
        ("{name: gone, port: 5432}", Mechanism::NoEndpoint),
        ("{name: db, port: 9999}", Mechanism::NoEndpoint),
        ("{name: db, port: 5432, weight: 0}", Mechanism::NoEndpoint),
        ("{name: closed, port: 5432}", Mechanism::WrongPort),
    ] {
        let text = whole.clone() + &route("TCPRoute", "db", "db", &to(backends));
        assert_eq!(
            asked(&cluster(&text), CLIENT, "tcproute/shop/db"),
            ["empty reply"],
            "{backends}"
        );
        assert_eq!(
            asked(&cluster(&text), CLIENT, "https://10.0.0.100:5432/"),
            ["TLS error"],
            "{backends}"
        );
        assert_eq!(mechanism(&text), [why], "{backends}");
    }
    let partly = "{name: db, port: 5432, weight: 3}, {name: empty, port: 5432, weight: 1}";
    let text = whole + &route("TCPRoute", "db", "db", &to(partly));
    assert_eq!(
        asked(&cluster(&text), CLIENT, "tcproute/shop/db"),
        ["75 % answered at once", "25 % empty reply"]
    );
}

#[test]
fn sections_and_kinds_decide_where_a_route_is_attached() {
    let all = "---\n{apiVersion: gateway.networking.k8s.io/v1, kind: TCPRoute, metadata: {name: db, namespace: \
               shop}, spec: {parentRefs: [{name: edge}], rules: [{backendRefs: [{name: db, port: 5432}]}]}}\n";
    let both = cluster(&(objects(ENVOY) + all));
    for port in [5432, 5433] {
        assert_eq!(asked(&both, CLIENT, &format!("tcproute/shop/db:{port}")), ANSWERED);
    }
    // Nothing says that its controller serves it.
    let about = "whether Gateway shop/edge serves TCPRoute shop/db";
    assert!(
        both.supposed.iter().any(|supposed| supposed.subject == about.into()),
        "{:?}",
        both.supposed
    );
    let other_kind = objects(ENVOY).replace("{kind: TCPRoute}", "{kind: UDPRoute}");
    let other_kind = other_kind + all;
    let one = cluster(&other_kind);
    assert_eq!(asked(&one, CLIENT, "tcproute/shop/db:5432"), ANSWERED);
    let engine = Engine::new(&one).unwrap();
    assert!(engine.verdict(&flow(CLIENT, "tcproute/shop/db:5433")).is_err());
    // A port of the Gateway without a route.
    assert_eq!(asked(&one, CLIENT, "10.0.0.100:5433"), ["not known"]);
    let refused = route("TCPRoute", "db", "db", &to(DB)).replace("'True'", "'False'");
    let refused = cluster(&(objects(ENVOY) + &refused));
    assert!(refused.ingresses.values().all(uturn_model::Ingress::is_unserved));
}

#[test]
fn of_several_routes_at_a_port_the_oldest_is_served() {
    let empty = to("{name: empty, port: 5432}");
    let two = |ages: [&str; 2]| {
        let made = |name: &str, spec: &str, age: &str| {
            route("TCPRoute", name, "db", spec)
                .replace("namespace: shop}, spec", &format!("namespace: shop{age}}}, spec"))
        };
        cluster(
            &(objects(ENVOY) + SYSTEM + &made("a", &empty, ages[0]) + &made("b", &to(DB), ages[1])),
        )
    };
    let at = |day: u8| format!(", creationTimestamp: '2026-01-{day:02}T00:00:00Z'");
    let call = |cluster: &Cluster| asked(cluster, CLIENT, "10.0.0.100:5432");
    assert_eq!(call(&two([&at(1), &at(2)])), ["empty reply"]);
    assert_eq!(call(&two([&at(2), &at(1)])), ANSWERED);
    assert_eq!(call(&two([&at(1), &at(1)])), ["empty reply"], "the first by name");
    let open = two([&at(1), ""]);
    assert_eq!(call(&open), ["not known"]);
    let of_routes = open.unjudged.iter().filter(|gap| gap.objects[0].kind == ObjectKind::TcpRoute);
    let because: Vec<&str> = of_routes.map(|gap| &*gap.because).collect();
    assert_eq!(
        because,
        [
            "TCPRoute shop/a and TCPRoute shop/b are attached to its port 5432, and which of them is the oldest \
          is not given"
        ]
    );
    let alike = objects(ENVOY)
        + &route("TCPRoute", "a", "db", &to(DB))
        + &route("TCPRoute", "b", "db", &to(DB));
    assert_eq!(call(&cluster(&alike)), ANSWERED);
}

#[test]
fn a_service_of_another_namespace_has_to_be_granted() {
    let other = objects(ENVOY)
        + "---\n{apiVersion: v1, kind: Service, metadata: {name: db, namespace: data}, spec: {clusterIP: \
           172.16.0.20, selector: {app: db}, ports: [{port: 5432}]}}\n"
        + &pod("db-9", 2, 33, "app: db", "{containerPort: 5432}")
            .replace("namespace: shop", "namespace: data")
        + &route("TCPRoute", "db", "db", &to("{name: db, namespace: data, port: 5432}"));
    let grant = |kind: &str| {
        format!(
            "---\n{{apiVersion: gateway.networking.k8s.io/v1beta1, kind: ReferenceGrant, metadata: {{name: a, \
             namespace: data}}, spec: {{from: [{{group: gateway.networking.k8s.io, kind: {kind}, namespace: \
             shop}}], to: [{{group: '', kind: Service}}]}}}}\n"
        )
    };
    let call = |text: &str| asked(&cluster(text), CLIENT, "tcproute/shop/db");
    assert_eq!(call(&other), ["not known"]);
    assert_eq!(call(&(other.clone() + &grant("TCPRoute"))), ANSWERED);
    assert_eq!(call(&(other + &grant("HTTPRoute"))), ["empty reply"]);
}

#[test]
fn tls_is_passed_by_the_name_that_is_asked_for() {
    let web =
        format!("hostnames: [a.example.com, a.example.org], {}", to("{name: web, port: 443}"));
    let rest = format!("hostnames: ['*.example.com'], {}", to("{name: empty, port: 5432}"));
    let text = objects(ENVOY)
        + SYSTEM
        + &route("TLSRoute", "web", "pass", &web)
        + &route("TLSRoute", "rest", "pass", &rest);
    let cluster = cluster(&text);
    let call = |host: &str| asked(&cluster, CLIENT, &format!("tlsroute/shop/{host}"));
    assert_eq!(call("web"), ANSWERED);
    assert_eq!(call("web/a.example.com"), ANSWERED);
    assert_eq!(call("web:8443/b.example.com"), ["TLS error"], "the other route, without endpoints");
    assert_eq!(call("web:8443/a.example.org"), ["TLS error"], "the listener does not have it");
    assert_eq!(asked(&cluster, CLIENT, "https://10.0.0.100:8443/"), ["TLS error"], "no name");
    assert_eq!(asked(&cluster, CLIENT, "http://10.0.0.100:8443/"), ["empty reply"], "no TLS");
    // Nothing says what the client asks for.
    assert_eq!(asked(&cluster, CLIENT, "10.0.0.100:8443"), ANSWERED);
}

#[test]
fn tls_may_end_at_the_proxy() {
    let plain = objects(ENVOY)
        .replace("containerPort: 8443", "containerPort: 8080, name: http")
        .replace("targetPort: 8443", "targetPort: 8080");
    let web = format!("hostnames: [a.example.com], {}", to("{name: web, port: 443}"));
    let ends = cluster(&(plain.clone() + &route("TLSRoute", "web", "end", &web)));
    assert_eq!(asked(&ends, CLIENT, "tlsroute/shop/web"), ANSWERED);
    let passes = cluster(&(plain + &route("TLSRoute", "web", "pass", &web)));
    assert_eq!(asked(&passes, CLIENT, "tlsroute/shop/web"), ["TLS error"]);
    let any = cluster(&(objects(ENVOY) + &route("TCPRoute", "db", "end", &to(DB))));
    assert_eq!(asked(&any, CLIENT, "tcproute/shop/db"), ANSWERED);
}

/// A port may have listeners that end TLS beside those that pass it on.
#[test]
fn names_decide_between_requests_and_connections() {
    let web = format!("hostnames: [a.example.com], {}", to("{name: web, port: 443}"));
    let requests = "---\n{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {name: site, \
                    namespace: shop}, spec: {parentRefs: [{name: edge, sectionName: https}], hostnames: \
                    [web.example.org], rules: [{backendRefs: [{name: empty, port: 5432}]}]}}\n";
    let text = objects(ENVOY) + SYSTEM + requests + &route("TLSRoute", "web", "beside", &web);
    let cluster = cluster(&text);
    assert_eq!(asked(&cluster, CLIENT, "httproute/shop/site"), ["503 at once"]);
    assert_eq!(asked(&cluster, CLIENT, "tlsroute/shop/web"), ANSWERED);
    assert_eq!(asked(&cluster, CLIENT, "httproute/shop/site/b.example.org/"), ["404 at once"]);
}

/// Of two endpoints one refuses: some proxies try the other.
#[test]
fn proxies_try_as_many_endpoints_as_they_are_known_to() {
    let server = "apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: two-1, namespace: shop, \
                  labels: {kubernetes.io/service-name: two}}, addressType: IPv4";
    let slice = format!(
        "---\n{{{server}, ports: [{{port: 5432, protocol: TCP}}], endpoints: [{{addresses: [10.1.2.30], nodeName: \
         n2, targetRef: {{kind: Pod, name: db-0, namespace: shop}}, conditions: {{ready: true}}}}, {{addresses: \
         [10.1.2.31], nodeName: n2, targetRef: {{kind: Pod, name: web-0, namespace: shop}}, conditions: {{ready: \
         true}}}}]}}\n"
    );
    let two = service("two", 15, 5432, 5432).replace("selector: {app: two}, ", "");
    let call = |controller: &str| {
        let route = route("TCPRoute", "db", "db", &to("{name: two, port: 5432}"));
        let cluster = cluster(&(objects(controller) + &two + &slice + &route));
        asked(&cluster, CLIENT, "tcproute/shop/db")
    };
    assert_eq!(call(ENVOY), ["50 % answered at once", "50 % empty reply"]);
    assert_eq!(call("gateway.nginx.org/nginx-gateway-controller"), ANSWERED);
    assert_eq!(call("istio.io/gateway-controller"), ["50 % answered at once", "50 % not known"]);
}

/// A header that the load balancer sends is for the proxy where that looks for one. Else it is the beginning
/// of what is passed on.
#[test]
fn headers_are_read_or_passed_on() {
    let sends = |text: String| {
        let annotated = "namespace: shop\n  annotations: {load-balancer.hetzner.cloud/uses-proxyprotocol: 'true'}\n  labels";
        text.replace("namespace: shop\n  labels", annotated)
    };
    let policy = "---\n{apiVersion: gateway.envoyproxy.io/v1alpha1, kind: ClientTrafficPolicy, metadata: {name: a, \
                  namespace: shop}, spec: {targetRefs: [{group: gateway.networking.k8s.io, kind: Gateway, name: \
                  edge}], enableProxyProtocol: true}}\n";
    let db = route("TCPRoute", "db", "db", &to(DB));
    let called = |text: &str, from: &str, to: &str| {
        let facts = facts(&["provider: hetzner", "kubeProxy: {mode: iptables, version: v1.34.4}"]);
        let source = Source { name: "cluster.yaml".into(), text: facts + text };
        let cluster = read(vec![source]).unwrap().cluster;
        asked(&cluster, from, to)
    };
    let call = |text: &str, from: &str| called(text, from, "10.0.0.100:5432");
    let expects = sends(objects(ENVOY)) + policy + &db;
    assert_eq!(call(&expects, "outside"), ANSWERED);
    assert_eq!(call(&expects, CLIENT), ["empty reply"], "without a header");
    let passes = sends(objects(ENVOY)) + &db;
    assert_eq!(call(&passes, "outside"), ANSWERED, "the database is supposed to read it");
    // Behind the proxy is another one, which does not look for a header.
    let nginx = pod("nginx-0", 2, 35, "app: nginx", "{name: http, containerPort: 80}")
        .replace("image: c", "image: registry.example/ingress-nginx/controller:v1.12.0, args: [/nginx-ingress-controller]");
    let ingress = "---\n{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a, namespace: shop}, spec: \
                   {ingressClassName: nginx, rules: [{host: a.example.com, http: {paths: [{path: /, pathType: Prefix, \
                   backend: {service: {name: web, port: {number: 443}}}}]}}]}}\n";
    let inner = service("nginx", 19, 80, 80)
        + &nginx
        + ingress
        + &route("TCPRoute", "db", "db", &to("{name: nginx, port: 80}"));
    let url = "http://10.0.0.100:5432/";
    let text = sends(objects(ENVOY)) + &inner;
    assert_eq!(called(&text, "outside", url), ["400 at once"], "the header is passed on");
    assert_eq!(
        called(&text, CLIENT, url),
        ["404 at once"],
        "no header, and no rule for the address"
    );
    assert_eq!(called(&(text + policy), "outside", url), ["404 at once"], "the header is read");
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
