//! Random clusters: each cure that is offered makes its flow better and no other flow worse. Every
//! pod is walked against every target for that, without the shortcuts that judged the cure. A trace
//! of a finding's call has the finding's code.
//!
//! `UTURN_CURE_CLUSTERS=500 cargo test -p uturn-diagnose --test all random` tries more of them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use crate::dice;

use std::collections::{BTreeMap, HashSet};

use crate::dice::Dice;
use crate::tried::disagreements;
use uturn_diagnose::cure::{self, Case, CaseState, TrialBase};
use uturn_diagnose::diagnose;
use uturn_model::{Client, Cluster, Destination, Flow, NamespacedName, Protocol, Verdict};
use uturn_path::{Engine, WalkError};
use uturn_scan::{FewCalls, Scanner};
use uturn_snapshot::{Manifests, Source};
use uturn_testing::variables;

/// Clusters in which cures are offered that the first forty have no use for.
const RARE: [u64; 9] = [41, 44, 58, 85, 102, 103, 119, 179, 193];

/// How often each cure has to be offered, so that the test cannot pass by trying none.
const OFFERED_AT_LEAST: [(&str, usize); 20] = [
    ("bandwidth", 1),
    ("bridge-rules", 1),
    ("call-service", 40),
    ("dns-rewrite", 1),
    ("forwarding", 3),
    ("ingress-rule", 1),
    ("internal-policy", 1),
    ("ip-mode-vip", 3),
    ("kube-proxy-image", 1),
    ("l7-snat", 5),
    ("node-firewall", 1),
    ("node-port", 2),
    ("own-ingress", 2),
    ("pod-routes", 4),
    ("policy-cluster", 1),
    ("policy-local", 1),
    ("prevent-loopback", 2),
    ("restart-kube-proxy", 1),
    ("rp-filter", 1),
    ("security-group", 3),
];

/// Cures of faults that these clusters do not have: scenarios try them (`rows.rs`,
/// `repairs.rs`, `more_cures.rs`, `no_endpoints.rs`).
const NOT_HERE: [&str; 37] = [
    // No Service has the address of an Ingress, and no Facts switch hairpin mode off.
    "own-address",
    "hairpin",
    // Nobody writes endpoints, and no pod is called by its own name.
    "pod-name",
    // A Service owns each load balancer.
    "call-own-target",
    // CoreDNS is configured as usual.
    "dns-answer",
    "dns-fallthrough",
    "dns-forward",
    "dns-kubernetes",
    // Load balancers are known.
    "name-in-status",
    // kube-proxy's own configuration is not given.
    "kube-proxy-name",
    "strict-arp",
    // No caller uses a name of the host network, loopback, or a headless Service.
    "call-node",
    "dns-policy",
    "headless-port",
    "publish-not-ready",
    // Labels are never wrong, and neither load balancers nor controllers use PROXY headers.
    "no-proxy-header",
    "pod-labels",
    "proxy-header",
    "source-ranges",
    // TKE has none of these, and random clusters are on it.
    "replace-source",
    "source-in-header",
    "pods-as-targets",
    "calls-through-balancer",
    "node-ports",
    "answerable-checks",
    "health-checks",
    "foreign-address",
    "undo-prevent-loopback",
    "ip-mode-proxy",
    "probe-source",
    "target-port",
    "call-port",
    "selector",
    "ingress-backend",
    "dns-domain",
    // No Service has an external IP of a node, and Cilium is not there.
    "no-external-ip",
    "chain-portmap",
];

/// At most this many findings of a cluster are cured.
const FINDINGS: usize = 6;

const DNS: &str = "---
apiVersion: v1
kind: ConfigMap
metadata: {name: coredns, namespace: kube-system}
data:
  Corefile: |
    .:53 {
        kubernetes cluster.local
        cache 30
    }
";

