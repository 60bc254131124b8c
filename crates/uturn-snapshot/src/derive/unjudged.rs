//! What decides about flows and cannot be judged: each object says it of itself, and the
//! cluster lists it by cause.

use std::collections::BTreeMap;

use uturn_model::{ObjectRef, Text, Unjudged, Unknown};

use crate::objects::Objects;

/// Causes as they are found.
#[derive(Default)]
pub(super) struct Gaps(BTreeMap<(Unknown, Text), Unjudged>);

impl Gaps {
    /// Notes that an object depends on something unknown.
    pub(super) fn add(&mut self, object: ObjectRef, unknown: Unknown, because: Text, settle: Text) {
        let key = (unknown.clone(), because.clone());
        let gap = self.0.entry(key).or_insert_with(|| Unjudged {
            subject: unknown,
            objects: Vec::new(),
            because,
            settle,
        });
        if !gap.objects.contains(&object) {
            gap.objects.push(object);
        }
    }

    /// Tells each object what it depends on, and lists the causes.
    pub(super) fn settle(self, objects: &mut Objects) -> Vec<Unjudged> {
        let mut by_object: BTreeMap<&ObjectRef, Vec<&Unknown>> = BTreeMap::new();
        for gap in self.0.values() {
            for object in &gap.objects {
                by_object.entry(object).or_default().push(&gap.subject);
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
        let mut gaps: Vec<Unjudged> = self.0.into_values().collect();
        gaps.iter_mut().for_each(|gap| gap.objects.sort());
        gaps
    }
}
