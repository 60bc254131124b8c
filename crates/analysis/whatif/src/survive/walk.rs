//! Walks the calls of a cluster from which something is lost, and finds those that are worse off.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use uturn_model::node::Loss;
use uturn_model::{Cluster, Destination, Name, NamespacedName, Outcome, Share};
use uturn_path::{Engine, WalkError};
use uturn_scan::{ScanResult, ScanTarget, Scanner};

use super::end::{End, Ends};
use super::outside::OutsideCalls;
use crate::change::life::lost;

/// The cluster before a loss, and how its calls end.
pub(super) struct Base<'a, 'e> {
    pub(super) cluster: &'a Cluster,
    pub(super) engine: &'e Engine<'a>,
    pub(super) targets: Vec<ScanTarget>,
    /// The results of each target.
    results: Vec<Vec<ScanResult>>,
    pub(super) pods: Vec<&'a NamespacedName>,
    numbers: HashMap<&'a NamespacedName, u32>,
    pub(super) outside: OutsideCalls,
    /// Whether each client is walked, without classes.
    is_exhaustive: bool,
}

/// Calls that are worse off.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Broken {
    /// The place of the target.
    pub(super) target: usize,
    pub(super) ends: Ends,
    /// The numbers of the calling pods, in order.
    pub(super) pods: Vec<u32>,
    /// Whether clients outside of the cluster call, in place of pods.
    pub(super) outside: bool,
}

impl<'a, 'e> Base<'a, 'e> {
    pub(super) fn new(
        scanner: &Scanner<'e, 'a>,
        targets: Vec<ScanTarget>,
    ) -> Result<Self, WalkError> {
        let (engine, cluster) = (scanner.engine(), scanner.engine().cluster());
        let places: Vec<usize> = (0..targets.len()).collect();
        let results = by_target(scanner.scan(&targets)?, &targets, &places);
        let pods: Vec<&NamespacedName> = cluster.pods.keys().collect();
        let numbers = (0u32..).zip(&pods).map(|(number, name)| (*name, number)).collect();
        let outside = OutsideCalls::of(&targets);
        let is_exhaustive = false;
        Ok(Self { cluster, engine, targets, results, pods, numbers, outside, is_exhaustive })
    }

    /// Returns the same, with losses after which each client is walked.
    #[cfg(test)]
    pub(super) fn exhaustive(&self) -> Self {
        Self {
            targets: self.targets.clone(),
            results: self.results.clone(),
            pods: self.pods.clone(),
            numbers: self.numbers.clone(),
            outside: OutsideCalls::of(&self.targets),
            is_exhaustive: true,
            ..*self
        }
    }

    /// Returns the node of a pod.
    fn node_of(&self, pod: u32) -> Option<&'a Name> {
        self.cluster.pods[self.pods[pod as usize]].node.as_ref()
    }
}

impl Broken {
    /// Returns the calls of the pods on nodes for which `counts` is true.
    pub(super) fn only(&self, base: &Base<'_, '_>, counts: &dyn Fn(Option<&Name>) -> bool) -> Self {
        let pods = self.pods.iter().copied().filter(|pod| counts(base.node_of(*pod))).collect();
        Self { pods, ..self.clone() }
    }

    /// Returns the calls of pods alone.
    pub(super) fn inside(self) -> Self {
        Self { outside: false, ..self }
    }
}

/// Adds calls, and joins those that end alike. Those without clients are left out.
pub(super) fn add_alike(all: &mut Vec<Broken>, more: impl Iterator<Item = Broken>) {
    for broken in more.filter(|own| own.outside || !own.pods.is_empty()) {
        let is_alike = |own: &&mut Broken| {
            (own.target, own.outside) == (broken.target, broken.outside) && own.ends == broken.ends
        };
        match all.iter_mut().find(is_alike) {
            Some(own) => {
                own.pods.extend(&broken.pods);
                own.pods.sort_unstable();
                own.pods.dedup();
            }
            None => all.push(broken),
        }
    }
}

