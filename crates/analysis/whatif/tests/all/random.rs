//! Random clusters and random edits: a comparison has an entry for a call exactly if every pod that is
//! walked by itself, without classes, says that it ends otherwise. With both sides swapped, what gets
//! worse gets better. A cluster beside itself has no entry.
//!
//! `UTURN_WHATIF_CLUSTERS=1000 cargo test -p uturn-whatif --test all random` tries more of them.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::collections::{BTreeMap, BTreeSet};

use uturn_model::{Cluster, Destination, NamespacedName, Outcome, Protocol, Verdict};
use uturn_path::Engine;
use uturn_scan::Scanner;
use uturn_snapshot::{Manifests, Source};
use uturn_testing::variables;
use uturn_whatif::change::{Change, data_plane, object};
use uturn_whatif::compare::Scope;
use uturn_whatif::{Comparison, Effect, State, apply, compare};

use crate::dice::{Dice, cluster};

/// A call, as both ways of comparing name it.
type Call = (NamespacedName, String);

#[test]
fn a_comparison_is_that_of_two_scans_without_classes() {
    let count = variables::number(variables::WHATIF_CLUSTERS).unwrap_or(10);
    let (mut differing, mut equal) = (0, 0);
    for seed in 0..count {
        let mut dice = Dice::new(seed + 1);
        let text = cluster(&mut dice);
        let manifests = Manifests::of(vec![Source { name: "random.yaml".into(), text }]);
        let before = manifests.cluster().unwrap();
        let changes = changes(&mut dice, &before);
        let edited = apply(&manifests, &before, &changes)
            .unwrap_or_else(|why| panic!("seed {seed}: {changes:?}: {why:?}"));
        let forth = of(&before, &edited.cluster);
        let back = of(&edited.cluster, &before);
        let shown = || {
            let changes: Vec<String> = changes.iter().map(ToString::to_string).collect();
            format!("seed {seed}: {}", changes.join(" "))
        };
        assert_swapped(&forth, &back, &shown());
        let expected = by_hand(&before, &edited.cluster);
        assert_eq!(calls(&forth), expected, "{}", shown());
        if expected.is_empty() {
            equal += 1;
        } else {
            differing += 1;
        }
        assert!(of(&before, &before).is_empty(), "{}", shown());
    }
    assert!(differing * 4 >= count as usize && equal > 0, "{differing} differ, {equal} do not");
}

/// Draws one to three changes of what the cluster has.
fn changes(dice: &mut Dice, cluster: &Cluster) -> Vec<Change> {
    let services: Vec<String> = cluster.services.keys().map(ToString::to_string).collect();
    let pods: Vec<String> = cluster.pods.keys().map(ToString::to_string).collect();
    let mut all = Vec::new();
    for _ in 0..=dice.below(3) {
        let service = &services[dice.below(services.len())];
        let pod = &pods[dice.below(pods.len())];
        let made = match dice.below(9) {
            0 => object::set(&format!("svc/{service}:spec.externalTrafficPolicy=Local"), None),
            1 => object::set(&format!("svc/{service}:spec.internalTrafficPolicy=Local"), None),
            2 => object::set(&format!("svc/{service}:spec.ports[0].targetPort=9"), None),
            3 => object::set(&format!("svc/{service}:spec.selector={{app: nobody}}"), None),
            4 => object::annotate(&format!("svc/{service}:example.com/note=1"), None),
            5 => object::set(&format!("pod/{pod}:metadata.labels.app=other"), None),
            6 => data_plane::mode(dice.one_of(&["iptables", "ipvs", "nftables"])),
            7 => data_plane::release(dice.one_of(&["v1.22", "v1.31", "v1.36"])),
            _ => object::set(&format!("svc/{service}:spec.sessionAffinity=ClientIP"), None),
        };
        all.push(made.unwrap());
    }
    all
}

fn of(before: &Cluster, after: &Cluster) -> Comparison {
    let none = Manifests::default();
    compare(
        State { manifests: &none, cluster: before },
        State { manifests: &none, cluster: after },
        Scope::default(),
    )
    .unwrap()
}

