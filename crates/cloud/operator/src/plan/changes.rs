//! The calls for the listeners of a load balancer.

mod listeners;
mod redirects;
mod targets;

use std::collections::{BTreeMap, BTreeSet};

use uturn_model::{ObjectKind, ObjectRef};

use super::call::{Call, ListenerRef, RuleRef};
use crate::clb::{Listener, ListenerKey, RuleKey};
use crate::event::Event;
use crate::ledger::Record;
use crate::observed;
use crate::wanted::Wish;

/// The most listeners that one call deletes.
const MAX_DELETED: usize = 20;
/// The most rules of a call.
const MAX_RULES: usize = 20;

/// The observed and the wanted state of a load balancer's listeners.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scene<'a> {
    pub(super) found: Option<&'a observed::Balancer>,
    pub(super) wanted: &'a BTreeMap<ListenerKey, Wish>,
    /// The ledger's record; `None` for a load balancer that belongs entirely to the controllers.
    pub(super) record: Option<&'a Record>,
    /// The UIDs of objects whose listeners and rules stay as they are.
    pub(super) left: &'a BTreeSet<String>,
}

/// A wanted listener that can be created or changed.
#[derive(Clone, Copy, Debug)]
struct Slot<'a> {
    key: ListenerKey,
    wish: &'a Wish,
    /// The existing listener that stays; `None` if the listener is created.
    found: Option<&'a observed::Listener>,
    scene: Scene<'a>,
}

impl Slot<'_> {
    fn listener(&self) -> ListenerRef {
        ListenerRef { key: self.key, id: self.found.map(|found| found.id.clone()) }
    }

    fn rule(&self, key: &RuleKey) -> RuleRef {
        let id = self.found.and_then(|found| found.rules.get(key).cloned());
        RuleRef { listener: self.key, key: key.clone(), id }
    }

    /// Returns whether an existing rule that is not wanted stays, because its object is left as it
    /// is.
    fn keeps(&self, rule: &RuleKey) -> bool {
        self.scene.is_left(self.key, rule)
    }

    /// Returns whether the domains have their own certificates in the end. Once on, SNI stays on.
    fn has_sni(&self) -> bool {
        self.wish.listener.sni || self.found.is_some_and(|found| found.listener.sni)
    }
}

/// The listeners of a load balancer by the kind of their change.
#[derive(Clone, Debug, Default)]
pub(super) struct Sorted<'a> {
    slots: BTreeMap<ListenerKey, Slot<'a>>,
    /// The wanted listeners that cannot be created yet.
    blocked: BTreeMap<ListenerKey, &'a Wish>,
    /// The listeners that are deleted.
    doomed: BTreeMap<ListenerKey, &'a observed::Listener>,
}

impl<'a> Sorted<'a> {
    /// Returns the wanted listeners, both those that can be created or changed and those that
    /// cannot be created yet.
    pub(super) fn slots(&self) -> impl Iterator<Item = (ListenerKey, &'a Wish)> {
        let slots = self.slots.values().map(|slot| (slot.key, slot.wish));
        slots.chain(self.blocked.iter().map(|(key, wish)| (*key, *wish)))
    }

    /// Returns whether a listener exists and stays.
    pub(super) fn stays(&self, key: ListenerKey) -> bool {
        self.slots.get(&key).is_some_and(|slot| slot.found.is_some())
    }
}

impl<'a> Scene<'a> {
    /// Returns the calls, in order.
    pub(super) fn calls(&self, sorted: &Sorted<'a>) -> Vec<Call> {
        let mut calls = redirects::removed(self, sorted);
        calls.extend(listeners::deleted(sorted));
        for slot in sorted.slots.values() {
            calls.extend(listeners::changed(self, slot));
        }
        for slot in sorted.slots.values() {
            calls.extend(listeners::created(slot));
        }
        let targets = targets::changes(sorted);
        calls.extend(targets.registered);
        calls.extend(targets.weighed);
        calls.extend(redirects::created(sorted));
        calls.extend(targets.deregistered);
        calls
    }

