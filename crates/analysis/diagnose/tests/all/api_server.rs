//! Calls of the API server: webhooks, aggregated APIs and conversions.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use uturn_diagnose::{Code, Finding, Severity, diagnose};
use uturn_path::Engine;
use uturn_scan::Scanner;
use uturn_snapshot::{Manifests, Source};

/// A webhook's pod with its Service. A test replaces parts of it.
pub(super) const GUARD: &str = "
apiVersion: v1
kind: Node
metadata: {name: n1}
spec: {podCIDR: 10.244.1.0/24}
status: {addresses: [{type: InternalIP, address: 10.0.0.11}]}
---
apiVersion: v1
kind: Pod
metadata: {name: guard, namespace: guard, labels: {app: guard}}
spec:
  nodeName: n1
  containers: [{name: c, image: c, ports: [{containerPort: 8443}]}]
status: {phase: Running, podIP: 10.244.1.9, conditions: [{type: Ready, status: 'True'}]}
---
apiVersion: v1
kind: Service
metadata: {name: guard, namespace: guard}
spec:
  clusterIP: 10.96.0.20
  selector: {app: guard}
  ports: [{port: 443, targetPort: 8443}]
---
apiVersion: uturn.dev/v1alpha1
kind: Facts
spec:
  kubeProxy: {mode: iptables, version: v1.30.0}
  network: {plugin: flannel, podCIDRs: [10.244.0.0/16]}
---
";

pub(super) const WEBHOOK: &str = "
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: guard}
webhooks:
- name: guard.example.com
  clientConfig: {service: {namespace: guard, name: guard, path: /check}}
  rules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}]
";

fn found(text: &str, is_complete: bool) -> Vec<Finding> {
    let source = Source { name: "cluster.yaml".into(), text: text.into() };
    let cluster = Manifests::of(vec![source]).complete_if(is_complete).cluster().unwrap();
    let engine = Engine::new(&cluster).unwrap();
    let scanner = Scanner::new(&engine);
    let all = diagnose(&scanner, &scanner.scan(&scanner.targets()).unwrap()).unwrap();
    all.into_iter().filter(|finding| finding.code == Code::ApiServerCallFails).collect()
}

fn why(finding: &Finding) -> String {
    finding.other_evidence.iter().map(|one| one.what.to_string()).collect()
}

#[test]
fn a_webhook_that_is_served_is_fine() {
    assert!(found(&format!("{GUARD}{WEBHOOK}"), true).is_empty());
    let by_url = WEBHOOK.replace(
        "{service: {namespace: guard, name: guard, path: /check}}",
        "{url: 'https://guard.example.com/check'}",
    );
    assert!(found(&format!("{GUARD}{by_url}"), true).is_empty());
    let idle = WEBHOOK.replace("resources: [deployments]", "resources: []");
    assert!(found(&format!("{GUARD}{idle}"), true).is_empty());
}

