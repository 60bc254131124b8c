//! Collects what decides about flows and cannot be judged: it is recorded on each object, and the
//! cluster lists it by cause.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use uturn_model::{Ingress, NamespacedName, ObjectRef, Service, Text, Unjudged, Unknown};

/// The causes found so far.
#[derive(Default)]
pub(super) struct Gaps(BTreeMap<(Unknown, Text), Gap>);

/// The objects with the same cause, and what would settle it.
struct Gap {
    objects: BTreeSet<ObjectRef>,
    settle: Text,
}

impl Gaps {
    /// Records that an object depends on something unknown.
    pub(super) fn add(&mut self, object: ObjectRef, unknown: Unknown, because: Text, settle: Text) {
        let new = || Gap { objects: BTreeSet::new(), settle };
        self.0.entry((unknown, because)).or_insert_with(new).objects.insert(object);
    }

    /// Adds the causes of others. Where both have a cause, what would settle it is taken from `self`.
    pub(super) fn with(mut self, others: Self) -> Self {
        for (cause, gap) in others.0 {
            match self.0.entry(cause) {
                Entry::Vacant(entry) => drop(entry.insert(gap)),
                Entry::Occupied(mut entry) => entry.get_mut().objects.extend(gap.objects),
            }
        }
        self
    }

    /// Sets on each Service and Ingress what it depends on, and returns the list of causes.
    pub(super) fn settle(
        self,
        services: &mut BTreeMap<NamespacedName, Service>,
        ingresses: &mut BTreeMap<NamespacedName, Ingress>,
    ) -> Vec<Unjudged> {
        let mut by_object: BTreeMap<&ObjectRef, Vec<&Unknown>> = BTreeMap::new();
        for ((unknown, _), gap) in &self.0 {
            for object in &gap.objects {
                let known = by_object.entry(object).or_default();
                if known.last() != Some(&unknown) {
                    known.push(unknown);
                }
            }
        }
        let of = |object: ObjectRef| -> Vec<Unknown> {
            by_object.get(&object).into_iter().flatten().map(|unknown| (*unknown).clone()).collect()
        };
        for service in services.values_mut() {
            service.unjudged = of(service.object());
        }
        for ingress in ingresses.values_mut() {
            ingress.unjudged = of(ingress.object());
        }
        drop(by_object);
        let listed = |((subject, because), Gap { objects, settle })| Unjudged {
            subject,
            objects: objects.into_iter().collect(),
            because,
            settle,
        };
        self.0.into_iter().map(listed).collect()
    }
}
