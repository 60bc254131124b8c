use std::collections::BTreeSet;

use uturn_dice::Dice;
use uturn_model::Cluster;
use uturn_path::Engine;
use uturn_scan::Scanner;

#[path = "../../../scan/tests/classes/dice.rs"]
#[allow(dead_code, reason = "the tests of another crate use all of it")]
mod dice;

use super::NodeLosses;
use super::walk::{self, Base, Broken};
use crate::random_cluster::{made, random};

/// Sorts calls so that they can be compared.
fn sorted(mut all: Vec<Broken>) -> Vec<String> {
    all.retain(|own| own.outside || !own.pods.is_empty());
    let mut lines: Vec<String> = all
        .iter()
        .flat_map(|own| {
            let ends = [&own.ends.before, &own.ends.at_once, &own.ends.noticed];
            let ends = ends.map(|end| (end.key().collect::<Vec<_>>(), &end.mechanisms));
            let line = move |who: String| format!("{} {who} {ends:?}", own.target);
            let outside = own.outside.then(|| line.clone()("outside".to_owned()));
            own.pods.iter().map(move |pod| line(pod.to_string())).chain(outside).collect::<Vec<_>>()
        })
        .collect();
    lines.sort();
    lines
}

/// Holds every loss of a node against a walk of every client with this very node lost. Returns the
/// number of calls that broke, and of walks that were spared.
fn held_against_brute_force(cluster: &Cluster, seed: u64) -> (usize, usize) {
    let engine = Engine::new(cluster).unwrap();
    let scanner = Scanner::new(&engine);
    let base = Base::new(&scanner, scanner.targets()).unwrap();
    let losses = NodeLosses::walk(&base, &scanner).unwrap();
    let each = base.exhaustive();
    let all: Vec<usize> = (0..base.targets.len()).collect();
    let mut broken = 0;
    for (place, name) in losses.names.iter().enumerate() {
        let lost = BTreeSet::from([(*name).clone()]);
        let walked = losses.cover.chosen.len();
        let itself = sorted(walk::loss(&each, &lost, &all, walked).unwrap());
        assert_eq!(sorted(losses.of(&base, place)), itself, "seed {seed}, {name}");
        broken += itself.len();
    }
    let walked: usize = losses.cover.chosen.values().map(Vec::len).sum();
    (broken, losses.names.len() * base.targets.len() - walked)
}

/// What breaks when a node is lost is the same whether the loss was walked for the node's class, or
/// for the node itself.
#[test]
fn losing_a_class_of_nodes_is_losing_each_of_them() {
    let all: Vec<(usize, usize)> = (0..40)
        .map(|seed| held_against_brute_force(&made(random(&mut Dice::new(seed)).concat()), seed))
        .collect();
    let (broken, spared) = all.iter().fold((0, 0), |all, own| (all.0 + own.0, all.1 + own.1));
    assert!(broken > 500 && spared > 100, "{broken} calls broke, {spared} walks were spared");
}

/// The same in clusters with load balancers of all kinds, captured nodes, policies and all else that
/// can tell nodes apart.
#[test]
fn losing_a_class_of_nodes_is_losing_each_of_them_whatever_tells_nodes_apart() {
    let mut broken = 0;
    for seed in 0..12 {
        let cluster = made(dice::cluster(&mut dice::Dice::new(seed)));
        broken += held_against_brute_force(&cluster, seed).0;
    }
    assert!(broken > 500, "{broken} calls broke");
}
