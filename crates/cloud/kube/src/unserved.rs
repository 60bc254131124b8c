//! The objects that the data plane does not serve although the cloud has their settings.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use uturn_cloud_api::unserved::Unserved;
use uturn_model::ObjectRef;

/// The most objects that `/readyz` names.
const NAMED: usize = 10;

/// The objects that the data plane does not serve although the cloud has their settings.
#[derive(Debug, Default)]
pub struct UnservedObjects(Mutex<BTreeMap<ObjectRef, Unserved>>);

impl UnservedObjects {
    /// Replaces the state of a group of objects.
    pub(crate) fn note(
        &self,
        objects: &BTreeSet<ObjectRef>,
        unserved: &BTreeMap<ObjectRef, Unserved>,
    ) {
        let mut all = self.all();
        all.retain(|object, _| !objects.contains(object));
        all.extend(unserved.iter().map(|(object, why)| (object.clone(), *why)));
    }

    /// Forgets an object that no longer wants a load balancer.
    pub(crate) fn forget(&self, object: &ObjectRef) {
        self.all().remove(object);
    }

    /// Forgets all objects.
    pub(crate) fn clear(&self) {
        self.all().clear();
    }

    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        self.all().len()
    }

    /// Returns whether there is no object.
    pub fn is_empty(&self) -> bool {
        self.all().is_empty()
    }

    /// Returns the problems of the data plane, a line for each object up to a limit. An object with
    /// settings that no data plane can serve is not listed, because its owner has to change it.
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