/// Returns the calls of pods that end otherwise in the assumed reading, by the entries.
fn calls(comparison: &Comparison) -> BTreeSet<Call> {
    let entries = comparison.worse.iter().chain(&comparison.better).chain(&comparison.other);
    let mut all = BTreeSet::new();
    for entry in entries {
        let is_seen =
            !matches!(entry.effect, Effect::GoesOtherwise | Effect::Found | Effect::Cured);
        // Which nodes stand for others differs between two clusters.
        if !is_seen || entry.targets.iter().all(|target| target.starts_with("node port")) {
            continue;
        }
        for pod in &entry.who.pods {
            all.insert((pod.clone(), entry.subject.to_string()));
        }
    }
    all
}

/// The verdicts of each pod by destination, walked one by one.
type Ends = BTreeMap<(NamespacedName, Destination, Protocol), (String, Vec<String>)>;

fn ends(cluster: &Cluster) -> Ends {
    let mut all = Ends::new();
    let engine = Engine::new(cluster).unwrap();
    let scanner = Scanner::new(&engine);
    let mut targets = scanner.targets();
    // Which nodes stand for others differs between two clusters.
    targets.retain(|target| target.called_node().is_none());
    for result in scanner.scan_exhaustively(&targets).unwrap() {
        let ended: Vec<String> = result.verdicts.iter().map(ended).collect();
        for pod in result.clients.pods.iter() {
            let key = (pod.clone(), result.target.to.clone(), result.target.protocol);
            all.insert(key, (result.target.object.to_string(), ended.clone()));
        }
    }
    all
}

fn ended(verdict: &Verdict) -> String {
    let mut outcomes: Vec<&(Outcome, _)> = verdict.outcomes.iter().collect();
    outcomes.sort_by_key(|(outcome, _)| *outcome);
    let part =
        |(outcome, share): &&(Outcome, uturn_model::Share)| format!("{outcome} {:.4}", share.get());
    let outcomes: Vec<String> = outcomes.iter().map(part).collect();
    format!("{outcomes:?} {:?}", verdict.mechanisms)
}

/// Returns the calls that end otherwise, by two scans without classes, in any reading.
fn by_hand(before: &Cluster, after: &Cluster) -> BTreeSet<Call> {
    let olds = readings(before);
    let news = readings(after);
    let mut all = BTreeSet::new();
    for at in 0..olds.len().max(news.len()) {
        let old = &olds[if at < olds.len() { at } else { 0 }];
        let new = &news[if at < news.len() { at } else { 0 }];
        let keys: BTreeSet<_> = old.keys().chain(new.keys()).collect();
        for key in keys {
            let (was, is) = (old.get(key), new.get(key));
            if was.map(|was| &was.1) != is.map(|is| &is.1) {
                let object = &was.or(is).unwrap().0;
                all.insert((key.0.clone(), object.clone()));
            }
        }
    }
    all
}

fn readings(cluster: &Cluster) -> Vec<Ends> {
    let others = uturn_path::what_if::others(cluster);
    std::iter::once(cluster).chain(&others).map(ends).collect()
}

fn assert_swapped(forth: &Comparison, back: &Comparison, shown: &str) {
    let lists = |all: &[uturn_whatif::Entry], is_swapped: bool| {
        let mut lines: Vec<String> = all
            .iter()
            .map(|entry| {
                let (before, after) = if is_swapped {
                    (&entry.after, &entry.before)
                } else {
                    (&entry.before, &entry.after)
                };
                let effect = if is_swapped { entry.effect.swapped() } else { entry.effect };
                format!(
                    "{:?} {} {:?} {:?} {:?} {:?} {:?}",
                    effect,
                    entry.subject,
                    entry.who.pods,
                    entry.who.others,
                    before.outcomes,
                    after.outcomes,
                    entry.conditions
                )
            })
            .collect();
        lines.sort_unstable();
        lines
    };
    assert_eq!(lists(&forth.worse, false), lists(&back.better, true), "{shown}");
    assert_eq!(lists(&forth.better, false), lists(&back.worse, true), "{shown}");
    assert_eq!(lists(&forth.other, false), lists(&back.other, true), "{shown}");
}
