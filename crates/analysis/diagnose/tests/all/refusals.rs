//! Cures that would break something else are refused, and say why; and where there is no
//! loop, none is found.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use crate::common::{case_of, scenarios};
use uturn_diagnose::cure::{self, Case, Cure, TrialBase};
use uturn_diagnose::{Code, diagnose};
use uturn_model::{Client, Flow, Outcome, Protocol, Share};
use uturn_path::Engine;
use uturn_scan::{FewCalls, Scanner};
use uturn_snapshot::{Manifests, Source};

/// A private Service on two nodes that loops: TKE's IPVS mode, policy Local.
struct Shop {
    version: &'static str,
    mode: &'static str,
    notes: &'static str,
    more: &'static str,
}

const USUAL: Shop = Shop { version: "v1.22.5-tke.13", mode: "ipvs", notes: "", more: "" };

impl Shop {
    fn text(&self) -> String {
        let Self { version, mode, notes, more } = self;
        let mut text = format!(
            "apiVersion: uturn.dev/v1alpha1
kind: Facts
spec:
  provider: tke
  kubeProxy: {{mode: {mode}, version: {version}, variant: tke}}
  network: {{mode: global-router, podCIDRs: [10.1.0.0/16], vpcCIDRs: [10.0.0.0/16], serviceCIDRs: [172.16.0.0/16]}}
---
apiVersion: v1
kind: Service
metadata:
  name: web
  namespace: shop
  annotations:
    service.kubernetes.io/qcloud-loadbalancer-internal-subnetid: subnet-private
{notes}spec:
  type: LoadBalancer
  clusterIP: 172.16.0.10
  externalTrafficPolicy: Local
  selector: {{app: web}}
  ports:
  - {{port: 443, targetPort: 8080, nodePort: 30080}}
status: {{loadBalancer: {{ingress: [{{ip: 10.0.0.101}}]}}}}
{more}"
        );
        for node in 1..=2 {
            text.push_str(&format!(
                "---
apiVersion: v1
kind: Node
metadata: {{name: n{node}}}
spec: {{podCIDR: 10.1.{node}.0/24}}
status: {{addresses: [{{type: InternalIP, address: 10.0.0.1{node}}}]}}
"
            ));
            for (app, host) in [("web", 20), ("client", 10)] {
                text.push_str(&format!(
                    "---
apiVersion: v1
kind: Pod
metadata: {{name: {app}-{node}, namespace: shop, labels: {{app: {app}}}}}
spec: {{nodeName: n{node}, containers: [{{name: c, image: c, ports: [{{containerPort: 8080}}]}}]}}
status: {{phase: Running, podIP: 10.1.{node}.{host}, conditions: [{{type: Ready, status: \"True\"}}]}}
"
                ));
            }
        }
        text
    }

    fn cures(&self, from: &str, to: &str) -> Vec<Cure> {
        cures(self.text(), from, to)
    }
}

fn cures(text: String, from: &str, to: &str) -> Vec<Cure> {
    let manifests =
        Manifests::of(vec![Source { name: "shop.yaml".into(), text }]).complete_if(true);
    let cluster = manifests.cluster().unwrap();
    let engine = Engine::new(&cluster).unwrap();
    let (from, to) = (from.parse().unwrap(), to.parse().unwrap());
    let flow = Flow { from, to, protocol: Protocol::Tcp };
    let case = Case::flow(&manifests, &FewCalls::new(&engine), flow).unwrap();
    cure::cures(&TrialBase::new(&manifests, &engine), &case)
}

/// In a large cluster each trial takes much work: what is left when there is no more is not tried, and
/// says so. Trials are made by rank, and the first in any case.
#[test]
fn what_there_is_no_work_left_for_is_not_tried() {
    let manifests = Manifests::of(vec![Source { name: "shop.yaml".into(), text: USUAL.text() }])
        .complete_if(true);
    let cluster = manifests.cluster().unwrap();
    let engine = Engine::new(&cluster).unwrap();
    let (from, to) = ("pod/shop/client-1".parse().unwrap(), VIP.parse().unwrap());
    let flow = Flow { from, to, protocol: Protocol::Tcp };
    let case = Case::flow(&manifests, &FewCalls::new(&engine), flow).unwrap();
    let of = |max_work: usize| {
        cure::cures(&TrialBase::new(&manifests, &engine).limited_to(max_work), &case)
    };
    let trial = TrialBase::new(&manifests, &engine).work_of_a_trial();
    assert!(trial > 2 * manifests.bytes(), "walks count too");
    let all = of(usize::MAX);
    assert!(all.iter().all(|cure| !cure.is_untried), "{all:#?}");
    let mut counts = Vec::new();
    for trials in 0..6 {
        let limited = of(trials * trial);
        let untried = limited.iter().filter(|cure| cure.is_untried);
        for cure in untried.clone() {
            assert!(!cure.is_offered());
            assert!(cure.after.is_none() && cure.diffs.is_empty() && cure.tried.is_none());
            assert!(cure.refused.as_deref().unwrap().starts_with("not tried: "), "{cure:?}");
        }
        // What was tried comes out as ever.
        for cure in limited.iter().filter(|cure| !cure.is_untried) {
            let known = all.iter().find(|known| known.title == cure.title).unwrap();
            assert_eq!(cure.refused, known.refused);
            assert_eq!(cure.diffs, known.diffs);
        }
        counts.push(untried.count());
    }
    assert_eq!(counts[0], counts[1], "the first trial is made in any case");
    assert!(counts.is_sorted_by(|more, fewer| more >= fewer), "{counts:?}");
    assert!(counts[1] > counts[5], "{counts:?}");
}

fn named<'c>(all: &'c [Cure], name: &str) -> &'c Cure {
    all.iter().find(|cure| cure.name == name).unwrap_or_else(|| panic!("no {name}: {all:#?}"))
}

fn refusal(all: &[Cure], name: &str) -> String {
    named(all, name).refused.clone().unwrap_or_else(|| panic!("{name} is offered"))
}

const VIP: &str = "10.0.0.101:443";

#[test]
fn prevent_loopback_is_offered_where_nothing_is_in_its_way() {
    let all = USUAL.cures("pod/shop/client-1", VIP);
    let cure = named(&all, "prevent-loopback");
    assert_eq!(cure.refused, None);
    assert!(cure.after.as_ref().unwrap().is_fine());
    let [diff] = cure.diffs.as_slice() else { panic!("{:?}", cure.diffs) };
    let lines: Vec<&str> = diff.lines().filter(|line| line.starts_with(['+', '-'])).collect();
    assert_eq!(
        lines,
        [
            "--- shop.yaml",
            "+++ shop.yaml",
            "+    service.cloud.tencent.com/prevent-loopback: \"true\"",
        ]
    );
}

#[test]
fn prevent_loopback_on_an_address_that_an_ingress_shares() {
    let more = "---
apiVersion: networking.k8s.io/v1
kind: Ingress
metadata: {name: front, namespace: shop, annotations: {kubernetes.io/ingress.subnetId: subnet}}
spec: {rules: [{http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: web, port: {number: 443}}}}]}}]}
status: {loadBalancer: {ingress: [{ip: 10.0.0.101}]}}
";
    let why = refusal(&Shop { more, ..USUAL }.cures("pod/shop/client-1", VIP), "prevent-loopback");
    assert!(why.contains("Ingress shop/front is at 10.0.0.101 too"), "{why}");
}