#[test]
fn every_cure_that_is_offered_helps_and_harms_no_other_call() {
    let count = variables::number(variables::CURE_CLUSTERS).unwrap_or(40);
    let mut sum: BTreeMap<&'static str, [usize; 2]> = BTreeMap::new();
    let (mut findings, mut faults) = (0, Vec::new());
    for seed in (1..=count).chain(RARE.into_iter().filter(|seed| *seed > count)) {
        let mut text = dice::cluster(&mut Dice::new(seed));
        // Half of them know how their names are resolved.
        if seed % 2 == 0 {
            text.push_str(DNS);
        }
        let manifests = Manifests::of(vec![Source { name: "random.yaml".into(), text }]);
        let cluster = manifests.cluster().unwrap_or_else(|why| panic!("{seed}: {why:?}"));
        let engine = Engine::new(&cluster).unwrap_or_else(|why| panic!("{seed}: {why:?}"));
        let scanner = Scanner::new(&engine);
        let met = scanner.scan(&scanner.targets()).unwrap();
        let found = diagnose(&scanner, &met).unwrap();
        let differ = |finding| disagreements(finding, &manifests, &engine);
        faults.extend(found.iter().flat_map(differ).map(|line| format!("seed {seed}, {line}")));
        let base = TrialBase::new(&manifests, &engine);
        let before = everything(&cluster, &engine);
        for finding in found.iter().take(FINDINGS) {
            findings += 1;
            let Some(flow) = finding.example.flow() else { continue };
            let case = Case::flow(&manifests, &FewCalls::new(&engine), flow).unwrap();
            for cure in cure::cures(&base, &case) {
                let counted = sum.entry(cure.name).or_default();
                if !cure.is_offered() {
                    counted[1] += 1;
                    continue;
                }
                counted[0] += 1;
                let what = format!("seed {seed}, {}: {}", finding.code, cure.title);
                let after = match &cure.tried {
                    Some(tried) => tried.cluster().unwrap(),
                    None => cluster.clone(),
                };
                let engine = Engine::new(&after).unwrap();
                let Some(CaseState::Flow { flow, .. }) = &cure.after else { panic!("{what}") };
                let (old, new) =
                    (harm(&finding_verdict(&case)), harm(&engine.verdict(flow).unwrap()));
                if !(new.0 < old.0 - 1e-6 || new.1 < old.1 - 1e-6 || new.2 < old.2 - 1e-6) {
                    faults.push(format!("{what}: {flow:?} {old:?} ⇒ {new:?}"));
                }
                if cure.tried.is_none() {
                    continue;
                }
                let given_up = given_up(&cure, &cluster);
                for (flow, new) in everything(&after, &engine) {
                    let Some(old) = before.get(&flow) else { continue };
                    // What was not known may turn out to fail in part: worse only if no more are
                    // answered.
                    let fail_instead = new.1 > old.1 + 1e-6 && new.0 > old.0 - 1e-6;
                    let worse = new.0 > old.0 + 1e-6 || fail_instead;
                    let own = matches!(&flow.from, Client::Pod(pod) if given_up.contains(pod));
                    if worse && !own {
                        faults.push(format!(
                            "{what}: {} to {} {old:?} ⇒ {new:?}",
                            flow.from, flow.to
                        ));
                    }
                }
            }
        }
    }
    for (name, [offered, refused]) in &sum {
        println!("{name}: {offered} offered, {refused} refused");
    }
    println!("{count} clusters, {findings} findings");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let too_few: Vec<String> = OFFERED_AT_LEAST
        .iter()
        .map(|(name, least)| (name, sum.get(name).map_or(0, |[offered, _]| *offered), least))
        .filter(|(_, offered, least)| offered < *least)
        .map(|(name, offered, least)| format!("{name}: {offered} offered, at least {least} wanted"))
        .collect();
    assert!(too_few.is_empty(), "the clusters no longer try these cures:\n{}", too_few.join("\n"));
}

#[test]
fn every_cure_is_tried_here_or_is_known_not_to_be() {
    let page = include_str!("../../../../../docs/cures.md");
    let mut documented: Vec<&str> =
        page.lines().filter_map(|line| line.strip_prefix("### `")?.strip_suffix('`')).collect();
    let mut known: Vec<&str> = OFFERED_AT_LEAST.map(|(name, _)| name).into();
    known.extend(NOT_HERE);
    documented.sort_unstable();
    known.sort_unstable();
    assert_eq!(documented, known);
}

/// The clients that a cure may make worse because it says so: the pods of the Service itself.
fn given_up(cure: &cure::Cure, cluster: &Cluster) -> HashSet<NamespacedName> {
    if cure.name != "policy-local" {
        return HashSet::new();
    }
    let services = cluster.services.values();
    let edited = services
        .filter(|service| cure.objects.iter().any(|(object, _)| *object == service.object()));
    let slices = edited.flat_map(|service| cluster.slices(&service.name));
    slices.flat_map(|slice| &slice.endpoints).filter_map(|endpoint| endpoint.pod.clone()).collect()
}

fn finding_verdict(case: &Case<'_>) -> Verdict {
    let cure::Subject::Flow(flow) = &case.subject else { panic!("not a flow") };
    case.engine.verdict(flow).unwrap()
}

/// The share that gets nothing, the share that is not served at once, the longest wait.
fn harm(verdict: &Verdict) -> (f64, f64, f64) {
    let lost = verdict
        .outcomes
        .iter()
        .filter(|(outcome, _)| !outcome.is_answered())
        .map(|(_, part)| part.get());
    let answered = verdict.outcomes.iter().filter(|(outcome, _)| outcome.is_answered());
    let waits = answered.filter_map(|(outcome, _)| outcome.after()).map(|wait| wait.as_secs_f64());
    (lost.sum(), verdict.share_failing().get(), waits.fold(0.0, f64::max))
}

/// Every pod to every target, walked.
fn everything(cluster: &Cluster, engine: &Engine<'_>) -> BTreeMap<Flow, (f64, f64, f64)> {
    let mut all = BTreeMap::new();
    let targets: Vec<(Destination, Protocol)> = Scanner::new(engine)
        .targets()
        .into_iter()
        .map(|target| (target.to, target.protocol))
        .collect();
    for pod in cluster.pods.values().filter(|pod| pod.is_alive()) {
        for (to, protocol) in &targets {
            let from = Client::Pod(pod.name.clone());
            let flow = Flow { from, to: to.clone(), protocol: *protocol };
            match engine.verdict(&flow) {
                Ok(verdict) => drop(all.insert(flow, harm(&verdict))),
                Err(WalkError::NoAddress(..)) => {}
                Err(why) => panic!("{} to {}: {why}", flow.from, flow.to),
            }
        }
    }
    all
}
