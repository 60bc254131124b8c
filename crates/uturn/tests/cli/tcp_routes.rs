//! TCPRoutes and TLSRoutes, from files to findings.

use super::common::Folder;

/// A Gateway whose proxies run on the first of two nodes, a database on the second, and a client there.
const CLUSTER: &str = "apiVersion: v1
kind: Node
metadata: {name: n1}
spec: {podCIDR: 10.244.1.0/24, providerID: \"gce://shop/europe-west1-b/n1\"}
status: {addresses: [{type: InternalIP, address: 10.132.0.11}]}
---
apiVersion: v1
kind: Node
metadata: {name: n2}
spec: {podCIDR: 10.244.2.0/24, providerID: \"gce://shop/europe-west1-b/n2\"}
status: {addresses: [{type: InternalIP, address: 10.132.0.12}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: GatewayClass
metadata: {name: eg}
spec: {controllerName: gateway.envoyproxy.io/gatewayclass-controller}
---
apiVersion: gateway.networking.k8s.io/v1
kind: Gateway
metadata: {name: edge, namespace: shop}
spec:
  gatewayClassName: eg
  listeners:
  - name: db
    protocol: TCP
    port: 5432
    allowedRoutes: {kinds: [{kind: TCPRoute}]}
  - name: web
    protocol: TLS
    port: 443
    tls: {mode: Passthrough}
status: {addresses: [{type: IPAddress, value: 203.0.113.7}]}
---
apiVersion: v1
kind: Service
metadata:
  name: envoy-shop-edge
  namespace: envoy-gateway-system
  labels:
    gateway.envoyproxy.io/owning-gateway-name: edge
    gateway.envoyproxy.io/owning-gateway-namespace: shop
spec:
  type: LoadBalancer
  clusterIP: 10.96.0.50
  selector: {app: envoy}
  ports:
  - {name: tcp-5432, port: 5432, targetPort: 5432, nodePort: 30432}
  - {name: tls-443, port: 443, targetPort: 10443, nodePort: 30443}
status: {loadBalancer: {ingress: [{ip: 203.0.113.7}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: envoy-a, namespace: envoy-gateway-system, labels: {app: envoy}}
spec: {nodeName: n1, containers: [{name: envoy, image: envoy}]}
status: {phase: Running, podIP: 10.244.1.7, conditions: [{type: Ready, status: \"True\"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: db-0, namespace: shop, labels: {app: db}}
spec: {nodeName: n2, containers: [{name: db, image: db, ports: [{containerPort: 5432}]}]}
status: {phase: Running, podIP: 10.244.2.8, conditions: [{type: Ready, status: \"True\"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: client, namespace: shop, labels: {app: client}}
spec: {nodeName: n2, containers: [{name: c, image: c}]}
status: {phase: Running, podIP: 10.244.2.9, conditions: [{type: Ready, status: \"True\"}]}
---
apiVersion: v1
kind: Service
metadata: {name: db, namespace: shop}
spec: {clusterIP: 10.96.0.51, selector: {app: db}, ports: [{port: 5432}]}
---
apiVersion: v1
kind: Service
metadata: {name: empty, namespace: shop}
spec: {clusterIP: 10.96.0.52, selector: {app: none}, ports: [{port: 5432}]}
---
apiVersion: gateway.networking.k8s.io/v1
kind: TCPRoute
metadata:
  name: db
  namespace: shop
  creationTimestamp: \"2026-01-02T00:00:00Z\"
spec:
  parentRefs:
  - name: edge
    sectionName: db
  rules:
  - backendRefs:
    - name: db
      port: 5432
";

const FLOW: [&str; 4] = ["--from", "pod/shop/client", "--to", "tcproute/shop/db"];

fn run(folder: &Folder, command: &str, more: &[&str]) -> String {
    folder.run(&[&[command, "-f", "a.yaml", "--complete"][..], more].concat())
}

#[test]
fn a_trace_shows_the_proxy_and_its_own_connection() {
    let folder = Folder::new("tcp-route-trace");
    folder.file("a.yaml", CLUSTER);
    let trace = run(&folder, "trace", &[&FLOW[..], &["-o", "wide"]].concat());
    assert!(trace.starts_with("exit 0\n--- stdout\nanswered at once"), "{trace}");
    for step in [
        "203.0.113.7:5432 ⇒ 10.244.1.7:5432",
        "connections at port 5432 → an endpoint of Service shop/db: dials 10.244.2.8:5432",
        "10.244.1.7:41000 → 10.244.2.8:5432  a process listens on this port",
        "TCPRoute shop/db  a.yaml:",
    ] {
        assert!(trace.contains(step), "{step}: {trace}");
    }
    assert!(
        trace.contains("supposed: whether Gateway shop/edge serves TCPRoute shop/db: it does"),
        "{trace}"
    );
}

#[test]
fn a_scan_finds_a_route_that_leads_nowhere() {
    let folder = Folder::new("tcp-route-scan");
    folder.file("a.yaml", &CLUSTER.replace("- name: db\n      port", "- name: empty\n      port"));
    let scan = run(&folder, "scan", &[]);
    let line = scan.lines().find(|line| line.contains("tcproute/shop/db :5432")).unwrap();
    assert!(line.starts_with("warning   always empty reply") && line.contains("UT311"), "{scan}");
    let trace = run(&folder, "trace", &FLOW);
    assert!(
        trace.contains("Service shop/empty has no endpoint that is ready: closes the connection"),
        "{trace}"
    );
    let cure = run(&folder, "cure", &FLOW);
    assert!(cure.contains("tcproute/shop/db"), "{cure}");
}

#[test]
fn a_healthy_route_has_no_finding() {
    let folder = Folder::new("tcp-route-healthy");
    let healthy = CLUSTER.replace("selector: {app: none}", "selector: {app: db}");
    folder.file("a.yaml", &healthy);
    let scan = run(&folder, "scan", &[]);
    assert!(scan.starts_with("exit 0"), "{scan}");
    let check = run(&folder, "check", &["ingress"]);
    assert!(check.contains("tcproute/shop/db\n"), "{check}");
    assert!(check.contains("pods that call it are answered at once"), "{check}");
    assert!(!check.contains("404"), "connections have no status: {check}");
}

/// Of two routes for one port, the older has the connections: ages are read from files that the API server
/// wrote, and kept where a bundle is made of them.
#[test]
fn the_oldest_route_is_served() {
    let folder = Folder::new("tcp-route-age");
    let other = CLUSTER.rsplit_once("---\n").unwrap().1;
    let other = other
        .replace("name: db\n  namespace", "name: a\n  namespace")
        .replace("- name: db\n      port", "- name: empty\n      port");
    let call = ["--from", "pod/shop/client", "--to", "203.0.113.7:5432"];
    for (day, end) in [("01", "empty reply"), ("03", "answered at once")] {
        let other = other.replace("2026-01-02", &format!("2026-01-{day}"));
        folder.file("a.yaml", &format!("{CLUSTER}---\n{other}"));
        let trace = run(&folder, "trace", &call);
        assert!(trace.contains(&format!("--- stdout\n{end}")), "{day}: {trace}");
        let collected = folder.run(&["collect", "-f", "a.yaml", "--redact", "-o", day]);
        assert!(collected.starts_with("exit 0"), "{collected}");
        let bundle = folder.run(&["scan", "--bundle", day, "--complete"]);
        assert_eq!(bundle.contains("always empty reply"), day == "01", "{bundle}");
    }
    let ageless = other.replace("  creationTimestamp: \"2026-01-02T00:00:00Z\"\n", "");
    folder.file("a.yaml", &format!("{CLUSTER}---\n{ageless}"));
    let trace = run(&folder, "trace", &call);
    assert!(trace.contains("which of them is the oldest is not given"), "{trace}");
}

#[test]
fn a_name_decides_where_tls_is_passed_to() {
    let folder = Folder::new("tls-route");
    let tls = "---
apiVersion: gateway.networking.k8s.io/v1alpha3
kind: TLSRoute
metadata: {name: web, namespace: shop}
spec:
  parentRefs: [{name: edge}]
  hostnames: [a.example.com]
  rules: [{backendRefs: [{name: web, port: 443}]}]
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {clusterIP: 10.96.0.53, selector: {app: web}, ports: [{port: 443, targetPort: 8443}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web-0, namespace: shop, labels: {app: web}}
spec: {nodeName: n2, containers: [{name: web, image: web, ports: [{containerPort: 8443}]}]}
status: {phase: Running, podIP: 10.244.2.10, conditions: [{type: Ready, status: \"True\"}]}
";
    folder.file("a.yaml", &format!("{CLUSTER}{tls}"));
    let flow = ["--from", "pod/shop/client", "--to", "tlsroute/shop/web/a.example.com"];
    let trace = run(&folder, "trace", &flow);
    assert!(trace.starts_with("exit 0"), "{trace}");
    assert!(trace.contains("connections for a.example.com → an endpoint"), "{trace}");
    let unnamed = ["--from", "pod/shop/client", "--to", "https://203.0.113.7/"];
    let trace = run(&folder, "trace", &unnamed);
    assert!(trace.contains("--- stdout\nTLS error"), "{trace}");
    let scan = run(&folder, "scan", &[]);
    assert!(!scan.contains("tlsroute"), "{scan}");
}

#[test]
fn a_target_that_is_no_route_is_said() {
    let folder = Folder::new("tcp-route-bad");
    folder.file("a.yaml", CLUSTER);
    let from = ["--from", "pod/shop/client"];
    let to = |to| run(&folder, "trace", &[&from[..], &["--to", to]].concat());
    for (target, said) in [
        ("tcproute/shop/none", "tcproute/shop/none"),
        ("tcproute/shop/db:5433", "tcproute/shop/db:5433"),
        ("tcproute/shop/db/a.example.com", "expected tcproute/NAMESPACE/NAME[:PORT]"),
        ("tlsroute/shop", "expected tlsroute/NAMESPACE/NAME[:PORT][/HOST]"),
    ] {
        let printed = to(target);
        assert!(printed.starts_with("exit 2") && printed.contains(said), "{printed}");
    }
}
