//! A pod's name, from its resolver through CoreDNS to a Service, as a user sees it.

#![allow(clippy::unwrap_used, reason = "what is wrong here fails the test")]

use uturn_model::{Flow, Mechanism, Outcome, Protocol, StepKind, Verdict};
use uturn_path::Engine;
use uturn_snapshot::Source;

/// Two nodes, a web server, CoreDNS on the second node, a client on the first.
const CLUSTER: &str = r#"
apiVersion: v1
kind: Node
metadata: {name: n1}
spec: {podCIDRs: [10.1.1.0/24]}
status: {addresses: [{type: InternalIP, address: 10.0.0.11}]}
---
apiVersion: v1
kind: Node
metadata: {name: n2}
spec: {podCIDRs: [10.1.2.0/24]}
status: {addresses: [{type: InternalIP, address: 10.0.0.12}]}
---
apiVersion: v1
kind: Pod
metadata: {name: client, namespace: shop}
spec: {nodeName: n1, containers: [{name: c, image: c}]POD}
status: {phase: Running, podIPs: [{ip: 10.1.1.10}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web-0, namespace: shop, labels: {app: web}}
spec: {nodeName: n2, containers: [{name: c, image: c, ports: [{name: http, containerPort: 8080}]}]}
status: {phase: Running, podIPs: [{ip: 10.1.2.20}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec:
  clusterIP: 172.16.0.80
  selector: {app: web}
  ports: [{name: http, port: 80, targetPort: 8080}]
---
apiVersion: v1
kind: Service
metadata: {name: each, namespace: shop}
spec: {clusterIP: None, selector: {app: web}, ports: [{port: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: kube-dns, namespace: kube-system, labels: {k8s-app: kube-dns}}
spec:
  clusterIP: 172.16.0.10
  selector: {k8s-app: kube-dns}
  ports: [{name: dns, port: 53, protocol: UDP, targetPort: 53}]
---
apiVersion: v1
kind: Pod
metadata: {name: coredns-0, namespace: kube-system, labels: {k8s-app: DNS}}
spec:
  nodeName: n2
  containers: [{name: coredns, image: c, ports: [{name: dns, containerPort: 53, protocol: UDP}]}]
status: {phase: Running, podIPs: [{ip: 10.1.2.2}]}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: coredns, namespace: kube-system}
data:
  Corefile: |
    .:53 {
        errors
        kubernetes cluster.local in-addr.arpa ip6.arpa {
            fallthrough in-addr.arpa ip6.arpa
        }
        RULE
        forward . /etc/resolv.conf
        cache 30
    }
---
apiVersion: uturn.dev/v1alpha1
kind: Facts
spec:
  provider: none
  network: {mode: global-router}
  kubeProxy: {mode: MODE, version: v1.34.4}
"#;

/// What differs from case to case.
struct Case {
    rule: &'static str,
    pod: &'static str,
    mode: &'static str,
    dns: &'static str,
    more: &'static str,
}

const USUAL: Case = Case { rule: "", pod: "", mode: "iptables", dns: "kube-dns", more: "" };

impl Case {
    fn trace(&self, to: &str) -> Verdict {
        let text = CLUSTER
            .replace("RULE", self.rule)
            .replace("POD", self.pod)
            .replace("MODE", self.mode)
            .replace("DNS", self.dns);
        let sources = [("cluster.yaml", text.as_str()), ("more.yaml", self.more)];
        let sources = sources.into_iter().filter(|(_, text)| !text.is_empty());
        let sources =
            sources.map(|(name, text)| Source { name: name.into(), text: text.to_owned() });
        let cluster = uturn_snapshot::read(sources.collect()).unwrap().cluster;
        let engine = Engine::new(&cluster).unwrap();
        let from = "pod/shop/client".parse().unwrap();
        let flow = Flow { from, to: to.parse().unwrap(), protocol: Protocol::Tcp };
        engine.verdict(&flow).unwrap()
    }
}

fn outcome(verdict: &Verdict) -> Outcome {
    assert_eq!(verdict.outcomes.len(), 1, "{:?}", verdict.outcomes);
    verdict.outcomes[0].0
}

/// What was said of the name: each reason with what it rests on.
fn resolution(verdict: &Verdict) -> Vec<String> {
    let steps = verdict.routes.iter().flat_map(|route| &route.hops).flat_map(|hop| &hop.steps);
    steps
        .filter(|step| matches!(step.kind, StepKind::Resolve | StepKind::Unknown))
        .map(|step| format!("{}  {}", step.why, step.by))
        .collect()
}

#[test]
fn a_rewritten_name_leads_to_the_service() {
    let rule = "rewrite name shop.example.com web.shop.svc.cluster.local";
    let verdict = Case { rule, ..USUAL }.trace("http://shop.example.com/");
    assert_eq!(outcome(&verdict), Outcome::AT_ONCE);
    let steps = resolution(&verdict);
    assert!(
        steps[0].starts_with("shop.example.com. → web.shop.svc.cluster.local.  rewrite plugin, ")
            && steps[0].contains("coredns Corefile:6 (cluster.yaml:"),
        "{steps:?}"
    );
    assert!(steps[1].contains("→ 172.16.0.80: the Service's cluster IP  Service shop/web"));
}

#[test]
fn a_rewrite_to_a_service_without_the_port_is_refused_where_kube_proxy_refuses() {
    let rule = "rewrite name shop.example.com web.shop.svc.cluster.local";
    for mode in ["iptables", "nftables", "ipvs"] {
        let verdict = Case { rule, mode, ..USUAL }.trace("https://shop.example.com/");
        assert!(!outcome(&verdict).is_answered(), "{mode}: {verdict:?}");
        assert_ne!(outcome(&verdict), Outcome::NameNotFound, "{mode}");
    }
}

#[test]
fn an_unknown_name_is_not_found_and_every_try_is_listed() {
    let verdict = USUAL.trace("http://web.shopp/");
    assert_eq!(outcome(&verdict), Outcome::NameNotFound);
    assert_eq!(verdict.mechanisms, [Mechanism::NameUnresolved]);
    let steps = resolution(&verdict).join("\n");
    assert!(
        steps.contains("there is no Service svc/shopp") || steps.contains("no Service"),
        "{steps}"
    );
    assert!(
        verdict.supposed.iter().any(|assumption| assumption.settle.contains("dns.outside")),
        "{verdict:?}"
    );
}

#[test]
fn short_names_are_searched_for() {
    for name in ["web", "web.shop", "web.shop.svc", "web.shop.svc.cluster.local", "WEB"] {
        let verdict = USUAL.trace(&format!("http://{name}/"));
        assert_eq!(outcome(&verdict), Outcome::AT_ONCE, "{name}: {:?}", resolution(&verdict));
    }
    assert_eq!(outcome(&USUAL.trace("each:8080")), Outcome::AT_ONCE);
    let own_search = r#", dnsPolicy: None, dnsConfig: {nameservers: [172.16.0.10], searches: [svc.cluster.local]}"#;
    let pod = Case { pod: own_search, ..USUAL };
    assert_eq!(outcome(&pod.trace("http://web.shop/")), Outcome::NameNotFound);
    let with_dots = own_search.replace("]}", "], options: [{name: ndots, value: \"2\"}]}");
    let pod = Case { pod: Box::leak(with_dots.into_boxed_str()), ..USUAL };
    assert_eq!(outcome(&pod.trace("http://web.shop/")), Outcome::AT_ONCE);
}

#[test]
fn a_pod_with_the_nodes_dns_knows_no_service() {
    let pod = Case { pod: ", dnsPolicy: Default", ..USUAL };
    assert_eq!(outcome(&pod.trace("http://web.shop.svc.cluster.local/")), Outcome::NameNotFound);
    let alias = r#", dnsPolicy: Default, hostAliases: [{ip: 172.16.0.80, hostnames: [web.here]}]"#;
    let verdict = Case { pod: alias, ..USUAL }.trace("http://web.here/");
    assert_eq!(outcome(&verdict), Outcome::AT_ONCE);
    assert!(resolution(&verdict)[0].contains("hostAliases"));
}

#[test]
fn a_question_that_reaches_nobody_finds_no_name() {
    // No pod carries the label that the DNS Service selects, and its slice says so.
    const EMPTY: &str = "{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, metadata: {name: kube-dns-x, \
                         namespace: kube-system, labels: {kubernetes.io/service-name: kube-dns}}, \
                         addressType: IPv4, ports: [{name: dns, port: 53, protocol: UDP}], endpoints: []}";
    let verdict = Case { dns: "other", more: EMPTY, ..USUAL }.trace("http://web/");
    assert_eq!(outcome(&verdict), Outcome::NameNotFound);
    let steps = resolution(&verdict).join("\n");
    assert!(steps.contains("the question to the cluster's DNS at 172.16.0.10:53"), "{steps}");
    assert!(steps.contains("no-endpoint"), "{steps}");
    // An address needs no name.
    let verdict = Case { dns: "other", more: EMPTY, ..USUAL }.trace("http://172.16.0.80/");
    assert_eq!(outcome(&verdict), Outcome::AT_ONCE);
}

#[test]
fn a_corefile_that_does_not_parse_is_reported() {
    let verdict = Case { rule: "rewrite name", ..USUAL }.trace("http://web/");
    assert_eq!(outcome(&verdict), Outcome::NameNotFound);
    let steps = resolution(&verdict).join("\n");
    assert!(
        steps.contains("Corefile cannot be read") && steps.contains("cluster.yaml:"),
        "{steps}"
    );
}

#[test]
fn the_cache_on_the_node_does_not_see_the_rewrite() {
    let rule = "rewrite name shop.example.com web.shop.svc.cluster.local";
    let more = r#"
apiVersion: v1
kind: ConfigMap
metadata: {name: node-local-dns, namespace: kube-system}
data:
  Corefile: |
    cluster.local:53 {
        cache
        bind 169.254.20.10 172.16.0.10
        forward . __PILLAR__CLUSTER__DNS__ {
            force_tcp
        }
    }
    .:53 {
        bind 169.254.20.10 172.16.0.10
        forward . __PILLAR__UPSTREAM__SERVERS__
    }
"#;
    let cached = Case { rule, more, ..USUAL };
    assert_eq!(outcome(&cached.trace("http://web/")), Outcome::AT_ONCE);
    assert_eq!(outcome(&cached.trace("http://shop.example.com/")), Outcome::NameNotFound);
}

/// A cache on nodes that is bound to an address, with what it forwards the cluster's names to.
fn cache(name: &str, bind: &str, upstream: &str) -> String {
    format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: kube-system}}\ndata:\n  Corefile: |\n    \
         cluster.local:53 {{\n        cache\n        bind {bind}\n        forward . {upstream} {{\n            \
         force_tcp\n        }}\n    }}\n    .:53 {{\n        bind {bind}\n        forward . /etc/resolv.conf\n    }}\n"
    )
}

/// The Service through which the cache reaches CoreDNS.
const UPSTREAM: &str = "---\napiVersion: v1\nkind: Service\nmetadata: {name: kube-dns-upstream, namespace: kube-system, \
                        labels: {k8s-app: kube-dns}}\nspec: {clusterIP: 172.16.0.53, selector: {k8s-app: kube-dns}, \
                        ports: [{name: dns, port: 53, protocol: UDP, targetPort: 53}]}\n";

fn leaked(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

/// Manifests in clusters have addresses where those that are published have placeholders.
#[test]
fn the_cache_on_the_node_asks_its_upstream_by_address() {
    let upstream =
        |text: String| outcome(&Case { more: leaked(text), ..USUAL }.trace("http://web/"));
    let both = "169.254.20.10 172.16.0.10";
    let through_service = cache("node-local-dns", both, "172.16.0.53") + UPSTREAM;
    assert_eq!(upstream(through_service), Outcome::AT_ONCE);
    let of_pods = UPSTREAM.replace("selector: {k8s-app: kube-dns}, ", "");
    let slice = "---\napiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {name: upstream-1, namespace: \
                 kube-system, labels: {kubernetes.io/service-name: kube-dns-upstream}}\naddressType: IPv4\nports: \
                 [{name: dns, port: 53, protocol: UDP}]\nendpoints: [{addresses: [10.1.2.2], conditions: {ready: true}}]\n";
    let through_endpoints = cache("node-local-dns", both, "172.16.0.53") + &of_pods + slice;
    assert_eq!(upstream(through_endpoints), Outcome::AT_ONCE);
    // Kubespray's takes the place of no other address.
    let own = cache("nodelocaldns", "169.254.25.10", "172.16.0.10");
    assert_eq!(upstream(own), Outcome::AT_ONCE);
    // Other servers of the cluster are not known, and those outside know none of its names.
    let other = UPSTREAM.replace("k8s-app: kube-dns", "app: unbound");
    let case =
        Case { more: leaked(cache("node-local-dns", both, "172.16.0.53") + &other), ..USUAL };
    let found = resolution(&case.trace("http://web/")).join("\n");
    assert!(found.contains("Service kube-system/kube-dns-upstream at 172.16.0.53"), "{found}");
    assert_eq!(upstream(cache("node-local-dns", both, "192.0.2.53")), Outcome::NameNotFound);
}

/// A rewrite of CoreDNS's shows which servers pods ask: the cache does not see it.
#[test]
fn kubelets_say_which_name_servers_pods_ask() {
    let rule = "rewrite name shop.example.com web.shop.svc.cluster.local";
    let found = |servers: &str, mode| {
        let kubelets = format!(
            "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: kubelet-config, namespace: kube-system}}\ndata:\n  \
             kubelet: |\n    kind: KubeletConfiguration\n    clusterDNS: [{servers}]\n"
        );
        let more = leaked(cache("nodelocaldns", "169.254.25.10", "172.16.0.10") + &kubelets);
        Case { rule, more, mode, ..USUAL }.trace("http://shop.example.com/")
    };
    for mode in ["iptables", "ipvs"] {
        assert_eq!(outcome(&found("172.16.0.10", mode)), Outcome::AT_ONCE, "{mode}");
        assert_eq!(outcome(&found("169.254.25.10", mode)), Outcome::NameNotFound, "{mode}");
    }
    // Nothing has that address: the cache's own is taken, and said so.
    let verdict = found("172.16.0.99", "iptables");
    assert_eq!(outcome(&verdict), Outcome::NameNotFound);
}

#[test]
fn an_answer_in_another_name_is_found_by_musl_only() {
    // CoreDNS changes the name in its answers back only for exact rules, and where it is told.
    let rule = r"rewrite name regex (.*)\.example\.com\. {1}.shop.svc.cluster.local";
    let verdict = Case { rule, ..USUAL }.trace("http://web.example.com/");
    assert_eq!(outcome(&verdict), Outcome::NameNotFound);
    assert!(
        verdict.supposed.iter().any(|assumption| assumption.because.contains("musl")),
        "{verdict:?}"
    );
    let rule = r"rewrite name regex (.*)\.example\.com\. {1}.shop.svc.cluster.local answer auto";
    let verdict = Case { rule, ..USUAL }.trace("http://web.example.com/");
    assert_eq!(outcome(&verdict), Outcome::AT_ONCE);
}

/// A whole name has fewer dots than a pod's `ndots`, so it is tried below each search domain first.
#[test]
fn a_wildcard_of_the_nodes_search_domain_takes_whole_names() {
    const WILD: &str = "apiVersion: uturn.dev/v1alpha1\nkind: Facts\nspec: {dns: {searches: \
                        [corp.example], outside: {shop.example.com: 192.0.2.1, '*.corp.example': \
                        192.0.2.80, db.corp.example: 192.0.2.81}}}\n";
    const NONE: &str = "apiVersion: uturn.dev/v1alpha1\nkind: Facts\nspec: {dns: {searches: \
                        [corp.example], outside: {shop.example.com: 192.0.2.1}}}\n";
    let found = |case: &Case, name: &str| resolution(&case.trace(name)).join("\n");
    let wild = Case { more: WILD, ..USUAL };
    for name in ["http://shop.example.com/", "http://web.shop.svc.cluster.local/"] {
        let steps = found(&wild, name);
        assert!(steps.contains("→ 192.0.2.80: Facts state it of every name"), "{name}: {steps}");
    }
    // A name that is stated itself, a short one, and one that needs no search.
    assert!(found(&wild, "http://db/").contains("→ 192.0.2.81"));
    assert!(found(&wild, "http://web/").contains("→ 172.16.0.80"));
    let whole = r#", dnsConfig: {options: [{name: ndots, value: "2"}]}"#;
    let whole = Case { pod: whole, ..wild };
    assert!(found(&whole, "http://shop.example.com/").contains("→ 192.0.2.1:"));
    // Without one that is stated, none is supposed.
    let verdict = Case { more: NONE, ..USUAL }.trace("http://shop.example.com/");
    assert!(resolution(&verdict).join("\n").contains("→ 192.0.2.1:"), "{verdict:?}");
    assert!(
        verdict.supposed.iter().any(|one| one.subject.to_string().contains("corp.example")),
        "{verdict:?}"
    );
}
