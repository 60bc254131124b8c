//! Lists in which everything is listed once.

/// Adds what is not in the list yet.
pub fn add_missing<T: PartialEq>(known: &mut Vec<T>, more: impl IntoIterator<Item = T>) {
    for new in more {
        if !known.contains(&new) {
            known.push(new);
        }
    }
}
