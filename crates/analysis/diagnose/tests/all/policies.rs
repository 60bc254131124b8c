//! NetworkPolicies that forbid what objects state, and those that only keep pods apart.

use uturn_diagnose::analysis::{Analysis, FlowCounts, Options, analyze};
use uturn_diagnose::{Code, Severity};
use uturn_dice::Dice;
use uturn_snapshot::{Manifests, Source};
use uturn_testing::manifests::{facts, node};

use super::more_cures::{changes, cures, offered};

const FACTS: &[&str] =
    &["provider: none", "kubeProxy: {mode: iptables, version: v1.34.4, variant: upstream}"];

/// An agent that drops what policies do not allow.
const CALICO: &str = "---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: calico-node, namespace: kube-system}
spec:
  selector: {matchLabels: {app: calico}}
  template:
    metadata: {labels: {app: calico}}
    spec: {hostNetwork: true, containers: [{name: c, image: c}]}
";

/// A pod of a Deployment-less owner, in its own network unless `more` says otherwise.
fn pod(name: &str, on: u8, address: u8, labels: &str, more: &str) -> String {
    let (namespace, name) = name.split_once('/').unwrap();
    format!(
        "---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: {namespace}, labels: {{{labels}}}}}
spec: {{nodeName: n{on}, containers: [{{name: c, image: c, ports: [{{containerPort: 8080}}]{more}}}]}}
status: {{phase: Running, podIP: 10.1.{on}.{address}, conditions: [{{type: Ready, status: 'True'}}]}}
"
    )
}

fn service(name: &str, ip: &str, selector: &str, port: &str) -> String {
    let (namespace, name) = name.split_once('/').unwrap();
    format!(
        "---
apiVersion: v1
kind: Service
metadata: {{name: {name}, namespace: {namespace}, labels: {{{selector}}}}}
spec: {{clusterIP: {ip}, selector: {{{selector}}}, ports: [{port}]}}
"
    )
}

fn policy(name: &str, spec: &str) -> String {
    format!(
        "---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {{name: {name}, namespace: shop}}
spec:
{spec}
"
    )
}

/// A server, a client, and the cluster's DNS.
fn shop(client: &str) -> String {
    [
        pod("shop/web", 1, 10, "app: web", ""),
        pod("shop/job", 2, 10, "app: job", client),
        pod("kube-system/coredns", 1, 20, "k8s-app: kube-dns", ""),
        service("shop/web", "172.16.0.10", "app: web", "{port: 80, targetPort: 8080}"),
        service(
            "kube-system/kube-dns",
            "172.16.0.2",
            "k8s-app: kube-dns",
            "{name: dns, port: 53, protocol: UDP, targetPort: 53}",
        ),
    ]
    .concat()
}

fn analysis(objects: &str, is_exhaustive: bool) -> Analysis {
    let text = [&facts(FACTS), objects, &node(1), &node(2)].concat();
    let manifests = Manifests::of(vec![Source { name: "a.yaml".into(), text }]).complete_if(true);
    let cluster = manifests.cluster().unwrap();
    analyze(&manifests, &cluster, &Options { is_exhaustive, ..Options::default() }).unwrap()
}

/// Returns the subject, severity and conditions of each finding about policies.
fn found(objects: &str) -> Vec<(String, Severity, String)> {
    let all = analysis(objects, false).findings;
    let own = all.iter().filter(|finding| finding.code == Code::NetworkPolicy);
    own.map(|own| (own.subject.to_string(), own.severity, own.conditions.join(", "))).collect()
}

const TO_PODS: &str = "  podSelector: {}
  policyTypes: [Egress]
  egress:
  - to:
    - podSelector: {}";

const DNS_TOO: &str = "
    - namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: kube-system}}";

#[test]
fn dns_is_forgotten() {
    let objects = shop("") + &policy("out", TO_PODS);
    let enforced = |objects: &str| found(&(objects.to_owned() + CALICO));
    let wanted = |severity, condition: &str| {
        vec![("NetworkPolicy shop/out".to_owned(), severity, condition.to_owned())]
    };
    assert_eq!(enforced(&objects), wanted(Severity::Error, ""));
    // Where it is not known whether anything enforces it, the finding is conditional.
    let condition = "the network enforces NetworkPolicies";
    assert_eq!(found(&objects), wanted(Severity::Warning, condition));
    let open = shop("") + &policy("out", &format!("{TO_PODS}{DNS_TOO}"));
    assert_eq!(found(&open), []);
    // A pod that may call nothing is shut in on purpose.
    let shut = shop("") + &policy("out", "  podSelector: {}\n  policyTypes: [Ingress, Egress]");
    assert_eq!(enforced(&shut), []);
}

#[test]
fn a_rule_for_dns_cures() {
    let objects = shop("") + CALICO + &policy("out", TO_PODS);
    let to = "http://web.shop.svc.cluster.local/";
    let cures = cures(FACTS, &objects, "pod/shop/job", to);
    assert_eq!(
        offered(&cures)[0],
        (
            "policy-rule",
            "NetworkPolicy shop/out: a rule that lets out to namespace kube-system, pods k8s-app=kube-dns at \
             UDP and TCP port 53"
        )
    );
    let lines = changes(&cures, "policy-rule").join("\n");
    for wanted in ["kubernetes.io/metadata.name: kube-system", "k8s-app: kube-dns", "port: 53"] {
        assert!(lines.contains(wanted), "{lines}");
    }
}

