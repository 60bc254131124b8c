//! Random clusters with random edits: the cluster of a draft, of which only the changed documents are
//! decoded, is that of the edited texts. Calls of targets that meet nothing that changed end as
//! before.

#[path = "classes/dice.rs"]
mod dice;
#[path = "classes/ends.rs"]
mod ends;

use std::collections::{BTreeMap, BTreeSet};

use dice::Dice;
use ends::{End, end, is_same};
use uturn_document::edit::{At, Change, Tree};
use uturn_model::{Cluster, NamespacedName, ObjectKind, ObjectRef};
use uturn_path::Engine;
use uturn_scan::{Changes, ScanResult, Scanner};
use uturn_snapshot::manifests::{Draft, Edit};
use uturn_snapshot::{Manifests, Source};

const CLUSTERS: u64 = 24;

fn random(seed: u64) -> (Manifests, Cluster) {
    let text = dice::cluster_with(&mut Dice::new(seed), seed.is_multiple_of(2));
    let manifests = Manifests::of(vec![Source { name: "random.yaml".into(), text }]);
    let cluster = manifests.cluster().unwrap_or_else(|why| panic!("{seed}: {why:?}"));
    (manifests, cluster)
}

fn way(keys: &[&str]) -> Vec<At> {
    keys.iter().map(|key| At::from(*key)).collect()
}

/// Returns edits of an object: of values that are there, and of some that are new.
fn edits(object: &ObjectRef, seed: u64) -> Vec<Edit> {
    let set = |keys: &[&str], value: &str| Edit {
        object: object.clone(),
        path: way(keys),
        change: Change::Set(Tree::text(value)),
    };
    let all = match object.kind {
        ObjectKind::Service => vec![
            set(&["spec", "externalTrafficPolicy"], "Local"),
            set(&["spec", "internalTrafficPolicy"], "Cluster"),
            set(&["metadata", "annotations", "example.com/note"], "new"),
            set(&["spec", "sessionAffinity"], "ClientIP"),
        ],
        ObjectKind::Pod => vec![set(&["metadata", "labels", "tier"], "front")],
        _ => vec![
            set(&["metadata", "annotations", "example.com/note"], "new"),
            set(&["metadata", "labels", "tier"], "front"),
        ],
    };
    let first = (seed % all.len() as u64) as usize;
    all.into_iter().cycle().skip(first).take(1 + first % 2).collect()
}

/// The cluster in words, without the lines of its objects: edits move those below them.
fn without_lines(cluster: &Cluster) -> String {
    let text = format!("{cluster:?}");
    let mut parts = text.split("line: ");
    let mut all = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        all.push_str("line: ");
        all.push_str(part.trim_start_matches(|letter: char| letter.is_ascii_digit()));
    }
    all
}

#[test]
fn the_cluster_of_a_draft_is_that_of_the_edited_texts() {
    let (mut compared, mut decoded) = (0, 0);
    for seed in 1..=CLUSTERS {
        let (manifests, cluster) = random(seed);
        let Some(reading) = manifests.reading() else { continue };
        let of = |kind| move |name: &NamespacedName| ObjectRef::namespaced(kind, name);
        let objects = cluster
            .services
            .keys()
            .map(of(ObjectKind::Service))
            .chain(cluster.ingresses.keys().map(of(ObjectKind::Ingress)))
            .chain(cluster.pods.keys().take(3).map(of(ObjectKind::Pod)));
        for (at, object) in (0..).zip(objects.filter(|object| manifests.has(object))) {
            let edits = edits(&object, seed + at);
            let mut draft = Draft::new(&manifests);
            let whole = manifests.edited(&edits);
            assert_eq!(draft.edit(&edits).err(), whole.as_ref().err().cloned(), "{seed}: {object}");
            let Ok(whole) = whole else { continue };
            let texts = |of: &Manifests| {
                of.sources().iter().map(|source| source.text.clone()).collect::<Vec<_>>()
            };
            assert_eq!(texts(&draft.clone().into_manifests()), texts(&whole), "{seed}: {object}");
            assert_eq!(draft.object(&object), whole.object(&object), "{seed}: {object}");
            let read = whole.cluster().unwrap_or_else(|why| panic!("{seed}: {why:?}"));
            compared += 1;
            let Some(own) = reading.cluster(&draft).expect("a cluster") else { continue };
            decoded += 1;
            assert_eq!(without_lines(&own), without_lines(&read), "{seed}: {edits:?}");
        }
    }
    assert!(compared > 120 && 10 * decoded > 9 * compared, "{decoded} of {compared}");
}

/// How calls end, by client.
type Ends = BTreeMap<NamespacedName, End>;

fn ends(results: &[ScanResult]) -> Ends {
    let of = |result: &ScanResult| {
        let end = end(&result.verdicts[0]);
        result.clients.pods.iter().map(move |pod| (pod.clone(), end.clone())).collect::<Vec<_>>()
    };
    results.iter().flat_map(of).collect()
}

fn are_same(own: &Ends, other: &Ends) -> bool {
    let mut pairs = own.iter().zip(other);
    own.len() == other.len() && pairs.all(|((a, own), (b, other))| a == b && is_same(own, other))
}

#[test]
fn calls_that_meet_nothing_that_changed_end_as_before() {
    let (mut same, mut changed) = (0, 0);
    for seed in 1..=CLUSTERS {
        let (manifests, cluster) = random(seed);
        let engine = Engine::new(&cluster).unwrap_or_else(|why| panic!("{seed}: {why:?}"));
        let before = Scanner::new(&engine);
        let services =
            cluster.services.keys().map(|name| ObjectRef::namespaced(ObjectKind::Service, name));
        let ingresses =
            cluster.ingresses.keys().map(|name| ObjectRef::namespaced(ObjectKind::Ingress, name));
        let objects = services.chain(ingresses).filter(|object| manifests.has(object));
        for (at, object) in (0..).zip(objects.step_by(3)) {
            let edits = edits(&object, seed + at);
            let Ok(Ok(edited)) = manifests.edited(&edits).map(|own| own.cluster()) else {
                continue;
            };
            let Ok(edited_engine) = Engine::new(&edited) else { continue };
            let after = Scanner::new(&edited_engine);
            let Some(changes) = Changes::between(&cluster, &edited) else { continue };
            let known = before.targets();
            let known: BTreeSet<_> = known.iter().map(|own| (&own.to, own.protocol)).collect();
            for target in after.targets() {
                if !known.contains(&(&target.to, target.protocol)) {
                    continue;
                }
                let (Ok(old), Ok(new)) = (before.footprint(&target), after.footprint(&target))
                else {
                    continue;
                };
                if old != new || new.meets(&changes) {
                    changed += 1;
                    continue;
                }
                same += 1;
                let alone = std::slice::from_ref(&target);
                let old = ends(&before.scan(alone).expect("verdicts"));
                let new = ends(&after.scan(alone).expect("verdicts"));
                let what = format!("seed {seed}: {} after {edits:?}", target.to);
                assert!(are_same(&old, &new), "{what}: {old:?}, then {new:?}");
            }
        }
    }
    assert!(same > 200 && changed > 40, "{same} targets are as before, {changed} may not be");
}
