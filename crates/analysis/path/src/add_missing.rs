//! Lists in which everything is listed once.

/// Adds what is not in the list yet.
pub fn add_missing<T: PartialEq>(known: &mut Vec<T>, more: impl IntoIterator<Item = T>) {
    // Lists of what packets came by mostly begin alike.
    let mut begins_alike = true;
    for (at, new) in more.into_iter().enumerate() {
        begins_alike &= known.get(at) == Some(&new);
        if !begins_alike && !known.contains(&new) {
            known.push(new);
        }
    }
}
