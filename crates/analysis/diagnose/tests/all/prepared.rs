//! Random clusters under random changes: an analysis that knows what the one before found says
//! what a fresh one says, and an unrelated change walks nothing again.
//!
//! `UTURN_WATCH_CLUSTERS=200 cargo test -p uturn-diagnose --test all prepared` tries more of them.

use crate::dice;

use std::collections::BTreeMap;
use std::path::Path;

use crate::dice::Dice;
use uturn_diagnose::analysis::{Detail, Options};
use uturn_diagnose::{PreparedCluster, analyze};
use uturn_snapshot::{Manifests, Source};
use uturn_testing::variables;

/// Changes of each cluster.
const STEPS: usize = 8;

/// The documents of a cluster, by kind and name.
type Documents = BTreeMap<String, String>;

fn documents(seed: u64) -> Documents {
    let text = dice::cluster(&mut Dice::new(seed));
    let each = text.split("---\n").filter(|document| !document.trim().is_empty());
    each.map(|document| (key(document), document.to_owned())).collect()
}

/// The kind, namespace and name of a document.
fn key(document: &str) -> String {
    let named = |field: &str| {
        let mut found = document.split(field).skip(1);
        let rest = found.next().unwrap_or_default();
        let end = rest.find([',', '}', '\n']).unwrap_or(rest.len());
        rest[..end].trim().to_owned()
    };
    format!("{} {} {}", named("kind:"), named("namespace:"), named("name:"))
}

fn manifests(documents: &Documents) -> Manifests {
    let texts: Vec<&str> = documents.values().map(String::as_str).collect();
    Manifests::of(vec![Source { name: "random.yaml".into(), text: texts.join("---\n") }])
}

/// Puts an object of another cluster in place of one, or takes it away, or gives it another name;
/// or takes a pod back to the time before it had an address.
fn change(now: &mut Documents, other: &Documents, dice: &mut Dice) {
    let keys: Vec<String> = now.keys().chain(other.keys()).cloned().collect();
    let key = &keys[dice.below(keys.len())];
    match (dice.below(5), other.get(key)) {
        (4, _) => {
            let pods: Vec<&mut String> =
                now.values_mut().filter(|document| document.contains("kind: Pod\n")).collect();
            let at = dice.below(pods.len().max(1));
            let Some(pod) = pods.into_iter().nth(at) else { return };
            let (before, _) = pod.split_once("status:").unwrap_or((pod, ""));
            *pod = format!("{before}status: {{phase: Pending}}\n");
        }
        (0, _) => drop(now.remove(key)),
        (1, _) => {
            let Some(document) = now.get(key) else { return };
            let (before, after) = document.split_once("name: ").unwrap_or((document, ""));
            let copy = format!("{before}name: a-{after}");
            now.insert(self::key(&copy), copy);
        }
        (_, Some(document)) => drop(now.insert(key.clone(), document.clone())),
        (_, None) => drop(now.remove(key)),
    }
}

#[test]
fn after_every_change_it_is_as_analysed_anew() {
    let count = variables::number(variables::WATCH_CLUSTERS).unwrap_or(3);
    let options = Options { detail: Detail::Evidence, ..Options::default() };
    let (mut walked, mut reused, mut analysed) = (0, 0, 0);
    for seed in 1..=count {
        let (mut now, other) = (documents(seed), documents(seed + 1000));
        let mut dice = Dice::new(seed);
        let mut prepared = PreparedCluster::default();
        for step in 0..STEPS {
            let manifests = manifests(&now);
            if let Ok(cluster) = manifests.cluster() {
                let known = prepared.analyze(&manifests, &cluster, &options);
                let fresh = analyze(&manifests, &cluster, &options);
                assert_eq!(format!("{known:?}"), format!("{fresh:?}"), "seed {seed}, step {step}");
                let counts = prepared.counts();
                (walked, reused) = (walked + counts.walked, reused + counts.reused);
                analysed += usize::from(known.is_ok());
            }
            change(&mut now, &other, &mut dice);
        }
    }
    assert!(analysed > count as usize * STEPS / 2, "{analysed}");
    assert!(reused > 0 && walked > 0, "{walked} walked, {reused} reused");
    println!("{analysed} analyses: {walked} walked, {reused} known from before");
}

/// The example of the documentation.
fn shop() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/shop");
    let (manifests, faults) = Manifests::gather(&[folder], &[]);
    assert!(faults.is_empty(), "{faults:?}");
    let texts: Vec<&str> = manifests.sources().iter().map(|source| &*source.text).collect();
    texts.join("\n---\n")
}

#[test]
fn an_unrelated_change_walks_nothing_again() {
    let (shop, options) = (shop(), Options::default());
    let mut prepared = PreparedCluster::default();
    let mut analyze = |more: &str| {
        let text = format!("{shop}\n---\n{more}");
        let manifests = Manifests::of(vec![Source { name: "shop.yaml".into(), text }]);
        let cluster = manifests.cluster().unwrap();
        prepared.analyze(&manifests, &cluster, &options).unwrap();
        prepared.counts()
    };
    let first = analyze("");
    assert!(first.walked > 0, "{first:?}");
    let unrelated = analyze(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: shop}\n\
         data: {color: green}\n",
    );
    assert_eq!(unrelated.walked, 0, "{unrelated:?}");
    assert!(unrelated.reused >= first.walked, "{unrelated:?}");
    // Nothing piles up: what is kept is what the last analysis used.
    assert_eq!(analyze("").kept, first.kept);
    assert_eq!(analyze("").walked, 0);
}
