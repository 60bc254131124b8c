//! Lists in which everything is listed once.

use uturn_model::Assumption;

/// Adds the assumptions that are not in the list yet.
pub fn add_assumptions(known: &mut Vec<Assumption>, more: impl IntoIterator<Item = Assumption>) {
    add_missing(known, more);
}

/// Adds what is not in the list yet.
pub(crate) fn add_missing<T: PartialEq>(known: &mut Vec<T>, more: impl IntoIterator<Item = T>) {
    for new in more {
        if !known.contains(&new) {
            known.push(new);
        }
    }
}
