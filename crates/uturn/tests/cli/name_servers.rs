//! Corefiles as clusters have them: plugins of others, and the syntax of other releases.

use super::as_found::{ANSWERED, KUBERNETES, WELL, facts, nodes, pod};
use super::common::{Folder, assert_printed};

/// CoreDNS with a line of its own, in an image.
fn cluster(test: &str, image: &str, kubernetes: &str, forward: &str, line: &str) -> Folder {
    let line = line.replace('\n', "\n      ");
    let forward = forward.replace('\n', "\n      ");
    let coredns = format!(
        "---
apiVersion: v1
kind: Service
metadata: {{name: kube-dns, namespace: kube-system}}
spec: {{clusterIP: 10.96.0.10, ports: [{{name: dns, port: 53, protocol: UDP}}]}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {{name: coredns, namespace: kube-system}}
spec:
  selector: {{matchLabels: {{k8s-app: kube-dns}}}}
  template:
    metadata: {{labels: {{k8s-app: kube-dns}}}}
    spec: {{containers: [{{name: coredns, image: \"{image}\"}}]}}
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: coredns, namespace: kube-system}}
data:
  Corefile: |
    .:53 {{
      kubernetes cluster.local {{
        pods insecure
        {kubernetes}
      }}
      {line}
      {forward}
      cache 30
    }}
"
    );
    let parts = [
        nodes(),
        KUBERNETES.to_owned(),
        pod("web", 2, "containerPort: 80"),
        coredns,
        facts("iptables", "v1.33.1"),
    ];
    Folder::of(test, &parts)
}

const IMAGE: &str = "registry.example/coredns/coredns:v1.12.0";
const FORWARD: &str = "forward . /etc/resolv.conf";
const NAME: &str = "kubernetes.default.svc.cluster.local:443";

fn trace(folder: &Folder, to: &str) -> String {
    folder.run(&["trace", "-f", ".", "--from", "pod/default/web", "--to", to])
}

/// What a plugin answers is not known, and what it cannot answer is.
#[test]
fn a_plugin_that_is_not_modelled_hides_only_names_that_it_may_answer() {
    for (test, line) in [
        ("names-multicluster", "multicluster clusterset.local"),
        ("names-gateway", "k8s_gateway example.com {\n  resources Ingress\n }"),
        ("names-fanout", "fanout . 192.0.2.1"),
        ("names-route53", "route53 example.org.:Z1 {\n  fallthrough\n }"),
        ("names-azure", "azure group:example.org"),
        ("names-clouddns", "clouddns example.org.:project:zone"),
        ("names-grpc", "grpc example.org 192.0.2.1:443"),
        ("names-nomad", "nomad service.nomad"),
        ("names-unbound", "unbound"),
        ("names-alternate", "alternate NXDOMAIN . 192.0.2.1"),
        ("names-rrl", "rrl . {\n  responses-per-second 10\n }"),
        ("names-tsig", "tsig {\n  secret a. TmFtZXM=\n }"),
    ] {
        let folder = cluster(test, IMAGE, "ttl 30", FORWARD, line);
        assert_printed(&folder.run(&["scan", "-f", "."]), WELL, &[]);
        assert_printed(&trace(&folder, NAME), ANSWERED, &[]);
    }
    for (test, line, forward, to, plugin) in [
        (
            "names-of-gateway",
            "k8s_gateway example.com",
            FORWARD,
            "web.example.com:80",
            "k8s_gateway",
        ),
        ("names-of-azure", "azure group:example.org", FORWARD, "web.example.org:80", "azure"),
        ("names-of-custom", "madeup here", FORWARD, NAME, "madeup"),
        ("names-of-tsig", "tsig {\n  require all\n }", FORWARD, NAME, "tsig"),
        ("names-failed", "alternate SERVFAIL . 192.0.2.1", "", "web.example.com:80", "alternate"),
    ] {
        let folder = cluster(test, IMAGE, "ttl 30", forward, line);
        assert_printed(&folder.run(&["scan", "-f", "."]), WELL, &[]);
        let why =
            format!("the plugin {plugin} is not modelled ({plugin} plugin, coredns Corefile:");
        let printed = trace(&folder, to);
        assert!(printed.contains(&why), "{test}: {printed}");
        // The configuration is given.
        assert!(!printed.contains("give that ConfigMap"), "{test}: {printed}");
    }
}

/// What CoreDNS may say in its Corefile has changed with its releases.
#[test]
fn a_corefile_is_read_as_its_release_of_coredns_reads_it() {
    const PROXY: &str = "proxy . /etc/resolv.conf {\n  policy round_robin\n }";
    let at = |release: &str| format!("registry.example/coredns:{release}");
    for (test, image, kubernetes, forward) in [
        ("names-1.6.2", at("1.6.2"), "upstream", FORWARD),
        ("names-1.3.1", at("1.3.1"), "upstream /etc/resolv.conf", PROXY),
        ("names-1.6.9", at("v1.6.9"), "transfer to *", FORWARD),
        ("names-any", "coredns".to_owned(), "resyncperiod 5m", PROXY),
        ("names-later", at("1.14.0"), "apiserver_qps 5", FORWARD),
    ] {
        let folder = cluster(test, &image, kubernetes, forward, "loop");
        assert_printed(&folder.run(&["scan", "-f", "."]), WELL, &[]);
        assert_printed(&trace(&folder, NAME), ANSWERED, &[]);
    }
    for (test, release, option) in [
        ("names-refused-7", "1.7.0", "upstream"),
        ("names-refused-8", "v1.8.0", "transfer to *"),
        ("names-refused-12", "1.12.0", "apiserver_qps 5"),
    ] {
        let folder = cluster(test, &at(release), option, FORWARD, "loop");
        let release = release.trim_start_matches('v');
        let found = [
            "UT501",
            &format!("CoreDNS v{release} does not start with its Corefile"),
            "if CoreDNS starts with this Corefile",
        ];
        let printed = folder.run(&["scan", "-f", ".", "-o", "wide"]);
        found.iter().for_each(|part| assert!(printed.contains(part), "{test}: {printed}"));
    }
}

/// A search domain that answers every name takes the names of Services, which have fewer than five dots.
#[test]
fn a_search_domain_that_answers_every_name() {
    let services = "---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: default}
spec: {clusterIP: 10.96.0.77, selector: {app: web}, ports: [{port: 80}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: web-1, namespace: default, labels: {kubernetes.io/service-name: web}}
addressType: IPv4
endpoints: [{addresses: [10.244.2.9], nodeName: n2, conditions: {ready: true}}]
ports: [{port: 80, protocol: TCP}]
";
    let name = "web.default.svc.cluster.local";
    for (test, dns, leads) in [
        ("searches-none", "", None),
        (
            "searches-all",
            "---
apiVersion: uturn.dev/v1alpha1
kind: Facts
spec:
  dns: {searches: [apps.example.com], outside: {'*.apps.example.com': 198.51.100.9}}
",
            Some("198.51.100.9"),
        ),
    ] {
        let folder = cluster(test, IMAGE, "", FORWARD, "");
        folder.file("more.yaml", &format!("{services}{dns}"));
        let service = folder.run(&["check", "service", "default/web", "-f", "."]);
        let names = folder.run(&["check", "dns", "-f", "."]);
        let state = if leads.is_some() { "failed " } else { "ok     " };
        assert!(service.contains(&format!("  {state} its name leads there")), "{service}");
        assert!(names.contains(&format!("  {state} the name of a Service leads to it")), "{names}");
        if let Some(address) = leads {
            let why =
                format!("pod/default/web is sent to {address}, and its address is 10.96.0.77");
            assert!(service.contains(&why), "{service}");
            assert!(names.contains(&format!("pod/default/web is sent to {address}, ")), "{names}");
            let next = format!("next: uturn trace -f . --from pod/default/web --to {name}:80");
            assert!(service.contains(&next), "{service}");
        }
    }
}
