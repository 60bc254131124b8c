//! Random clusters: whatever is offered makes its flow better and nobody else's worse. Held
//! against every pod and every target, one by one, without any of the shortcuts that judged
//! the cure.
//!
//! `UTURN_CURE_CLUSTERS=500 cargo test -p uturn-diagnose --test random` tries more of them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

#[path = "../../uturn-path/tests/classes/dice.rs"]
mod dice;

use std::collections::{BTreeMap, HashSet};

use dice::Dice;
use uturn_diagnose::cure::{self, Case, Standing, Twin};
use uturn_diagnose::diagnose;
use uturn_model::{Client, Cluster, Destination, Flow, NamespacedName, Protocol, Verdict};
use uturn_path::Engine;
use uturn_snapshot::{Manifests, Source};

/// So many findings of a cluster are cured.
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
fn every_cure_that_is_offered_helps_and_hurts_nobody() {
    let stated = std::env::var("UTURN_CURE_CLUSTERS").ok();
    let count: u64 = stated.as_deref().map_or(40, |text| text.parse().unwrap());
    let mut sum: BTreeMap<&'static str, [usize; 2]> = BTreeMap::new();
    let (mut findings, mut faults) = (0, Vec::new());
    for seed in 1..=count {
        let mut text = dice::cluster(&mut Dice::new(seed));
        // Half of them know how their names are resolved.
        if seed % 2 == 0 {
            text.push_str(DNS);
        }
        let manifests = Manifests::of(vec![Source { name: "random.yaml".into(), text }]);
        let cluster = manifests.cluster().unwrap_or_else(|why| panic!("{seed}: {why:?}"));
        let Ok(engine) = Engine::new(&cluster) else { continue };
        let met = engine.scan(&engine.targets()).unwrap();
        let found = diagnose(&engine, &met).unwrap();
        let twin = Twin::new(&manifests, &engine);
        let before = everything(&cluster, &engine);
        for finding in found.iter().take(FINDINGS) {
            findings += 1;
            let Some(flow) = finding.example.flow() else { continue };
            let case = Case::flow(&manifests, &engine, flow).unwrap();
            for one in cure::cures(&twin, &case) {
                let counted = sum.entry(one.name).or_default();
                if !one.is_offered() {
                    counted[1] += 1;
                    continue;
                }
                counted[0] += 1;
                let what = format!("seed {seed}, {}: {}", finding.code, one.title);
                let after = match &one.tried {
                    Some(tried) => tried.cluster().unwrap(),
                    None => cluster.clone(),
                };
                let engine = Engine::new(&after).unwrap();
                let Some(Standing::Flow { flow, .. }) = &one.after else { panic!("{what}") };
                let (old, new) =
                    (harm(&finding_verdicts(&case)), harm(&engine.verdicts(flow).unwrap()));
                if !(new.0 < old.0 - 1e-6 || new.1 < old.1 - 1e-6 || new.2 < old.2 - 1e-6) {
                    faults.push(format!("{what}: {flow:?} {old:?} ⇒ {new:?}"));
                }
                if one.tried.is_none() {
                    continue;
                }
                let given_up = given_up(&one, &cluster);
                for (flow, new) in everything(&after, &engine) {
                    let Some(old) = before.get(&flow) else { continue };
                    let worse = new.0 > old.0 + 1e-6 || new.1 > old.1 + 1e-6;
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
    let offered: usize = sum.values().map(|[offered, _]| offered).sum();
    assert!(offered > 0 && findings > 0, "nothing was tried");
}

/// Who may lose by a cure that says so: the pods of the Service itself.
fn given_up(cure: &cure::Cure, cluster: &Cluster) -> HashSet<NamespacedName> {
    if cure.name != "policy-local" {
        return HashSet::new();
    }
    let services = cluster.services.values();
    let edited =
        services.filter(|one| cure.objects.iter().any(|(object, _)| *object == one.object()));
    let slices = edited.flat_map(|one| cluster.slices(&one.name));
    slices.flat_map(|slice| &slice.endpoints).filter_map(|one| one.pod.clone()).collect()
}

fn finding_verdicts(case: &Case<'_>) -> Vec<Verdict> {
    let cure::Subject::Flow(flow) = &case.subject else { panic!("not a flow") };
    case.engine.verdicts(flow).unwrap()
}

/// The share that gets nothing, the share that is not served at once, the longest wait.
fn harm(verdicts: &[Verdict]) -> (f64, f64, f64) {
    let one = &verdicts[0];
    let lost =
        one.outcomes.iter().filter(|(one, _)| !one.is_answered()).map(|(_, part)| part.get());
    let answered = one.outcomes.iter().filter(|(one, _)| one.is_answered());
    let waits = answered.filter_map(|(one, _)| one.after()).map(|one| one.as_secs_f64());
    (lost.sum(), one.share_failing().get(), waits.fold(0.0, f64::max))
}

/// Every pod to every target, walked.
fn everything(cluster: &Cluster, engine: &Engine<'_>) -> BTreeMap<Flow, (f64, f64, f64)> {
    let mut all = BTreeMap::new();
    let targets: Vec<(Destination, Protocol)> =
        engine.targets().into_iter().map(|one| (one.to, one.protocol)).collect();
    for pod in cluster.pods.values().filter(|pod| pod.is_alive()) {
        for (to, protocol) in &targets {
            let from = Client::Pod(pod.name.clone());
            let flow = Flow { from, to: to.clone(), protocol: *protocol };
            if let Ok(verdicts) = engine.verdicts(&flow) {
                let harm = harm(&verdicts);
                all.insert(flow, harm);
            }
        }
    }
    all
}
