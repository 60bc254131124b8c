//! The calls for targets.

use std::collections::BTreeMap;

use uturn_model::Name;

use super::Sorted;
use crate::plan::call::{Binding, Call};

/// The most targets of a call.
const MAX_TARGETS: usize = 500;
/// The most listeners and rules of a call that changes weights.
const MAX_GROUPS: usize = 100;
/// The most targets of one listener or rule in such a call.
const MAX_OF_GROUP: usize = 50;

/// The calls that change targets.
#[derive(Clone, Debug, Default)]
pub(super) struct Changes {
    pub(super) registered: Vec<Call>,
    pub(super) weighed: Vec<Call>,
    pub(super) deregistered: Vec<Call>,
}

/// Binds missing targets, changes weights, and unbinds unwanted targets. Targets of deleted
/// listeners and rules are deleted with those.
pub(super) fn changes(sorted: &Sorted<'_>) -> Changes {
    let mut of_namespaces: BTreeMap<Option<&Name>, Bindings> = BTreeMap::new();
    for slot in sorted.slots.values() {
        let there = slot.found.map(|found| found.listener.groups()).unwrap_or_default();
        for (rule, wanted) in slot.wish.listener.groups() {
            let binding = |target: &crate::clb::TargetKey, weight: u8| Binding {
                listener: slot.listener(),
                rule: rule.as_ref().map(|key| slot.rule(key)),
                target: target.clone(),
                weight,
            };
            let there = there.get(&rule);
            let own = of_namespaces.entry(slot.wish.namespace_of(rule.as_ref())).or_default();
            for (target, weight) in wanted {
                match there.and_then(|there| there.get(target)) {
                    None => own.registered.push(binding(target, *weight)),
                    Some(found) if found != weight => own.weighed.push(binding(target, *weight)),
                    Some(_) => {}
                }
            }
            for (target, weight) in there.into_iter().flat_map(|there| there.iter()) {
                if !wanted.contains_key(target) {
                    own.deregistered.push(binding(target, *weight));
                }
            }
        }
    }
    let mut changes = Changes::default();
    for Bindings { registered, weighed, deregistered } in of_namespaces.into_values() {
        let batches = |bindings: &[Binding], call: fn(Vec<Binding>) -> Call| -> Vec<Call> {
            bindings.chunks(MAX_TARGETS).map(|some| call(some.to_vec())).collect()
        };
        changes.registered.extend(batches(&registered, Call::Register));
        changes.weighed.extend(weight_batches(weighed).into_iter().map(Call::Weigh));
        changes.deregistered.extend(batches(&deregistered, Call::Deregister));
    }
    changes
}

/// The changes of targets for the objects of one namespace.
#[derive(Clone, Debug, Default)]
struct Bindings {
    registered: Vec<Binding>,
    weighed: Vec<Binding>,
    deregistered: Vec<Binding>,
}

/// Divides bindings, which are ordered by group, so that each call stays within the limits.
fn weight_batches(bindings: Vec<Binding>) -> Vec<Vec<Binding>> {
    let mut batches: Vec<Vec<Binding>> = Vec::new();
    let (mut groups, mut of_group) = (0, 0);
    for binding in bindings {
        let last = batches.last().and_then(|batch| batch.last());
        let is_same = last
            .is_some_and(|last| (&last.listener, &last.rule) == (&binding.listener, &binding.rule));
        let starts_group = !is_same || of_group == MAX_OF_GROUP;
        if starts_group {
            (groups, of_group) = (groups + 1, 0);
        }
        let is_full = batches.last().is_none_or(|batch| batch.len() == MAX_TARGETS);
        if is_full || groups > MAX_GROUPS {
            batches.push(Vec::new());
            (groups, of_group) = (1, 0);
        }
        of_group += 1;
        if let Some(batch) = batches.last_mut() {
            batch.push(binding);
        }
    }
    batches
}

#[cfg(test)]
mod tests {
    use uturn_model::Protocol;

    use super::*;
    use crate::clb::{Holder, ListenerKey, TargetKey};
    use crate::plan::ListenerRef;

    fn binding(port: u16, target: u16) -> Binding {
        Binding {
            listener: ListenerRef {
                key: ListenerKey { port, transport: Protocol::Tcp },
                id: Some(format!("lbl-{port}")),
            },
            rule: None,
            target: TargetKey { holder: Holder::Instance("ins-1".to_owned()), port: target },
            weight: 10,
        }
    }

    #[test]
    fn batches_of_weights_keep_all_limits() {
        let many_groups = (1..=250).map(|port| binding(port, 1)).collect();
        let sizes: Vec<usize> = weight_batches(many_groups).iter().map(Vec::len).collect();
        assert_eq!(sizes, [100, 100, 50]);
        let many_targets = (1..=1200).map(|target| binding(80, target)).collect();
        let sizes: Vec<usize> = weight_batches(many_targets).iter().map(Vec::len).collect();
        assert_eq!(sizes, [500, 500, 200]);
        assert!(weight_batches(Vec::new()).is_empty());
    }
}
