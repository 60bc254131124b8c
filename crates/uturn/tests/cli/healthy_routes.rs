//! Routes and Ingresses that serve what they are for, whose hosts and paths a scan has to invent or to
//! pick with care: nothing is found.

use super::common::Folder;

/// A node, a client, a server, and the proxy of a Gateway with its Service.
const AROUND: &str = r#"{apiVersion: v1, kind: Node, metadata: {name: n1, annotations: {flannel.alpha.coreos.com/backend-type: vxlan}}, spec: {podCIDR: 10.244.1.0/24}, status: {addresses: [{type: InternalIP, address: 192.168.1.11}], conditions: [{type: Ready, status: "True"}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: client, namespace: shop}, spec: {nodeName: n1, containers: [{name: c, image: c}]}, status: {phase: Running, podIP: 10.244.1.2, conditions: [{type: Ready, status: "True"}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: web, namespace: shop, labels: {app: web}}, spec: {nodeName: n1, containers: [{name: c, image: c, ports: [{containerPort: 8080}]}]}, status: {phase: Running, podIP: 10.244.1.3, conditions: [{type: Ready, status: "True"}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: web, namespace: shop}, spec: {clusterIP: 10.96.0.3, selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: proxy, namespace: edge, labels: {gateway.envoyproxy.io/owning-gateway-name: edge}}, spec: {nodeName: n1, containers: [{name: envoy, image: envoyproxy/envoy:v1.33.0, ports: [{containerPort: 10080}, {containerPort: 10443}]}]}, status: {phase: Running, podIP: 10.244.1.4, conditions: [{type: Ready, status: "True"}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: envoy-edge, namespace: edge, labels: {gateway.envoyproxy.io/owning-gateway-name: edge, gateway.envoyproxy.io/owning-gateway-namespace: shop}}, spec: {type: LoadBalancer, clusterIP: 10.96.0.4, selector: {gateway.envoyproxy.io/owning-gateway-name: edge}, ports: [{name: http-80, port: 80, targetPort: 10080, nodePort: 30080}, {name: https-443, port: 443, targetPort: 10443, nodePort: 30443}]}, status: {loadBalancer: {ingress: [{ip: 192.168.1.240}]}}}
---
{apiVersion: gateway.networking.k8s.io/v1, kind: GatewayClass, metadata: {name: eg}, spec: {controllerName: gateway.envoyproxy.io/gatewayclass-controller}}
---
{apiVersion: gateway.networking.k8s.io/v1, kind: Gateway, metadata: {name: edge, namespace: shop}, spec: {gatewayClassName: eg, listeners: [{name: http, protocol: HTTP, port: 80}, {name: https, protocol: HTTPS, port: 443, hostname: "*.example.com", tls: {certificateRefs: [{name: web}]}}]}, status: {addresses: [{type: IPAddress, value: 192.168.1.240}]}}
"#;

/// A route for requests of these hosts that match.
fn route(name: &str, listener: &str, hosts: &str, rule: &str) -> String {
    format!(
        "---\n{{apiVersion: gateway.networking.k8s.io/v1, kind: HTTPRoute, metadata: {{name: {name}, \
         namespace: shop}}, spec: {{parentRefs: [{{name: edge, sectionName: {listener}}}], \
         hostnames: [{hosts}], rules: [{{{rule}}}]}}}}\n"
    )
}

const TO_WEB: &str = "backendRefs: [{name: web, port: 80}]";

fn scan(name: &str, text: &str) -> String {
    let folder = Folder::new(name);
    folder.file("a.yaml", &format!("{AROUND}{text}")).run(&["scan", "-f", "a.yaml"])
}

fn assert_healthy(name: &str, text: &str) {
    let printed = scan(name, text);
    assert!(printed.starts_with("exit 0\n--- stdout\nnothing found; "), "{name}: {printed}");
}

#[test]
fn paths_by_regular_expressions() {
    let matches = "matches: [{path: {type: RegularExpression, value: '/v[0-9]+/.*'}}]";
    let by_pattern = format!("{matches}, {TO_WEB}");
    let text = route("web", "http", "www.example.com", &by_pattern);
    assert_healthy("healthy-pattern", &text);
    // A rule that leads nowhere is still found.
    let lost = text.replace("{name: web, port: 80}", "{name: web, port: 81}");
    let printed = scan("healthy-pattern-lost", &lost);
    assert!(printed.contains("UT311"), "{printed}");
}

