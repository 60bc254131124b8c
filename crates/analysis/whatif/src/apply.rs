//! Makes the changes on a copy of a cluster.
//!
//! Changes of objects are made in the texts, in order, and the cluster is read and derived anew, so
//! the result is what uturn says of a cluster that is so. What no text can say is then changed in
//! the derived cluster, in order. A capture shows the rules of a node as they are, so it is left out
//! once a change affects rules; the comparison then leaves it out on both sides.

mod data_plane;
mod json_patch;
mod merge;
mod objects;
mod settle;
mod value;

use thiserror::Error;
use uturn_model::{Cluster, NamespacedName, ObjectRef};
use uturn_snapshot::Manifests;

use crate::change::{Change, What};

/// A copy of a cluster with changes.
#[derive(Debug)]
pub struct Edited {
    /// The texts before the changes, as far as they can be compared with those after: without the
    /// captures that the changes outdate.
    pub before: Manifests,
    /// The texts after the changes.
    pub after: Manifests,
    /// The cluster after the changes.
    pub cluster: Cluster,
    /// The objects that the changes name, each once.
    pub objects: Vec<ObjectRef>,
    /// The objects that the changes delete.
    pub deleted: Vec<ObjectRef>,
    /// Whether the cluster was changed in a way that its texts do not show.
    pub is_beyond_texts: bool,
    /// Notes about how the changes were made.
    pub notes: Vec<String>,
}

/// The reason why a change cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{typed}: {why}")]
pub struct Refused {
    /// The change, as it was typed.
    pub typed: String,
    /// The reason.
    pub why: String,
}

/// Makes changes on a copy of a cluster, in their order. `cluster` is what the texts describe.
///
/// # Errors
/// Returns an error for the first change that cannot be made, or all faults of what the changes
/// make of the cluster.
pub fn apply(
    manifests: &Manifests,
    cluster: &Cluster,
    changes: &[Change],
) -> Result<Edited, Vec<Refused>> {
    let mut state = Texts {
        manifests: manifests.clone(),
        cluster,
        objects: Vec::new(),
        deleted: Vec::new(),
        notes: Vec::new(),
        outdates_captures: false,
    };
    for change in changes {
        state.make(change).map_err(|why| vec![refused(change, why)])?;
    }
    let Texts { manifests: mut after, objects, deleted, mut notes, outdates_captures, .. } = state;
    let mut before = manifests.clone();
    if outdates_captures && manifests.has_captures() {
        let nodes: Vec<&str> = manifests.captures().keys().map(|name| name.as_str()).collect();
        notes.push(format!(
            "the captures of {} show the rules before the changes: they are left aside, before and \
             after, and the rules are those that would be programmed",
            some_of(&nodes)
        ));
        (before, after) = (before.without_captures(), after.without_captures());
    }
    let mut after = data_plane::with_same_case(after);
    let read = after.cluster().map_err(|faults| {
        let typed = changes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        let each = faults.iter().map(|fault| Refused {
            typed: typed.clone(),
            why: format!("what it makes of the cluster cannot be read: {fault}"),
        });
        each.collect::<Vec<Refused>>()
    })?;
    let mut lost = read;
    if let Some(closed) = with_losses(&after, cluster, &lost)
        && let Ok(read) = closed.cluster()
    {
        (after, lost) = (closed, read);
    }
    let mut cluster = lost;
    let mut is_beyond_texts = false;
    for change in changes {
        let happened = happen(&mut cluster, change, &mut notes);
        is_beyond_texts |= happened.map_err(|why| vec![refused(change, why)])?;
    }
    Ok(Edited { before, after, cluster, objects, deleted, is_beyond_texts, notes })
}

/// Returns the texts of a changed cluster with what the change took away: a Service that is gone, or
/// that has no endpoints any more, is not elsewhere. Returns `None` if nothing was lost.
pub fn with_losses(after: &Manifests, old: &Cluster, new: &Cluster) -> Option<Manifests> {
    let is_short = old.services.keys().any(|name| !new.services.contains_key(name));
    let has_some = |cluster: &Cluster, name: &NamespacedName| {
        cluster.slices(name).iter().any(|slice| !slice.endpoints.is_empty())
    };
    let is_emptied = |name: &&NamespacedName| has_some(old, name) && !has_some(new, name);
    let emptied: Vec<NamespacedName> = new.services.keys().filter(is_emptied).cloned().collect();
    (is_short || !emptied.is_empty()).then(|| after.with_losses(is_short, emptied))
}

/// Makes the part of a change that no text can say. Returns whether there is one.
fn happen(cluster: &mut Cluster, change: &Change, notes: &mut Vec<String>) -> Result<bool, String> {
    match &change.what {
        What::DataPlane(what) => Ok(data_plane::happen(cluster, what)),
        What::Life(what) => {
            let changed = what.apply(cluster).map_err(|why| why.to_string())?;
            *cluster = changed.cluster;
            notes.extend(changed.assumed.iter().map(|own| format!("{change}: {own}")));
            Ok(true)
        }
        What::Put(_) | What::Operate { .. } | What::Delete(_) | What::Set { .. } => Ok(false),
    }
}

fn refused(change: &Change, why: String) -> Refused {
    Refused { typed: change.typed.clone(), why }
}

fn some_of(names: &[&str]) -> String {
    match names {
        few if few.len() <= 3 => few.join(", "),
        many => format!("{} and {} other nodes", many[..2].join(", "), many.len() - 2),
    }
}

/// The texts while changes are made.
struct Texts<'c> {
    manifests: Manifests,
    /// The cluster before all changes.
    cluster: &'c Cluster,
    objects: Vec<ObjectRef>,
    deleted: Vec<ObjectRef>,
    notes: Vec<String>,
    outdates_captures: bool,
}

impl Texts<'_> {
    fn make(&mut self, change: &Change) -> Result<(), String> {
        match &change.what {
            What::Put(written) => self.put(written),
            What::Operate { target, operations } => self.operate(target, operations),
            What::Delete(object) => self.delete(object),
            What::Set { object, path, value } => self.set(object, path, value.as_ref()),
            What::DataPlane(what) => self.state(what),
            What::Life(what) => {
                self.outdates_captures |= what.changes_rules();
                Ok(())
            }
        }
    }

    /// Notes that a change names an object.
    fn touch(&mut self, object: &ObjectRef) {
        self.outdates_captures = true;
        if !self.objects.contains(object) {
            self.objects.push(object.clone());
        }
    }
}
