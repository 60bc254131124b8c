//! The assumptions of a walk, each listed once.

use uturn_model::Supposition;

/// Adds what is not there yet.
pub fn add_new(known: &mut Vec<Supposition>, more: Vec<Supposition>) {
    for supposition in more {
        if !known.contains(&supposition) {
            known.push(supposition);
        }
    }
}