#[test]
fn prevent_loopback_where_the_listener_ends_tls() {
    let notes = "    service.cloud.tencent.com/specify-protocol: '{\"443\":{\"protocol\":[\"TCP_SSL\"],\"tls\":\"t\"}}'\n";
    let all = Shop { notes, ..USUAL }.cures("pod/shop/client-1", "https://10.0.0.101/");
    let why = refusal(&all, "prevent-loopback");
    assert!(why.contains("port 443 speaks TCP_SSL"), "{why}");
}

#[test]
fn prevent_loopback_with_a_kube_proxy_that_is_too_old() {
    let all = Shop { version: "v1.22.5-tke.12", ..USUAL }.cures("pod/shop/client-1", VIP);
    let why = refusal(&all, "prevent-loopback");
    assert!(why.contains("v1.22.5-tke.13 is the first of its line"), "{why}");
    let newer = named(&all, "kube-proxy-image");
    assert_eq!(newer.refused, None);
    assert!(newer.after.as_ref().unwrap().is_fine());
}

#[test]
fn prevent_loopback_in_another_mode() {
    let text = Shop { mode: "iptables", version: "v1.34.4", ..USUAL }
        .text()
        .replace("ip: 10.0.0.101", "ip: 10.0.0.101, ipMode: Proxy");
    let why = refusal(&cures(text, "pod/shop/client-1", VIP), "prevent-loopback");
    assert!(why.contains("IPVS mode; mode iptables"), "{why}");
}

/// Where nothing says the mode, a cure has to hold in the mode in which it fails, and says
/// what is not known.
#[test]
fn a_mode_that_nobody_states() {
    let text = USUAL.text().replace("mode: ipvs, version: v1.22.5-tke.13, ", "");
    let all = cures(text, "pod/shop/client-1", VIP);
    assert_eq!(named(&all, "call-service").refused, None);
    let asked = named(&all, "prevent-loopback");
    assert_eq!(asked.refused, None);
    assert!(asked.after.as_ref().unwrap().is_fine());
    let mode = &asked.conditions[0];
    assert_eq!((mode.answer, &*mode.what), (cure::Answer::Unknown, "kube-proxy runs in IPVS mode"));
}

