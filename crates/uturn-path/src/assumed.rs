//! The assumptions of a walk, each listed once.

use uturn_model::Supposition;

/// Adds the suppositions that are not in the list yet.
pub fn add_new(known: &mut Vec<Supposition>, more: impl IntoIterator<Item = Supposition>) {
    for supposition in more {
        if !known.contains(&supposition) {
            known.push(supposition);
        }
    }
}