/// Returns the calls of some targets that are worse off when nodes are lost together. `of` is the
/// number of losses that are walked in all.
///
/// # Errors
/// Returns an error if the rules of a node cannot be made, or a call cannot be walked.
pub(super) fn loss(
    base: &Base<'_, '_>,
    nodes: &BTreeSet<Name>,
    targets: &[usize],
    of: usize,
) -> Result<Vec<Broken>, Vec<WalkError>> {
    // That an address of a lost node does not answer is no news.
    let is_open = |place: &&usize| !is_at(base.cluster, nodes, &base.targets[**place]);
    let targets: Vec<usize> = targets.iter().filter(is_open).copied().collect();
    let clusters =
        [Loss::Unnoticed, Loss::Noticed].map(|loss| lost(base.cluster, nodes, loss).cluster);
    let mut states = Vec::with_capacity(2);
    for cluster in &clusters {
        let engine = Engine::new(cluster)?;
        let known = |place: &&usize| engine.resolve_outside(&base.targets[**place].to).is_ok();
        let walked: Vec<usize> = targets.iter().filter(known).copied().collect();
        let called: Vec<ScanTarget> =
            walked.iter().map(|place| base.targets[*place].clone()).collect();
        let scanner = Scanner::new(&engine);
        let scanned = if base.is_exhaustive {
            scanner.scan_exhaustively(&called)
        } else {
            scanner.scan(&called)
        };
        let scanned = scanned.map_err(|why| vec![why])?;
        let results = by_target(scanned, &called, &walked);
        let outside = base.outside.ends(&base.targets, &engine, &walked, of);
        states.push((walked, results, outside));
    }
    let [(now, at_once, outside_now), (then, noticed, outside_then)] = states.as_slice() else {
        return Ok(Vec::new());
    };
    let mut all = Vec::new();
    for (target, at_once) in now.iter().zip(at_once) {
        let place = then.iter().position(|own| own == target);
        let noticed = place.map(|place| noticed[place].as_slice());
        add_alike(&mut all, of_target(base, nodes, *target, at_once, noticed).into_iter());
        let ends = (outside_now.get(target), outside_then.get(target));
        let (Some(at_once), Some(noticed)) = ends else { continue };
        let Some(before) = base.outside.before(&base.targets, base.engine).get(target).cloned()
        else {
            continue;
        };
        let ends = Ends { before, at_once: at_once.clone(), noticed: noticed.clone() };
        if ends.is_worse() {
            all.push(Broken { target: *target, ends, pods: Vec::new(), outside: true });
        }
    }
    Ok(all)
}

/// Returns whether a target is at an address of one of these nodes.
fn is_at(cluster: &Cluster, nodes: &BTreeSet<Name>, target: &ScanTarget) -> bool {
    let Destination::Address(at) = &target.to else { return false };
    let mut nodes = nodes.iter().filter_map(|name| cluster.nodes.get(name));
    nodes.any(|node| node.has_address(at.ip()))
}

/// Sorts results by target: one list for each of `called`, in that order.
fn by_target(
    results: Vec<ScanResult>,
    called: &[ScanTarget],
    places: &[usize],
) -> Vec<Vec<ScanResult>> {
    let mut all: Vec<Vec<ScanResult>> = places.iter().map(|_| Vec::new()).collect();
    let mut at = 0;
    for result in results {
        while called.get(at).is_some_and(|target| *target != *result.target) {
            at += 1;
        }
        if let Some(own) = all.get_mut(at) {
            own.push(result);
        }
    }
    all
}

/// The number for a pod that does not call.
const NONE: u32 = u32::MAX;

/// Returns the calls of pods to a target that are worse off. A target that is gone after the loss was
/// noticed is not answered.
fn of_target(
    base: &Base<'_, '_>,
    nodes: &BTreeSet<Name>,
    target: usize,
    at_once: &[ScanResult],
    noticed: Option<&[ScanResult]>,
) -> Vec<Broken> {
    let ends = |results: &[ScanResult]| -> Vec<End> {
        results.iter().map(|result| End::of(&result.verdicts)).collect()
    };
    let before = &base.results[target];
    let gone = End { outcomes: vec![(Outcome::Refused, Share::ALL)], mechanisms: Vec::new() };
    let ends = [ends(before), ends(at_once), noticed.map_or_else(|| vec![gone], ends)];
    let worst = ends[1].iter().chain(&ends[2]).fold(None, |worst: Option<&End>, own| {
        worst.filter(|worst| !own.is_worse_than(worst)).or(Some(own))
    });
    if !worst.is_some_and(|worst| ends[0].iter().any(|own| worst.is_worse_than(own))) {
        return Vec::new();
    }
    let mut classes = vec![[NONE; 3]; base.pods.len()];
    let all = [Some(before.as_slice()), Some(at_once), noticed];
    for (state, results) in all.into_iter().enumerate() {
        let Some(results) = results else {
            classes.iter_mut().for_each(|class| class[state] = 0);
            continue;
        };
        for (number, result) in (0u32..).zip(results) {
            for pod in result.clients.pods.iter() {
                classes[base.numbers[pod] as usize][state] = number;
            }
        }
    }
    let mut groups: BTreeMap<[u32; 3], Vec<u32>> = BTreeMap::new();
    for (pod, class) in (0u32..).zip(&classes) {
        let is_lost = || base.node_of(pod).is_some_and(|node| nodes.contains(node));
        if !class.contains(&NONE) && !is_lost() {
            groups.entry(*class).or_default().push(pod);
        }
    }
    let broken = groups.into_iter().filter_map(|(class, pods)| {
        let [before, at_once, noticed] =
            [0, 1, 2].map(|state| ends[state][class[state] as usize].clone());
        let ends = Ends { before, at_once, noticed };
        ends.is_worse().then_some(Broken { target, ends, pods, outside: false })
    });
    broken.collect()
}