/// What is redirected goes to hosts that nobody calls as they are written, to paths that a rule need not
/// state, and to hosts elsewhere.
#[test]
fn redirects() {
    let to_https =
        "filters: [{type: RequestRedirect, requestRedirect: {scheme: https, statusCode: 301}}]";
    let to_host = |host: &str| {
        format!("filters: [{{type: RequestRedirect, requestRedirect: {{hostname: {host}}}}}]")
    };
    let app = route("web", "https", "www.example.com", TO_WEB);
    let below = format!("matches: [{{path: {{type: PathPrefix, value: /app}}}}], {TO_WEB}");
    for (name, routes) in [
        ("healthy-redirect-any", [app.clone(), route("redirect", "http", "", to_https)].concat()),
        (
            "healthy-redirect-wild",
            [app.clone(), route("redirect", "http", "'*.example.com'", to_https)].concat(),
        ),
        (
            "healthy-redirect-below",
            [
                route("web", "https", "www.example.com", &below),
                route("redirect", "http", "www.example.com", to_https),
            ]
            .concat(),
        ),
        (
            "healthy-redirect-away",
            [app, route("redirect", "http", "www.example.com", &to_host("docs.example.org"))]
                .concat(),
        ),
    ] {
        assert_healthy(name, &routes);
    }
}

