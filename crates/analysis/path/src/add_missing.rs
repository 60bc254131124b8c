//! Lists without duplicates.

/// Adds the elements that the list lacks.
pub fn add_missing<T: PartialEq>(known: &mut Vec<T>, more: impl IntoIterator<Item = T>) {
    // Lists of what packets passed mostly begin alike.
    let mut begins_alike = true;
    for (at, new) in more.into_iter().enumerate() {
        begins_alike &= known.get(at) == Some(&new);
        if !begins_alike && !known.contains(&new) {
            known.push(new);
        }
    }
}