    /// Decides which listeners are created, stay, or are deleted. On a load balancer with a record,
    /// listeners that are not recorded are left alone.
    pub(super) fn sort(&self, events: &mut Vec<Event>) -> Sorted<'a> {
        let mut sorted = Sorted::default();
        for (key, wish) in self.wanted {
            if let Some(foreign) = self.found.and_then(|found| found.foreign_at(*key)) {
                let (id, name) = (&foreign.id, &foreign.name);
                let message = format!(
                    "the port {key} has the listener {id} ({name:?}), which is the user's and is \
                     kept"
                );
                events.push(Event::new(&wish.owner, "W1002", message));
                continue;
            }
            let there = self.found.and_then(|found| found.listeners.get(key));
            if let Some(there) = there.filter(|there| !self.is_own(*key, there, Some(wish))) {
                let id = &there.id;
                let message = format!(
                    "the port {key} has the listener {id}, which is not recorded as this \
                     cluster's and is kept"
                );
                let code = if wish.owner.kind == ObjectKind::Ingress { "E4101" } else { "E4014" };
                events.push(Event::new(&wish.owner, code, message));
                continue;
            }
            let stays = there.filter(|there| there.listener.protocol == wish.listener.protocol);
            match (there, stays) {
                (Some(_), None) if wish.is_kept => continue,
                (Some(there), None) => drop(sorted.doomed.insert(*key, there)),
                _ => {}
            }
            if stays.is_some() || !wish.is_blocked {
                let slot = Slot { key: *key, wish, found: stays, scene: *self };
                sorted.slots.insert(*key, slot);
            } else if !wish.is_kept {
                sorted.blocked.insert(*key, wish);
            }
        }
        for (key, there) in self.found.iter().flat_map(|found| &found.listeners) {
            if !self.wanted.contains_key(key) && self.may_go(*key, there) {
                sorted.doomed.insert(*key, there);
            }
        }
        sorted
    }

    /// Returns whether an existing listener is this cluster's.
    fn is_own(&self, key: ListenerKey, there: &observed::Listener, wish: Option<&Wish>) -> bool {
        let wanted = wish.map(|wish| &wish.listener);
        self.record.is_none_or(|record| record.has(key, &there.id, &there.listener, wanted))
    }

    /// Returns whether an unwanted listener may be deleted: it is this cluster's, and no object
    /// that is left as it is owns it or a rule on it.
    fn may_go(&self, key: ListenerKey, there: &observed::Listener) -> bool {
        self.is_own(key, there, None)
            && self.record.and_then(|record| record.listeners.get(&key)).is_none_or(|held| {
                let mut holders = std::iter::once(&held.holder).chain(held.rules.values());
                holders.all(|holder| !self.left.contains(&holder.uid))
            })
    }

    /// Returns whether a rule is recorded for an object that is left as it is.
    pub(super) fn is_left(&self, key: ListenerKey, rule: &RuleKey) -> bool {
        let holder = self.record.and_then(|record| record.holder_of_rule(key, rule));
        holder.is_some_and(|holder| self.left.contains(&holder.uid))
    }
}

/// Returns the wanted listeners without changes that conflict with objects that are left as they
/// are. These are the `frozen` ones of the objects that want the load balancer, and others that
/// only own parts of it.
pub(super) fn beside(
    wanted: &BTreeMap<ListenerKey, Wish>,
    scene: &Scene<'_>,
    frozen: &BTreeSet<ObjectRef>,
) -> BTreeMap<ListenerKey, Wish> {
    let mut prepared = BTreeMap::new();
    for (key, wish) in wanted {
        let mut wish = wish.clone();
        if frozen.contains(&wish.owner) {
            if wish.rules_of.is_empty() {
                continue;
            }
            let rules = wish.rules_of.keys().cloned().collect::<BTreeSet<_>>();
            let mut listener = Listener::new(wish.listener.protocol);
            listener.rules = std::mem::take(&mut wish.listener.rules);
            listener.rules.retain(|rule, _| rules.contains(rule));
            listener.domains = std::mem::take(&mut wish.listener.domains);
            wish = Wish { listener, is_kept: true, is_blocked: true, ..wish };
        }
        let there = scene.found.and_then(|found| found.listeners.get(key));
        let stays: Vec<&RuleKey> = there
            .iter()
            .flat_map(|there| there.rules.keys())
            .filter(|rule| scene.is_left(*key, rule))
            .collect();
        let owners = wish.rules_of.clone();
        let owner = wish.owner.clone();
        let may_be = |rule: &RuleKey| {
            !stays.contains(&rule) && !frozen.contains(owners.get(rule).unwrap_or(&owner))
        };
        wish.listener.rules.retain(|rule, _| may_be(rule));
        let has_rule = |domain: &String| {
            wish.listener.rules.keys().any(|rule| rule.domain == *domain)
                && !stays.iter().any(|rule| rule.domain == *domain)
        };
        wish.listener.domains.retain(|domain, _| has_rule(domain));
        prepared.insert(*key, wish);
    }
    prepared
}

/// Returns the calls that remove the controllers' listeners from a load balancer.
pub(super) fn clear(
    found: &observed::Balancer,
    record: Option<&Record>,
    left: &BTreeSet<String>,
) -> Vec<Call> {
    let wanted = BTreeMap::new();
    let scene = Scene { found: Some(found), wanted: &wanted, record, left };
    scene.calls(&scene.sort(&mut Vec::new()))
}