/// An API server resolves the host of a URL as programs of its machine do.
#[test]
fn a_url_with_the_name_of_a_service_is_not_resolved() {
    let by_url = |host: &str| {
        let own = format!("{{url: 'https://{host}/check'}}");
        WEBHOOK.replace("{service: {namespace: guard, name: guard, path: /check}}", &own)
    };
    let full = by_url("guard.guard.svc.cluster.local");
    // Where the API server is, is not known.
    assert!(found(&format!("{GUARD}{full}"), true).is_empty());
    let endpoints = |ip: &str| {
        format!(
            "
apiVersion: v1
kind: Service
metadata: {{name: kubernetes, namespace: default}}
spec: {{clusterIP: 10.96.0.1, ports: [{{name: https, port: 443, targetPort: 6443}}]}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {{name: kubernetes, namespace: default, labels: {{kubernetes.io/service-name: kubernetes}}}}
addressType: IPv4
ports: [{{name: https, port: 6443, protocol: TCP}}]
endpoints: [{{addresses: [{ip}]}}]
---
"
        )
    };
    for (ip, severity) in [("10.0.0.11", Severity::Error), ("10.7.0.5", Severity::Warning)] {
        let cluster = format!("{GUARD}{}", endpoints(ip));
        let all = found(&format!("{cluster}{full}"), true);
        let [finding] = &all[..] else { panic!("{ip}: {}", all.len()) };
        assert_eq!(finding.severity, severity, "{ip}");
        assert_eq!(finding.conditions.len(), usize::from(severity == Severity::Warning));
        assert!(why(finding).contains("clientConfig.service"), "{}", why(finding));
        assert!(found(&format!("{cluster}{}", by_url("guard.example.com")), true).is_empty());
        assert!(found(&format!("{cluster}{}", by_url("10.96.0.20")), true).is_empty());
    }
}

#[test]
fn its_policy_decides_how_bad_a_failure_is() {
    let unready = GUARD.replace(
        "status: 'True'}]}\n---\napiVersion: v1\nkind: Service",
        "status: 'False'}]}\n---\napiVersion: v1\nkind: Service",
    );
    for (policy, severity) in [
        ("", Severity::Error),
        ("failurePolicy: Fail", Severity::Error),
        ("failurePolicy: Ignore", Severity::Warning),
    ] {
        let webhook = format!("{WEBHOOK}  {policy}\n");
        let [finding] = &found(&format!("{unready}{webhook}"), true)[..] else {
            panic!("{policy}")
        };
        assert_eq!(finding.severity, severity, "{policy}");
        assert_eq!(finding.subject.to_string(), "ValidatingWebhookConfiguration guard");
        let why = why(finding);
        assert!(why.contains("1 pod not ready (guard/guard)"), "{why}");
        assert!(why.contains("deployments"), "{why}");
    }
    // The first version has another policy if none is stated.
    let old = WEBHOOK.replace("k8s.io/v1", "k8s.io/v1beta1");
    assert_eq!(found(&format!("{unready}{old}"), true)[0].severity, Severity::Warning);
}

#[test]
fn a_service_that_is_not_there_is_a_fault_only_where_all_are_given() {
    let gone = WEBHOOK.replace("name: guard, path", "name: other, path");
    let text = format!("{GUARD}{gone}");
    assert!(found(&text, false).is_empty());
    let [finding] = &found(&text, true)[..] else { panic!() };
    assert!(why(finding).contains("Service guard/other does not exist"), "{}", why(finding));
}

#[test]
fn a_port_that_the_service_lacks_is_named_with_those_it_has() {
    let other = GUARD.replace("port: 443", "port: 8443");
    let [finding] = &found(&format!("{other}{WEBHOOK}"), true)[..] else { panic!() };
    assert!(why(finding).contains("has no port 443; it has 8443"), "{}", why(finding));
}

#[test]
fn apis_and_conversions_are_calls_too() {
    let all = "
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1beta1.metrics.example.com}
spec: {group: metrics.example.com, version: v1beta1, service: {namespace: guard, name: other}}
---
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.apps}
spec: {group: apps, version: v1}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: guards.example.com}
spec:
  conversion:
    strategy: Webhook
    webhook: {clientConfig: {service: {namespace: guard, name: guard, port: 9443}}}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: others.example.com}
spec: {conversion: {strategy: None}}
";
    let found = found(&format!("{GUARD}{all}"), true);
    let subjects: Vec<String> = found.iter().map(|finding| finding.subject.to_string()).collect();
    assert_eq!(
        subjects,
        ["APIService v1beta1.metrics.example.com", "CustomResourceDefinition guards.example.com"]
    );
}

