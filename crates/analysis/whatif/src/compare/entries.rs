//! Calls that change alike, as entries: by effect, object and ends.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use uturn_diagnose::{workload_of, workload_word};
use uturn_model::Flow;
use uturn_model::{
    Client, Cluster, Mechanism, Name, NamespacedName, ObjectRef, Outcome, Pod, Text,
};
use uturn_scan::ScanTarget;

use super::difference::{of_both, of_new, worst};
use super::flows::{Class, Flows, Key, TargetFlows, Walked};
use super::readings;
use super::ways::WayWalker;
use crate::result::{Effect, Entry, Side, Verdicts, Who};

/// What tells entries apart.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Cause {
    effect: Effect,
    subject: ObjectRef,
    before: Ends,
    after: Ends,
    ways: Option<(String, String)>,
    /// Whether node ports are called.
    at_nodes: bool,
}

/// The outcomes of a side with rounded shares, and the mechanisms.
type Ends = (Vec<(Outcome, u64)>, Vec<Mechanism>);

/// Calls of one cause.
#[derive(Clone, Debug, Default, PartialEq)]
struct Calls {
    before: Side,
    after: Side,
    targets: Vec<String>,
    pods: BTreeSet<NamespacedName>,
    others: BTreeSet<String>,
}

/// The calls that differ, by cause, in each pair of readings.
pub(super) struct Found<'c> {
    pub(super) calls: usize,
    by_cause: BTreeMap<Cause, Vec<(usize, Calls)>>,
    walked: &'c Walked,
    before: &'c Cluster,
    after: &'c Cluster,
}

impl<'c> Found<'c> {
    /// Compares all calls, pair by pair of readings.
    pub(super) fn of(
        walked: &'c Walked,
        before: &'c Cluster,
        after: &'c Cluster,
        deleted: &[ObjectRef],
        ways: &mut WayWalker<'_>,
    ) -> Self {
        let mut all = Self { calls: 0, by_cause: BTreeMap::new(), walked, before, after };
        for (at, pair) in walked.pairs.iter().enumerate() {
            // How calls go is told of the assumed reading only.
            let ways = if at == 0 { Some(&mut *ways) } else { None };
            let mut differences =
                Differences { before, after, deleted, ways, calls: 0, by_cause: BTreeMap::new() };
            differences.compare(&walked.before[pair.before], &walked.after[pair.after]);
            if at == 0 {
                all.calls = differences.calls;
            }
            for (cause, calls) in differences.by_cause {
                all.by_cause.entry(cause).or_default().push((at, calls));
            }
        }
        all
    }

    /// Returns an entry for each cause, with the conditions under which it holds.
    pub(super) fn entries(self) -> Vec<Entry> {
        let mut entries = Vec::new();
        for (cause, in_pairs) in self.by_cause {
            // Readings in which the same clients are concerned are one entry.
            let mut merged: Vec<(Vec<usize>, Calls)> = Vec::new();
            for (at, calls) in in_pairs {
                match merged.iter_mut().find(|(_, known)| *known == calls) {
                    Some((places, _)) => places.push(at),
                    None => merged.push((vec![at], calls)),
                }
            }
            for (places, calls) in merged {
                let conditions: Vec<Text> =
                    readings::conditions(self.before, self.after, &self.walked.pairs, &places);
                let of_client = if calls.after.is_absent() { self.before } else { self.after };
                entries.push(Entry {
                    effect: cause.effect,
                    subject: cause.subject.clone(),
                    targets: calls.targets,
                    who: who(of_client, calls.pods, calls.others),
                    before: calls.before,
                    after: calls.after,
                    conditions,
                    subjected: None,
                    origin: None,
                });
            }
        }
        entries
    }
}

