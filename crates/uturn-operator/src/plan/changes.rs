//! The calls on the listeners of a load balancer.

mod listeners;
mod redirects;
mod targets;

use std::collections::{BTreeMap, BTreeSet};

use uturn_model::ObjectRef;

use super::call::{Call, ListenerRef, RuleRef};
use crate::clb::{ListenerKey, RuleKey};
use crate::event::Event;
use crate::observed;
use crate::wanted::Wish;

/// The most listeners that one call deletes.
const MAX_DELETED: usize = 20;
/// The most rules of a call.
const MAX_RULES: usize = 20;

/// Objects whose listeners are left as they are.
#[derive(Clone, Debug, Default)]
pub(super) struct Frozen {
    pub(super) owners: BTreeSet<ObjectRef>,
}

/// What is there and what is wanted on a load balancer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scene<'a> {
    pub(super) found: Option<&'a observed::Balancer>,
    pub(super) wanted: &'a BTreeMap<ListenerKey, Wish>,
    pub(super) frozen: &'a Frozen,
}

/// A listener that is wanted and may be made.
#[derive(Clone, Copy, Debug)]
struct Slot<'a> {
    key: ListenerKey,
    wish: &'a Wish,
    /// The listener that is there and stays; `None` if it is created.
    found: Option<&'a observed::Listener>,
}

impl Slot<'_> {
    fn listener(&self) -> ListenerRef {
        ListenerRef { key: self.key, id: self.found.map(|found| found.id.clone()) }
    }

    fn rule(&self, key: &RuleKey) -> RuleRef {
        let id = self.found.and_then(|found| found.rules.get(key).cloned());
        RuleRef { listener: self.key, key: key.clone(), id }
    }

    /// Whether its domains have certificates of their own in the end: once on, that stays.
    fn has_sni(&self) -> bool {
        self.wish.listener.sni || self.found.is_some_and(|found| found.listener.sni)
    }
}

/// How the listeners of a load balancer change.
#[derive(Clone, Debug, Default)]
struct Sorted<'a> {
    slots: BTreeMap<ListenerKey, Slot<'a>>,
    /// The listeners that are deleted.
    doomed: BTreeMap<ListenerKey, &'a observed::Listener>,
}

impl<'a> Scene<'a> {
    /// The calls, in order.
    pub(super) fn calls(&self, events: &mut Vec<Event>) -> Vec<Call> {
        let sorted = self.sort(events);
        let mut calls = redirects::removed(self, &sorted);
        calls.extend(listeners::deleted(&sorted));
        for slot in sorted.slots.values() {
            calls.extend(listeners::changed(self, slot));
        }
        for slot in sorted.slots.values() {
            calls.extend(listeners::created(slot));
        }
        let targets = targets::changes(&sorted);
        calls.extend(targets.registered);
        calls.extend(targets.weighed);
        calls.extend(redirects::created(&sorted));
        calls.extend(targets.deregistered);
        calls
    }

    fn sort(&self, events: &mut Vec<Event>) -> Sorted<'a> {
        let mut sorted = Sorted::default();
        for (key, wish) in self.wanted {
            if self.frozen.owners.contains(&wish.owner) {
                continue;
            }
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
            let stays = there.filter(|there| there.listener.protocol == wish.listener.protocol);
            if let (Some(there), None) = (there, stays) {
                sorted.doomed.insert(*key, there);
            }
            if stays.is_some() || !wish.is_blocked {
                sorted.slots.insert(*key, Slot { key: *key, wish, found: stays });
            }
        }
        for (key, there) in self.found.iter().flat_map(|found| &found.listeners) {
            if !self.wanted.contains_key(key) {
                sorted.doomed.insert(*key, there);
            }
        }
        sorted
    }
}

/// The calls that take the controllers' listeners from a load balancer.
pub(super) fn clear(found: &observed::Balancer) -> Vec<Call> {
    let (wanted, frozen) = (BTreeMap::new(), Frozen::default());
    let scene = Scene { found: Some(found), wanted: &wanted, frozen: &frozen };
    scene.calls(&mut Vec::new())
}