/// The rule for every host has a path that the one before it, for a host, does not have.
#[test]
fn a_rule_without_a_host_behind_one_with_a_host() {
    let controller = r#"---
{apiVersion: networking.k8s.io/v1, kind: IngressClass, metadata: {name: nginx}, spec: {controller: k8s.io/ingress-nginx}}
---
{apiVersion: v1, kind: Pod, metadata: {name: controller, namespace: ingress-nginx, labels: {app: ingress}}, spec: {nodeName: n1, containers: [{name: controller, image: "registry.k8s.io/ingress-nginx/controller:v1.12.1", args: [/nginx-ingress-controller, --publish-service=ingress-nginx/controller], ports: [{containerPort: 80}, {containerPort: 443}]}]}, status: {phase: Running, podIP: 10.244.1.5, conditions: [{type: Ready, status: "True"}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: controller, namespace: ingress-nginx, annotations: {metallb.io/address-pool: pool}}, spec: {type: LoadBalancer, clusterIP: 10.96.0.5, selector: {app: ingress}, ports: [{name: http, port: 80, targetPort: 80, nodePort: 30081}]}, status: {loadBalancer: {ingress: [{ip: 192.168.1.241}]}}}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: shop}
spec:
  ingressClassName: nginx
  rules:
  - {host: a.example.com, http: {paths: [{path: /api, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}
  - {http: {paths: [{path: /x, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}
status: {loadBalancer: {ingress: [{ip: 192.168.1.241}]}}
"#;
    assert_healthy("healthy-any-host", controller);
}

/// Endpoints that someone wrote are where they are, also where no Service has an address yet, and an
/// endpoint is no Service's address because it lies between two.
#[test]
fn endpoints_beside_supposed_addresses() {
    for (name, address) in
        [("healthy-manual-first", "172.16.0.10"), ("healthy-manual", "10.96.0.12")]
    {
        let text = format!(
            "---\n{{apiVersion: v1, kind: Service, metadata: {{name: db, namespace: shop}}, spec: {{ports: \
             [{{port: 5432}}]}}}}\n---\n{{apiVersion: v1, kind: Endpoints, metadata: {{name: db, namespace: \
             shop}}, subsets: [{{addresses: [{{ip: {address}}}], ports: [{{port: 5432}}]}}]}}\n---\n\
             {{apiVersion: v1, kind: Service, metadata: {{name: other, namespace: shop}}, spec: {{clusterIP: \
             10.96.0.200, selector: {{app: web}}, ports: [{{port: 80, targetPort: 8080}}]}}}}\n"
        );
        assert_healthy(name, &text);
    }
}

/// kube-proxy refuses calls of a Service whose endpoints are of the other family: for want of an endpoint.
#[test]
fn endpoints_of_the_other_family() {
    let text = "---\n{apiVersion: v1, kind: Service, metadata: {name: db, namespace: shop}, spec: {clusterIP: \
                10.96.0.6, ports: [{port: 5432}]}}\n---\n{apiVersion: discovery.k8s.io/v1, kind: \
                EndpointSlice, metadata: {name: db-1, namespace: shop, labels: {kubernetes.io/service-name: \
                db}}, addressType: IPv6, ports: [{name: '', port: 5432}], endpoints: [{addresses: \
                ['fd00::3'], conditions: {ready: true}}]}\n";
    let printed = scan("other-family", text);
    assert!(printed.contains("UT311") && !printed.contains("UT601"), "{printed}");
}

/// Any way in which an ExternalName is written leads to the name that it stands for.
#[test]
fn a_service_that_stands_for_a_name_outside() {
    let folder = Folder::new("healthy-external-name");
    let text = format!(
        "{AROUND}---\n{{apiVersion: v1, kind: Service, metadata: {{name: db, namespace: shop}}, spec: \
         {{type: ExternalName, externalName: db.example.org}}}}\n"
    );
    folder.file("a.yaml", &text);
    let checked = folder.run(&["check", "service", "shop/db", "-f", "a.yaml"]);
    assert!(checked.starts_with("exit 0\n") && checked.contains("db.example.org"), "{checked}");
    for host in ["db", "db.shop", "db.shop.svc", "db.shop.svc.cluster.local"] {
        let to = format!("{host}:5432");
        let traced =
            folder.run(&["trace", "--from", "pod/shop/client", "--to", &to, "-f", "a.yaml"]);
        assert!(
            traced.contains(" has an address outside the cluster: answered at once"),
            "{traced}"
        );
    }
}

/// Pods of a StatefulSet have names below its Service, also those that are still to be made.
#[test]
fn names_of_pods_of_a_stateful_set() {
    let folder = Folder::new("healthy-stateful-set");
    let text = "---\n{apiVersion: v1, kind: Service, metadata: {name: db, namespace: shop}, spec: {clusterIP: \
                None, selector: {app: db}, ports: [{port: 5432}]}}\n---\n{apiVersion: apps/v1, kind: \
                StatefulSet, metadata: {name: db, namespace: shop}, spec: {serviceName: db, replicas: 2, \
                selector: {matchLabels: {app: db}}, template: {metadata: {labels: {app: db}}, spec: \
                {containers: [{name: c, image: c, ports: [{containerPort: 5432}]}]}}}}\n";
    folder.file("a.yaml", &format!("{AROUND}{text}"));
    for host in ["db-1.db", "db-0.db.shop.svc.cluster.local"] {
        let to = format!("{host}:5432");
        let traced =
            folder.run(&["trace", "--from", "pod/shop/client", "--to", &to, "-f", "a.yaml"]);
        assert!(traced.starts_with("exit 0\n--- stdout\nanswered at once\n"), "{traced}");
    }
}

/// In IPVS mode it is up to the network plugin whether a node reaches the address of a Service of policy
/// Local from where it has no endpoint. Where nothing names the plugin, that is a condition.
#[test]
fn a_plugin_that_nothing_names() {
    let text = AROUND.replace("annotations: {flannel.alpha.coreos.com/backend-type: vxlan}", "labels: {}")
        + "---
{apiVersion: v1, kind: Node, metadata: {name: n2}, spec: {podCIDR: 10.244.2.0/24}, status: {addresses: [{type: InternalIP, address: 192.168.1.12}], conditions: [{type: Ready, status: \"True\"}]}}
---
{apiVersion: v1, kind: Pod, metadata: {name: agent, namespace: shop}, spec: {nodeName: n2, hostNetwork: true, containers: [{name: c, image: c}]}, status: {phase: Running, podIP: 192.168.1.12, conditions: [{type: Ready, status: \"True\"}]}}
---
{apiVersion: v1, kind: Service, metadata: {name: local, namespace: shop, annotations: {metallb.io/address-pool: pool}}, spec: {type: LoadBalancer, externalTrafficPolicy: Local, clusterIP: 10.96.0.7, selector: {app: web}, ports: [{port: 80, targetPort: 8080, nodePort: 30082}]}, status: {loadBalancer: {ingress: [{ip: 192.168.1.242}]}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: kube-proxy, namespace: kube-system}
data: {config.conf: \"{kind: KubeProxyConfiguration, mode: ipvs, ipvs: {strictARP: true}, clusterCIDR: 10.244.0.0/16}\"}
";
    let folder = Folder::new("unnamed-plugin");
    let scan = ["scan", "-f", "a.yaml", "-o", "wide"];
    let printed = folder.file("a.yaml", &text).run(&scan);
    let condition = "if the pod network does not masquerade what nodes send to other nodes' pods";
    assert!(printed.starts_with("exit 0\n") && printed.contains(condition), "{printed}");
    let flannel = "---
apiVersion: v1
kind: ConfigMap
metadata: {name: kube-flannel-cfg, namespace: kube-system}
data: {cni-conf.json: '{\"name\": \"cbr0\", \"plugins\": [{\"type\": \"flannel\", \"delegate\": {\"hairpinMode\": true}}]}'}
";
    let named = folder.file("a.yaml", &format!("{text}{flannel}")).run(&["scan", "-f", "a.yaml"]);
    assert!(!named.contains("UT104"), "{named}");
}