/// Describes clients.
pub(super) fn who(
    cluster: &Cluster,
    pods: BTreeSet<NamespacedName>,
    others: BTreeSet<String>,
) -> Who {
    let mut workloads: BTreeMap<String, usize> = BTreeMap::new();
    let mut nodes: BTreeSet<&Name> = BTreeSet::new();
    for pod in pods.iter().filter_map(|name| cluster.pods.get(name)) {
        *workloads.entry(workload_word(&workload_of(pod))).or_default() += 1;
        nodes.extend(&pod.node);
    }
    let mut workloads: Vec<(String, usize)> = workloads.into_iter().collect();
    workloads.sort_by_key(|(_, count)| Reverse(*count));
    let nodes = nodes.len();
    Who { pods: pods.into_iter().collect(), workloads, nodes, others: others.into_iter().collect() }
}

/// The differences of two sets of calls.
struct Differences<'c, 'w, 'x> {
    before: &'c Cluster,
    after: &'c Cluster,
    deleted: &'c [ObjectRef],
    ways: Option<&'w mut WayWalker<'x>>,
    calls: usize,
    by_cause: BTreeMap<Cause, Calls>,
}

impl Differences<'_, '_, '_> {
    fn compare(&mut self, before: &Flows, after: &Flows) {
        let keys: BTreeSet<&Key> = before.targets.keys().chain(after.targets.keys()).collect();
        for key in keys {
            match (before.targets.get(key), after.targets.get(key)) {
                (Some(old), Some(new)) => self.of_target(old, new),
                (Some(old), None) => self.of_one_side(old, true),
                (None, Some(new)) => self.of_one_side(new, false),
                (None, None) => {}
            }
        }
        let target = |key: &Key| {
            let of = after.targets.get(key).or_else(|| before.targets.get(key))?;
            Some(&*of.target)
        };
        for ((client, key), old) in &before.others {
            let Some(new) = after.others.get(&(client.clone(), key.clone())) else { continue };
            self.calls += 1;
            if let (Some(effect), Some(target)) = (of_both(old, new), target(key)) {
                let calls = self.calls_of(effect, target, old, new, None);
                calls.others.insert(client.to_string());
            }
        }
    }

    /// Compares the calls to a target that is there before and after.
    fn of_target(&mut self, before: &TargetFlows, after: &TargetFlows) {
        let target = &after.target;
        let is_same_class = |old: &Class, new: &Class| {
            old.first == new.first
                && old.pods.len() == new.pods.len()
                && old.pods.iter().eq(new.pods.iter())
        };
        let (olds, news) = (&before.classes, &after.classes);
        if olds.len() == news.len()
            && olds.iter().zip(news).all(|(old, new)| is_same_class(old, new))
        {
            for (old, new) in olds.iter().zip(news) {
                let pods: Vec<&NamespacedName> = new.pods.iter().collect();
                self.of_pods(target, old, new, &pods);
            }
            return;
        }
        let mut by_pod: HashMap<&NamespacedName, usize> = HashMap::new();
        for (at, class) in olds.iter().enumerate() {
            by_pod.extend(class.pods.iter().map(|pod| (pod, at)));
        }
        let none = Vec::new();
        for new in news {
            let mut parts: BTreeMap<Option<usize>, Vec<&NamespacedName>> = BTreeMap::new();
            for pod in new.pods.iter() {
                parts.entry(by_pod.remove(pod)).or_default().push(pod);
            }
            for (old, pods) in parts {
                if let Some(old) = old {
                    self.of_pods(target, &olds[old], new, &pods);
                    continue;
                }
                for pod in pods {
                    self.calls += 1;
                    let is_new = !may_call(self.before, pod);
                    let effect = of_new(&new.ends, is_new);
                    let calls = self.calls_of(effect, target, &none, &new.ends, None);
                    calls.pods.insert(pod.clone());
                }
            }
        }
        for (pod, old) in by_pod {
            self.calls += 1;
            let old = &olds[old].ends;
            let is_gone = !may_call(self.after, pod);
            let effect = of_new(old, is_gone).swapped();
            let calls = self.calls_of(effect, target, old, &none, None);
            calls.pods.insert(pod.clone());
        }
    }

    /// Compares the calls of pods that share a class before and after.
    fn of_pods(&mut self, target: &ScanTarget, old: &Class, new: &Class, pods: &[&NamespacedName]) {
        self.calls += pods.len();
        let (effect, ways) = match of_both(&old.ends, &new.ends) {
            Some(effect) => (effect, None),
            // The same walks were made for both.
            None if Arc::ptr_eq(&old.verdicts, &new.verdicts) => return,
            None => {
                let Some(first) = pods.first() else { return };
                let flow = Flow {
                    from: Client::Pod((*first).clone()),
                    to: target.to.clone(),
                    protocol: target.protocol,
                };
                let differing = self.ways.as_mut().and_then(|ways| ways.differing(&flow));
                let Some(ways) = differing else { return };
                (Effect::GoesOtherwise, Some(ways))
            }
        };
        let calls = self.calls_of(effect, target, &old.ends, &new.ends, ways);
        calls.pods.extend(pods.iter().map(|pod| (*pod).clone()));
    }

    /// Compares the calls to a target that is there on one side only.
    fn of_one_side(&mut self, flows: &TargetFlows, is_gone: bool) {
        let target = &flows.target;
        let other = if is_gone { self.after } else { self.before };
        let is_named = self.deleted.contains(&target.object);
        let is_whole = is_named || !has(other, &target.object);
        for class in &flows.classes {
            self.calls += class.pods.len();
            let effect = of_new(&class.ends, is_whole);
            let none = Vec::new();
            let calls = if is_gone {
                self.calls_of(effect.swapped(), target, &class.ends, &none, None)
            } else {
                self.calls_of(effect, target, &none, &class.ends, None)
            };
            calls.pods.extend(class.pods.iter().cloned());
        }
    }

    /// Returns the calls of a cause, to which clients are added.
    fn calls_of(
        &mut self,
        effect: Effect,
        target: &ScanTarget,
        before: &Verdicts,
        after: &Verdicts,
        ways: Option<(String, String)>,
    ) -> &mut Calls {
        let (mut before, mut after) = (worst(before), worst(after));
        let cause = Cause {
            effect,
            subject: target.object.clone(),
            before: ends(&before),
            after: ends(&after),
            ways: ways.clone(),
            at_nodes: target.called_node().is_some(),
        };
        (before.way, after.way) = ways.unzip();
        let calls = self.by_cause.entry(cause).or_default();
        (calls.before, calls.after) = (before, after);
        if !calls.targets.contains(&target.label) {
            calls.targets.push(target.label.clone());
        }
        calls
    }
}

