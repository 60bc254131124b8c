//! The assumptions of a walk, each listed once.

use uturn_model::Assumption;

/// Adds the assumptions that are not in the list yet.
pub fn add_assumptions(known: &mut Vec<Assumption>, more: impl IntoIterator<Item = Assumption>) {
    for assumption in more {
        if !known.contains(&assumption) {
            known.push(assumption);
        }
    }
}
