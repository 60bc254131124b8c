//! Names that the cluster's DNS should resolve for pods and does not, and names that lead elsewhere.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use uturn_diagnose::cure::{self, Case, TrialBase};
use uturn_diagnose::flow_codes::FlowCodes;
use uturn_diagnose::{Code, Example, Finding, Severity, diagnose};
use uturn_model::{Flow, Protocol};
use uturn_path::Engine;
use uturn_scan::{FewCalls, Scanner};
use uturn_snapshot::{Manifests, Source};

use crate::stated_names::{CLUSTER, WORKER};

const INGRESS: &str = "
---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: shop, namespace: shop}
spec:
  rules:
  - host: HOST
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: cache, port: {number: 6379}}}}]}
";

/// Finds names in the cluster with another Corefile and with more objects. The trace of each finding's
/// example has its code.
fn found(corefile: &str, more: &str) -> Vec<Finding> {
    let usual = ".:53 {
      kubernetes cluster.local in-addr.arpa ip6.arpa
      forward . /etc/resolv.conf
    }";
    assert!(CLUSTER.contains(usual));
    let text = CLUSTER.replace(usual, &corefile.replace('\n', "\n    ")) + more;
    let source = Source { name: "cluster.yaml".into(), text };
    let cluster = Manifests::of(vec![source]).complete_if(true).cluster().unwrap();
    let engine = Engine::new(&cluster).unwrap();
    let scanner = Scanner::new(&engine);
    let all = diagnose(&scanner, &scanner.scan(&scanner.targets()).unwrap()).unwrap();
    let names = [Code::NameNotFound, Code::NameElsewhere];
    let found: Vec<_> = all.into_iter().filter(|own| names.contains(&own.code)).collect();
    for finding in &found {
        let Example::Flow(flow) = &finding.example else { continue };
        let codes = FlowCodes::new(&engine, flow).of(&engine.cases(flow).unwrap());
        assert!(codes.contains(&finding.code), "{}: {codes:?}", finding.code);
    }
    found
}

fn corefile(rules: &str) -> String {
    format!(
        ".:53 {{\n  {rules}\n  kubernetes cluster.local in-addr.arpa ip6.arpa\n  \
         forward . /etc/resolv.conf\n}}"
    )
}

fn only(found: &[Finding]) -> (&Finding, String) {
    let [finding] = found else { panic!("{found:?}") };
    (finding, finding.other_evidence.iter().map(|one| format!("{}; ", one.what)).collect())
}

#[test]
fn a_rewrite_that_leads_to_a_service_is_fine() {
    let exact = corefile("rewrite name cache.example.com cache.shop.svc.cluster.local");
    let suffix = corefile("rewrite name suffix .example.com .shop.svc.cluster.local answer auto");
    for corefile in [exact, suffix] {
        let found = found(&corefile, &INGRESS.replace("HOST", "cache.example.com"));
        assert!(found.is_empty(), "{corefile}: {found:?}");
    }
}

#[test]
fn a_rewrite_to_no_service_is_a_warning_until_an_object_names_it() {
    let corefile = corefile("rewrite name cache.example.com cash.shop.svc.cluster.local");
    let found_alone = found(&corefile, "");
    let (finding, why) = only(&found_alone);
    assert_eq!(finding.severity, Severity::Warning);
    assert_eq!(finding.subject.to_string(), "ConfigMap kube-system/coredns");
    assert!(why.contains("it becomes cash.shop.svc.cluster.local"), "{why}");
    let found_named = found(&corefile, &INGRESS.replace("HOST", "cache.example.com"));
    assert_eq!(only(&found_named).0.severity, Severity::Error);
}

/// The pods' library drops an answer with the records of another name.
#[test]
fn a_rewrite_by_a_part_without_its_answer_depends_on_the_library() {
    let rule = "rewrite name regex (.*)\\.example\\.com {1}.shop.svc.cluster.local";
    let all = found(&corefile(rule), &INGRESS.replace("HOST", "cache.example.com"));
    let (finding, why) = only(&all);
    assert_eq!(finding.severity, Severity::Warning);
    assert!(why.contains("another name"), "{why}");
    assert!(finding.conditions.iter().any(|own| own.contains("glibc")), "{:?}", finding.conditions);
    let answered = "rewrite stop {\n    name regex (.*)\\.example\\.com {1}.shop.svc.cluster.local\n    \
                    answer auto\n  }";
    let all = found(&corefile(answered), &INGRESS.replace("HOST", "cache.example.com"));
    assert!(all.is_empty(), "{all:?}");
}

/// A block of its own without the plugin `kubernetes`.
#[test]
fn a_rewrite_in_a_block_that_knows_no_services_fails_for_every_name() {
    let own = "example.com:53 {\n  rewrite name substring example.com shop.svc.cluster.local\n  \
               forward . /etc/resolv.conf\n}\n";
    let all = found(&(own.to_owned() + &corefile("errors")), "");
    let (finding, _) = only(&all);
    assert_eq!(finding.targets, ["cache.example.com"]);
    assert_eq!(finding.severity, Severity::Warning);
}

#[test]
fn a_wildcard_search_domain_takes_full_names() {
    let facts = |searches: &str| {
        format!(
            "
---
apiVersion: uturn.dev/v1alpha1
kind: Facts
spec:
  dns: {{searches: [{searches}], outside: {{'*.corp.example': 203.0.113.7}}}}
"
        )
    };
    let all = found(&corefile("errors"), &facts("corp.example"));
    let (finding, why) = only(&all);
    assert_eq!(finding.code, Code::NameElsewhere);
    assert_eq!(finding.severity, Severity::Error);
    assert!(why.contains("cache.shop.svc.cluster.local.corp.example"), "{why}");
    assert!(found(&corefile("errors"), &facts("other.example")).is_empty());
}

/// A search domain has every name: the caller asks for the name as it is written.
#[test]
fn a_name_that_leads_elsewhere_has_cures_at_its_caller() {
    let facts = "
---
apiVersion: uturn.dev/v1alpha1
kind: Facts
spec:
  dns: {searches: [corp.example], outside: {'*.corp.example': 203.0.113.7}}
";
    let host = "cache.shop.svc.cluster.local";
    let worker = WORKER.replace("POLICY", "nodeName: n1").replace("CALL", &format!("{host}:6379"));
    let text = [CLUSTER, facts, "---", &worker].concat();
    let manifests = Manifests::of(vec![Source { name: "cluster.yaml".into(), text }]);
    let manifests = manifests.complete_if(true);
    let cluster = manifests.cluster().unwrap();
    let engine = Engine::new(&cluster).unwrap();
    let flow = Flow {
        from: "deploy/shop/worker".parse().unwrap(),
        to: format!("{host}:6379").parse().unwrap(),
        protocol: Protocol::Tcp,
    };
    let case = Case::flow(&manifests, &FewCalls::new(&engine), flow).unwrap();
    assert!(!case.before.is_fine());
    let cures = cure::cures(&TrialBase::new(&manifests, &engine), &case);
    let offered = cures.iter().filter(|cure| cure.is_offered());
    let offered: Vec<&str> = offered.map(|cure| &*cure.title).collect();
    let in_text = format!("{host}. instead of {host} in Deployment shop/worker");
    let by_hand = format!("call {host}., with the dot at its end");
    assert_eq!(offered, [&in_text, "dnsConfig with ndots: 1 for Deployment shop/worker", &by_hand]);
}