/// What keeps pods apart is no fault; what a container names is.
#[test]
fn only_stated_calls_are_faults() {
    let closed = policy("in", "  podSelector: {matchLabels: {app: web}}\n  ingress: []");
    let objects = |client: &str| shop(client) + CALICO + &closed;
    assert_eq!(found(&objects("")), []);
    let named = ", env: [{name: BACKEND, value: 'http://web.shop.svc.cluster.local:80/'}]";
    let wanted = [("NetworkPolicy shop/in".to_owned(), Severity::Error, String::new())];
    assert_eq!(found(&objects(named)), wanted);
    let counts = analysis(&objects(""), false).flows;
    assert!(counts.denied > 0 && counts.fine + counts.denied == counts.all, "{counts:?}");
}

/// A controller of another namespace, and an Ingress that it serves.
fn edge() -> String {
    let controller = pod("edge/nginx", 2, 30, "app: nginx", "")
        .replace("image: c,", "image: 'registry.k8s.io/ingress-nginx/controller:v1.12.0', args: [/nginx-ingress-controller],")
        .replace("ports: [{containerPort: 8080}]", "ports: [{name: http, containerPort: 80}]");
    let service = service(
        "edge/nginx",
        "172.16.0.30",
        "app: nginx",
        "{name: http, port: 80, targetPort: 80}",
    );
    let ingress = "---
apiVersion: networking.k8s.io/v1
kind: IngressClass
metadata: {name: nginx}
spec: {controller: k8s.io/ingress-nginx}
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: site, namespace: shop}
spec:
  ingressClassName: nginx
  rules: [{host: shop.example.com, http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 80}}}}]}}]
status: {loadBalancer: {ingress: [{ip: 172.16.0.30}]}}
";
    [&shop(""), CALICO, &controller, &service, ingress].concat()
}

#[test]
fn an_ingress_whose_controller_is_kept_out() {
    let from = |peer: &str| {
        policy(
            "in",
            &format!(
                "  podSelector: {{matchLabels: {{app: web}}}}\n  ingress:\n  - from:\n    - {peer}"
            ),
        )
    };
    let alone = edge() + &from("podSelector: {matchLabels: {app: nginx}}");
    let wanted = [("NetworkPolicy shop/in".to_owned(), Severity::Error, String::new())];
    assert_eq!(found(&alone), wanted);
    let host = [FACTS[0], FACTS[1], "dns: {outside: {shop.example.com: 172.16.0.30}}"];
    let url = "http://shop.example.com/";
    let namespace = cures(&host, &alone, "pod/shop/job", url);
    assert_eq!(
        offered(&namespace)[0],
        (
            "policy-namespace",
            "namespaceSelector kubernetes.io/metadata.name: edge beside the podSelector of \
             NetworkPolicy shop/in"
        )
    );
    changes(&namespace, "policy-namespace");
    // A peer with the right word at the wrong label.
    let meant = edge() + &from("podSelector: {matchLabels: {component: nginx}}");
    let peer = cures(&host, &meant, "pod/shop/job", url);
    assert_eq!(offered(&peer)[0].0, "policy-peer");
    changes(&peer, "policy-peer");
    let open =
        edge() + &from("namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: edge}}");
    assert_eq!(found(&open), []);
}

/// Classes of clients and endpoints are told apart by everything that policies tell apart.
#[test]
fn classes_are_as_fine_as_policies() {
    let mut dice = Dice::new(7);
    let mut denied = 0;
    for _ in 0..12 {
        let mut objects = shop("") + CALICO;
        for number in 0..6 {
            let app = dice.choose(&["web", "job", "x"]);
            let tier = dice.choose(&["a", "b"]);
            let namespace = dice.choose(&["shop", "other"]);
            let name = format!("{namespace}/more-{number}");
            let labels = format!("app: {app}, tier: {tier}");
            objects += &pod(&name, 1 + number % 2, 40 + number, &labels, "");
        }
        for number in 0..1 + dice.below(2) {
            let selected =
                dice.choose(&["{}", "{matchLabels: {app: web}}", "{matchLabels: {tier: a}}"]);
            let peer = dice.choose(&[
                "podSelector: {matchLabels: {tier: a}}",
                "namespaceSelector: {}",
                "namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: other}}",
                "ipBlock: {cidr: 10.1.1.0/24}",
            ]);
            let port = dice.choose(&["8080", "53", "80"]);
            let (way, peers) = dice.choose(&[("ingress", "from"), ("egress", "to")]);
            objects += &policy(
                &format!("p{number}"),
                &format!(
                    "  podSelector: {selected}\n  {way}: [{{{peers}: [{{{peer}}}], ports: [{{port: {port}}}]}}]"
                ),
            );
        }
        let of = |is_exhaustive| analysis(&objects, is_exhaustive);
        let (by_class, each) = (of(false), of(true));
        let counted = |all: &Analysis| {
            all.findings.iter().map(|own| (own.code, own.subject.to_string())).collect::<Vec<_>>()
        };
        assert_eq!(counted(&by_class), counted(&each), "{objects}");
        // Pods of a node that are treated alike count as one, so only whether there are any is equal.
        let kinds = |flows: FlowCounts| (flows.denied > 0, flows.open > 0);
        assert_eq!(kinds(by_class.flows), kinds(each.flows), "{objects}");
        denied += by_class.flows.denied;
    }
    assert!(denied > 0);
}
