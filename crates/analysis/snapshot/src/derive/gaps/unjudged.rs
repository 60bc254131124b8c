//! Collects what decides about flows and cannot be judged: it is recorded on each object, and the
//! cluster lists it by cause.

use std::collections::{BTreeMap, BTreeSet};

use uturn_model::{ObjectRef, Text, Unjudged, Unknown};

use crate::decode::objects::Objects;

/// The causes found so far.
#[derive(Default)]
pub(in crate::derive) struct Gaps(BTreeMap<(Unknown, Text), Gap>);

/// The objects with the same cause, and what would settle it.
struct Gap {
    objects: BTreeSet<ObjectRef>,
    settle: Text,
}

impl Gaps {
    /// Records that an object depends on something unknown.
    pub(in crate::derive) fn add(
        &mut self,
        object: ObjectRef,
        unknown: Unknown,
        because: Text,
        settle: Text,
    ) {
        let new = || Gap { objects: BTreeSet::new(), settle };
        self.0.entry((unknown, because)).or_insert_with(new).objects.insert(object);
    }

    /// Sets on each object what it depends on, and returns the list of causes.
    pub(in crate::derive) fn settle(self, objects: &mut Objects) -> Vec<Unjudged> {
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
        for service in objects.services.0.values_mut() {
            service.unjudged = of(service.object());
        }
        for ingress in objects.ingresses.0.values_mut() {
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

/// Lists the nodes that run Windows, because their network and the rules of their kube-proxy differ
/// from those of Linux.
pub(in crate::derive) fn find_windows(objects: &Objects, gaps: &mut Gaps) {
    for node in objects.nodes.0.values().filter(|node| node.is_windows) {
        let because = "its label kubernetes.io/os or its operatingSystem says so";
        gaps.add(node.object(), Unknown::Windows, because.into(), Text::default());
    }
}
