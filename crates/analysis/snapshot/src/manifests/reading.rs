//! The objects of manifests, decoded once, so that a draft's cluster is derived without reading all
//! texts again.

use std::cell::RefCell;

use uturn_document::{Fault, Faults, Source};
use uturn_model::Cluster;

use super::{Draft, Manifests};
use crate::collect::collect;
use crate::decode::objects::Objects;
use crate::documents::{each_document, each_item, what_it_lacks};
use crate::kinds::take;
use crate::{complete, derive};

/// The decoded objects of manifests.
#[derive(Debug)]
pub struct Reading {
    pub(super) objects: Objects,
}

impl Reading {
    /// Decodes the objects of manifests; captures of nodes are left out. Returns `None` if an
    /// object is defined more than once, if a text has faults, or if there are Scenarios.
    pub(super) fn of(manifests: &Manifests) -> Option<Self> {
        let Manifests { sources, other_files, listing, complete: is_complete, .. } = manifests;
        let collected = collect(sources, other_files, listing);
        collected.is_plain().then(|| Self {
            objects: complete(collected.objects, (other_files, listing), *is_complete),
        })
    }

    /// Returns the cluster of a draft of the same manifests. Returns `None` if all texts have to be
    /// read for it.
    ///
    /// # Errors
    /// The fault for which the cluster cannot be derived.
    pub fn cluster(&self, draft: &Draft<'_>) -> Result<Option<Cluster>, Fault> {
        let (mut old, mut new) = (Objects::default(), Objects::default());
        for (before, after, is_live) in draft.documents() {
            let is_read = before.is_none_or(|before| add(&before, is_live, &mut old))
                && add(&after, is_live, &mut new);
            if !is_read {
                return Ok(None);
            }
        }
        match self.objects.clone().replaced(old, new) {
            Some(objects) => derive::cluster(objects).map(Some),
            None => Ok(None),
        }
    }
}

/// Decodes the objects of a document. Returns whether it has no fault and nothing odd.
fn add(document: &Source, is_live: bool, objects: &mut Objects) -> bool {
    let faults = RefCell::new(Faults::default());
    let mut is_plain = true;
    each_document(document, is_live, &faults, &mut |doc| {
        is_plain &= what_it_lacks(doc).is_none();
        each_item(doc, &mut |doc, version, kind| take(doc, version, kind, objects));
    });
    let mut faults = faults.into_inner();
    is_plain && faults.count() == 0 && faults.take_twice().is_empty()
}