/// Returns whether a cluster has a pod, and its node is not down.
fn may_call(cluster: &Cluster, pod: &NamespacedName) -> bool {
    let node = |pod: &Pod| pod.node.as_ref().and_then(|name| cluster.nodes.get(name));
    cluster.pods.get(pod).is_some_and(|pod| node(pod).is_none_or(|node| node.loss.is_none()))
}

/// Returns whether a cluster has an object that can be called.
fn has(cluster: &Cluster, object: &ObjectRef) -> bool {
    let Some(name) = object.namespaced_name() else {
        return cluster.load_balancers.iter().any(|fact| fact.object() == *object);
    };
    cluster.services.get(&name).is_some_and(|service| service.object() == *object)
        || cluster.ingresses.values().any(|ingress| ingress.object() == *object)
}

fn ends(side: &Side) -> Ends {
    let mut outcomes: Vec<(Outcome, u64)> =
        side.outcomes.iter().map(|(outcome, share)| (*outcome, share.rounded())).collect();
    outcomes.sort_unstable();
    (outcomes, side.mechanisms.clone())
}

/// Sorts entries: by effect, then the most clients whose calls fail first, then by name.
pub(super) fn sort(entries: &mut [Entry]) {
    entries.sort_by_cached_key(|entry| {
        let is_conditional = !entry.conditions.is_empty();
        let failing = entry.after.share_failing().larger(entry.before.share_failing());
        let harm = failing.rounded() * entry.who.len() as u64;
        let name = (entry.subject.clone(), entry.targets.clone(), entry.conditions.clone());
        let clients = (entry.who.pods.first().cloned(), entry.who.others.clone());
        (
            is_conditional,
            entry.effect,
            Reverse(harm),
            name,
            ends(&entry.before),
            ends(&entry.after),
            clients,
        )
    });
}
