//! The objects that are not served although the cloud has what they want.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use uturn_cloud::unserved::Unserved;
use uturn_model::ObjectRef;

/// How many objects `/readyz` names.
const NAMED: usize = 10;

/// The objects that are not served although the cloud has what they want.
#[derive(Debug, Default)]
pub struct UnservedObjects(Mutex<BTreeMap<ObjectRef, Unserved>>);

impl UnservedObjects {
    /// Notes how a group of objects is.
    pub(crate) fn note(
        &self,
        objects: &BTreeSet<ObjectRef>,
        unserved: &BTreeMap<ObjectRef, Unserved>,
    ) {
        let mut all = self.all();
        all.retain(|object, _| !objects.contains(object));
        all.extend(unserved.iter().map(|(object, why)| (object.clone(), *why)));
    }

    /// Forgets an object that wants nothing any more.
    pub(crate) fn forget(&self, object: &ObjectRef) {
        self.all().remove(object);
    }

    /// Forgets all objects.
    pub(crate) fn clear(&self) {
        self.all().clear();
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all().len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.all().is_empty()
    }

    /// What is wrong with the data plane, a line for each object up to a limit. An object that asks
    /// for what no data plane can serve is its owner's to mend, and is not listed.
    pub fn troubles(&self) -> Vec<String> {
        let all = self.all();
        let of_data_plane = || all.iter().filter(|(_, why)| why.is_of_data_plane());
        let mut lines: Vec<String> = of_data_plane()
            .take(NAMED)
            .map(|(object, why)| format!("{object} is not served: {}", why.words()))
            .collect();
        let more = of_data_plane().count() - lines.len();
        if more > 0 {
            lines.push(format!("{more} more objects are not served"));
        }
        lines
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<ObjectRef, Unserved>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
