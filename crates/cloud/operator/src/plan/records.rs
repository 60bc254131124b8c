//! The record of a load balancer of the user's that has to be saved before the calls of a plan are
//! made.

use std::collections::{BTreeMap, BTreeSet};

use uturn_model::ObjectRef;

use super::changes::Sorted;
use crate::clb::ListenerKey;
use crate::environment::Environment;
use crate::ledger::{Held, Holder, Record};
use crate::observed;
use crate::wanted::{self, Wish};

/// Returns the next record of a load balancer that objects use.
pub(super) fn next(
    before: &Record,
    wanted: &wanted::Balancer,
    found: &observed::Balancer,
    sorted: &Sorted<'_>,
    left: &BTreeSet<String>,
    environment: &Environment,
) -> Record {
    let mut listeners = kept(before, found, left);
    for (key, slot) in sorted.slots() {
        let there = found.listeners.get(&key);
        let there =
            there.filter(|there| before.has(key, &there.id, &there.listener, Some(&slot.listener)));
        // A listener that cannot be created yet also occupies its port.
        let is_creating = !sorted.stays(key) && !slot.is_blocked;
        let held = before.listeners.get(&key).filter(|_| slot.is_kept);
        let holder = held.map_or_else(|| of(&slot.owner, environment), |held| held.holder.clone());
        let rules = rules(before, key, slot, left, environment);
        let id = there.map(|there| there.id.clone());
        listeners.insert(key, Held { holder, id, is_creating, rules });
    }
    let is_user = |holder: &&Holder| {
        left.contains(&holder.uid) || wanted.owners.iter().any(|owner| owner.uid == holder.uid)
    };
    let owner = before.owner.as_ref().filter(is_user);
    let owner = owner.or(wanted.settings_of.as_ref()).filter(|owner| !left.contains(&owner.uid));
    let owner = owner.or(before.owner.as_ref().filter(is_user)).cloned();
    Record { owner, listeners, is_adopting: before.is_adopting }
}

/// Returns the next record of a load balancer that is no longer used, except by objects that are
/// left as they are.
pub(super) fn of_left(
    before: &Record,
    found: &observed::Balancer,
    left: &BTreeSet<String>,
) -> Record {
    let listeners = kept(before, found, left);
    let owner = before.owner.clone().filter(|owner| left.contains(&owner.uid));
    Record { owner, listeners, is_adopting: before.is_adopting }
}

/// Returns the listeners that still exist, and all listeners of objects that are left as they are.
fn kept(
    before: &Record,
    found: &observed::Balancer,
    left: &BTreeSet<String>,
) -> BTreeMap<ListenerKey, Held> {
    let stays = |(key, held): &(&ListenerKey, &Held)| {
        let there = found.listeners.get(key);
        left.contains(&held.holder.uid)
            || there.is_some_and(|there| before.has(**key, &there.id, &there.listener, None))
            || held.rules.values().any(|holder| left.contains(&holder.uid))
    };
    before.listeners.iter().filter(stays).map(|(key, held)| (*key, held.clone())).collect()
}

/// Returns the owners of other objects' rules on a listener: of wanted rules, and of rules of
/// objects that are left as they are.
fn rules(
    before: &Record,
    key: ListenerKey,
    wish: &Wish,
    left: &BTreeSet<String>,
    environment: &Environment,
) -> BTreeMap<crate::clb::RuleKey, Holder> {
    let there = before.listeners.get(&key).into_iter().flat_map(|held| &held.rules);
    let mut rules: BTreeMap<_, _> = there
        .filter(|(_, holder)| left.contains(&holder.uid))
        .map(|(rule, holder)| (rule.clone(), holder.clone()))
        .collect();
    let own = wish.rules_of.iter().filter(|(rule, _)| wish.listener.rules.contains_key(rule));
    rules.extend(own.map(|(rule, object)| (rule.clone(), of(object, environment))));
    rules
}

fn of(object: &ObjectRef, environment: &Environment) -> Holder {
    Holder { object: object.clone(), uid: environment.uid(object) }
}
