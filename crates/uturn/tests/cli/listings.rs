//! Manifests beside a listing of the cluster that they are about to be applied to: the listing is
//! complete, and does not tell of what will be made of them.

use super::as_found::{ANSWERED, KUBERNETES, WELL, facts, nodes, pod, service};
use super::common::{Folder, assert_printed};

/// All that a cluster lists: two namespaces, and a Service of each with its endpoints.
fn listing() -> String {
    const SYSTEM: &str = "---
apiVersion: v1
kind: Service
metadata: {name: kube-dns, namespace: kube-system}
spec: {clusterIP: 10.96.0.10, selector: {k8s-app: kube-dns}, ports: [{name: dns, port: 53, protocol: UDP}]}
---
apiVersion: v1
kind: Pod
metadata: {name: coredns-a, namespace: kube-system, labels: {k8s-app: kube-dns}}
spec: {nodeName: n1, containers: [{name: coredns, image: 'coredns:v1.12.0'}]}
status: {phase: Running, podIP: 10.244.1.53, conditions: [{type: Ready, status: 'True'}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
addressType: IPv4
metadata: {name: kube-dns, namespace: kube-system, labels: {kubernetes.io/service-name: kube-dns}}
ports: [{name: dns, port: 53, protocol: UDP}]
endpoints: [{addresses: [10.244.1.53], nodeName: n1, conditions: {ready: true}}]
";
    let client = pod("client", 2, "containerPort: 9000");
    [&nodes(), KUBERNETES, SYSTEM, &client, &facts("iptables", "v1.33.1")].concat()
}

/// A custom resource, of which an operator makes what it likes.
fn custom(namespace: &str, more: &str) -> String {
    format!(
        "---
apiVersion: shop.example/v1
kind: Shop
metadata: {{name: web, namespace: {namespace}, {more}}}
spec: {{replicas: 2}}
"
    )
}

/// The same without a namespace.
const UNNAMED: &str = "---
apiVersion: shop.example/v1
kind: Shop
metadata: {name: web}
spec: {pools: [{replicas: 2}]}
";

/// What seems to be of the whole cluster, and of no pods.
const POLICY: &str = "---
apiVersion: shop.example/v1
kind: Policy
metadata: {name: web}
spec: {ranges: [{first: 1, last: 2}]}
";

const INGRESS: &str = "---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: web, namespace: default}
spec:
  rules: [{host: a.example.com, http: {paths: [{path: /, pathType: Prefix, backend:
    {service: {name: web-http, port: {number: 80}}}}]}}]
";

const SELECTS: &str = "selector: {app: web}, ports: [{port: 80}]";

/// The output of a scan of the listing and of manifests beside it.
fn scan(test: &str, listed: &str, manifests: &str) -> String {
    let folder = folder(test, listed, manifests);
    folder.run(&["scan", "-f", "listing.yaml", "-f", "new.yaml"])
}

fn folder(test: &str, listed: &str, manifests: &str) -> Folder {
    let folder = Folder::new(test);
    folder.file("listing.yaml", &(listing() + listed));
    folder.file("new.yaml", manifests);
    folder
}

#[test]
fn a_service_that_is_not_applied_yet_has_no_endpoints_in_a_listing() {
    let gap = "not judged: endpoints of 1 Service";
    let written = |spec: &str| service("web", "", &format!("{spec}{SELECTS}"), "");
    for (test, manifests) in [
        ("listed-not-applied", written("")),
        ("listed-not-headless", written("clusterIP: None, ")),
        ("listed-operator", written("") + &custom("default", "")),
        ("listed-unnamed", written("clusterIP: 10.96.1.1, ") + UNNAMED),
        ("listed-awaited", written("clusterIP: 10.96.1.1, ") + &custom("default", "")),
    ] {
        assert_printed(&scan(test, "", &manifests), WELL, &[gap]);
    }
    // Of those that were applied, a listing tells all.
    let applied = written("clusterIP: 10.96.1.1, ");
    for (test, manifests) in [
        ("listed-other-namespace", custom("other", "")),
        ("listed-policy", POLICY.to_owned()),
        ("listed-operator-done", custom("default", "resourceVersion: '7'")),
    ] {
        let printed = scan(test, &applied, &manifests);
        assert_printed(&printed, "exit ", &["svc/default/web :80", "UT311"]);
    }
}

#[test]
fn what_a_manifest_makes_is_not_missing_in_the_listing() {
    const DEPLOYMENT: &str = "---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: default}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: c, ports: [{containerPort: 80}]}]}
";
    let applied = service("web", "", &format!("clusterIP: 10.96.1.1, {SELECTS}"), "");
    let folder = folder("listed-deployment", &applied, DEPLOYMENT);
    let files = ["-f", "listing.yaml", "-f", "new.yaml"];
    assert_printed(&folder.run(&[&["scan"], &files[..]].concat()), WELL, &[]);
    let flow = ["--from", "pod/default/client", "--to", "svc/default/web:80"];
    assert_printed(&folder.run(&[&["trace"], &files[..], &flow].concat()), ANSWERED, &[]);
}

#[test]
fn an_operator_may_make_the_service_that_an_ingress_leads_to() {
    let missing = "Service default/web-http does not exist (/ leads there)";
    let printed = scan("listed-ingress", "", &(INGRESS.to_owned() + &custom("default", "")));
    assert_printed(&printed, WELL, &["backends of 1 Ingress: ingress/default/web"]);
    for (test, more) in [
        ("listed-ingress-alone", String::new()),
        ("listed-ingress-elsewhere", custom("other", "")),
        ("listed-ingress-done", custom("default", "resourceVersion: '7'")),
    ] {
        let manifests = INGRESS.to_owned() + &more;
        let folder = folder(test, "", &manifests);
        let printed = folder.run(&["scan", "-f", "listing.yaml", "-f", "new.yaml", "-o", "wide"]);
        assert_printed(&printed, "exit 1\n", &["UT402", missing]);
    }
}