#[test]
fn policy_local_where_clients_and_pods_share_nodes() {
    let text = Shop { version: "v1.34.4", mode: "iptables", ..USUAL }
        .text()
        .replace("ip: 10.0.0.101", "ip: 10.0.0.101, ipMode: Proxy")
        .replace("  externalTrafficPolicy: Local\n", "");
    let why = refusal(&cures(text.clone(), "pod/shop/client-1", VIP), "policy-local");
    assert!(why.contains("web-1 on n1 is one"), "{why}");
    // Without a pod on the client's node, another client would lose.
    let moved = text.replace(
        "{name: web-1, namespace: shop, labels: {app: web}}",
        "{name: web-1, namespace: shop, labels: {app: x}}",
    );
    let why = refusal(&cures(moved.clone(), "pod/shop/client-1", VIP), "policy-local");
    assert!(why.contains("client-2") && why.contains("would be worse off"), "{why}");
    // And without such a client, it works.
    let alone = moved
        .replace("{name: client-2,", "{name: web-3,")
        .replace("{app: client}}\nspec: {nodeName: n2", "{app: web}}\nspec: {nodeName: n2");
    let all = cures(alone, "pod/shop/client-1", VIP);
    assert_eq!(named(&all, "policy-local").refused, None);
}

#[test]
fn a_dns_rewrite_to_other_ports() {
    let (source, scenario) =
        scenarios().into_iter().find(|(_, scenario)| &*scenario.name == "dns-rewrite").unwrap();
    let text = source
        .text
        .replace("            rewrite name shop.example.com web.shop.svc.cluster.local\n", "            hosts {\n                10.0.0.100 shop.example.com\n                fallthrough\n            }\n")
        .replace("- {port: 80, targetPort: http, nodePort: 30080}", "- {port: 8080, targetPort: http, nodePort: 30080}")
        .replace("port: {number: 80}", "port: {number: 8080}");
    let source = Source { text, ..source };
    let manifests = case_of(&source, &scenario, scenario.cases.last().unwrap());
    let cluster = manifests.cluster().unwrap();
    let engine = Engine::new(&cluster).unwrap();
    let flow = Flow {
        from: "pod/shop/client-1".parse().unwrap(),
        to: "http://shop.example.com/".parse().unwrap(),
        protocol: Protocol::Tcp,
    };
    let case = Case::flow(&manifests, &FewCalls::new(&engine), flow).unwrap();
    let all = cure::cures(&TrialBase::new(&manifests, &engine), &case);
    let why = refusal(&all, "dns-rewrite");
    assert!(why.contains("callers use 80, Service shop/web has 8080"), "{why}");
    // The user's own Ingress controller listens where callers call.
    let own = named(&all, "own-ingress");
    assert_eq!(own.refused, None);
    assert!(own.after.as_ref().unwrap().is_fine());
}

/// If the seeds say that there is no loop, none is found for the clients of that flow.
#[test]
fn no_false_alarms() {
    let loops: Vec<Code> = ["UT101", "UT102", "UT103"].map(|code| code.parse().unwrap()).into();
    let mut judged = 0;
    for (source, scenario) in scenarios() {
        for case in &scenario.cases {
            let is_fine = |outcome: &(Outcome, Share)| outcome.0.is_fine();
            let flows: Vec<_> = case
                .flows
                .iter()
                .filter(|expected| expected.outcomes.iter().all(is_fine))
                .collect();
            if flows.is_empty() {
                continue;
            }
            let manifests = case_of(&source, &scenario, case);
            let cluster = manifests.cluster().unwrap();
            let engine = Engine::new(&cluster).unwrap();
            let scanner = Scanner::new(&engine);
            let found = diagnose(&scanner, &scanner.scan(&scanner.targets()).unwrap()).unwrap();
            for expected in flows {
                let Client::Pod(pod) = &expected.flow.from else { continue };
                let case =
                    Case::flow(&manifests, &FewCalls::new(&engine), expected.flow.clone()).unwrap();
                assert!(case.before.is_fine() && case.mechanisms.is_empty());
                assert!(
                    cure::cures(&TrialBase::new(&manifests, &engine), &case)
                        .iter()
                        .all(|cure| !cure.is_offered())
                );
                let Some(owner) = case.owner() else { continue };
                judged += 1;
                let wrong = found.iter().find(|finding| {
                    loops.contains(&finding.code)
                        && finding.subject == *owner
                        && finding.clients.iter().any(|client| client == pod)
                });
                assert!(
                    wrong.is_none(),
                    "{} ({}): {wrong:?}",
                    scenario.name,
                    case.before.summary()
                );
            }
        }
    }
    assert!(judged > 20, "{judged}");
}