/// What is found of a webhook on a node whose group accepts what `rule` says. The API server is a pod of another node,
/// or outside with an address that the slice of its Service has.
fn walked(server: &str, rule: &str, network: &str) -> Vec<Finding> {
    let facts = format!(
        "network: {{plugin: flannel, podCIDRs: [10.244.0.0/16], vpcCIDRs: [10.0.0.0/16]}}
  nodes: {{n1: {{securityGroups: [nodes]}}}}
  securityGroups:
    nodes: {{inbound: [{{action: accept, {rule}}}]}}"
    );
    let mut guard = GUARD
        .replace("network: {plugin: flannel, podCIDRs: [10.244.0.0/16]}", &facts)
        .replace("nodeName: n1\n", &format!("nodeName: n1\n  {network}\n"));
    if !network.is_empty() {
        guard = guard.replace("podIP: 10.244.1.9", "podIP: 10.0.0.11");
    }
    let other = "
apiVersion: v1
kind: Node
metadata: {name: n2}
spec: {podCIDR: 10.244.2.0/24}
status: {addresses: [{type: InternalIP, address: 10.0.0.12}]}
---
";
    let text = format!("{guard}{WEBHOOK}---{other}{server}");
    let source = Source { name: "cluster.yaml".into(), text };
    let cluster = Manifests::of(vec![source]).complete_if(true).cluster().unwrap();
    let engine = Engine::new(&cluster).unwrap();
    let scanner = Scanner::new(&engine);
    let all = diagnose(&scanner, &scanner.scan(&scanner.targets()).unwrap()).unwrap();
    let is_it = |finding: &Finding| finding.subject.to_string().contains("WebhookConfiguration");
    all.into_iter().filter(is_it).collect()
}

const ON_A_NODE: &str = "
apiVersion: v1
kind: Pod
metadata: {name: kube-apiserver-n2, namespace: kube-system}
spec:
  nodeName: n2
  hostNetwork: true
  containers: [{name: kube-apiserver, image: registry.example/kube-apiserver:v1.30.0}]
status: {phase: Running, podIP: 10.0.0.12, conditions: [{type: Ready, status: 'True'}]}
";

const OUTSIDE: &str = "
apiVersion: v1
kind: Service
metadata: {name: kubernetes, namespace: default}
spec: {clusterIP: 10.96.0.1, ports: [{name: https, port: 443, targetPort: 443}]}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: kubernetes, namespace: default, labels: {kubernetes.io/service-name: kubernetes}}
addressType: IPv4
ports: [{name: https, port: 443, protocol: TCP}]
endpoints: [{addresses: [10.0.9.9], conditions: {ready: true}}]
";

#[test]
fn a_firewall_before_the_webhook_keeps_the_api_server_out() {
    for server in [ON_A_NODE, OUTSIDE] {
        assert!(walked(server, "ports: 8443", "hostNetwork: true").is_empty());
        let [finding] = &walked(server, "ports: 10250", "hostNetwork: true")[..] else {
            panic!("{server}")
        };
        assert_eq!((finding.code, finding.severity), (Code::SecurityGroup, Severity::Error));
        assert!(finding.conditions.is_empty(), "{:?}", finding.conditions);
        let why = why(finding);
        let place = if server == OUTSIDE { "at 10.0.9.9" } else { "on node n2" };
        assert!(why.contains(place) && why.contains("failurePolicy Fail"), "{why}");
        assert!(why.contains("port 8443"), "{why}");
    }
}

/// The network around the nodes has no way to a pod in a network of tunnels, unless somebody made one.
#[test]
fn an_api_server_outside_has_no_way_into_tunnels() {
    let [finding] = &walked(OUTSIDE, "ports: all", "")[..] else { panic!() };
    assert_eq!(finding.code, Code::NoRoute);
    assert!(!finding.conditions.is_empty());
    assert!(walked(ON_A_NODE, "ports: all", "").is_empty());
    // An agent in the cluster calls in its place.
    let agent = ON_A_NODE.replace("kube-apiserver", "konnectivity-agent");
    assert!(walked(&format!("{OUTSIDE}---{agent}"), "ports: all", "").is_empty());
}
