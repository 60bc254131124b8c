//! Finds the word that was meant by a misspelt one.

/// Returns the word that differs least from a misspelt one. Returns `None` if none is near.
pub(crate) fn nearest<'w>(
    misspelt: &str,
    words: impl IntoIterator<Item = &'w str>,
) -> Option<&'w str> {
    let most = (misspelt.chars().count() / 3).clamp(1, 3);
    let counted = words.into_iter().map(|word| (distance(misspelt, word), word));
    let near = counted.filter(|(distance, _)| *distance <= most);
    near.min().map(|(_, word)| word)
}

/// Returns a hint that ends a message: `; did you mean spec?`, or nothing.
pub(crate) fn hint<'w>(misspelt: &str, words: impl IntoIterator<Item = &'w str>) -> String {
    nearest(misspelt, words).map_or_else(String::new, |word| format!("; did you mean {word}?"))
}

/// Returns the number of letters that have to be changed, added, removed or swapped with their
/// neighbour. Upper and lower case count as equal halves: a difference in case alone is one.
fn distance(left: &str, right: &str) -> usize {
    if left != right && left.eq_ignore_ascii_case(right) {
        return 1;
    }
    let left: Vec<char> = left.chars().collect();
    let right: Vec<char> = right.chars().collect();
    let mut rows = vec![(0..=right.len()).collect::<Vec<usize>>()];
    for (at, own) in left.iter().enumerate() {
        let mut row = vec![at + 1];
        for (to, other) in right.iter().enumerate() {
            let replaced = rows[at][to] + usize::from(own != other);
            let mut least = replaced.min(row[to] + 1).min(rows[at][to + 1] + 1);
            if at > 0 && to > 0 && *own == right[to - 1] && left[at - 1] == *other {
                least = least.min(rows[at - 1][to - 1] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[left.len()][right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_near_and_other_words_are_not() {
        let fields = ["externalTrafficPolicy", "internalTrafficPolicy", "type", "ports"];
        let near = |word| nearest(word, fields);
        assert_eq!(near("externaltrafficPolicy"), Some("externalTrafficPolicy"));
        assert_eq!(near("externaltrafficpolicy"), Some("externalTrafficPolicy"));
        assert_eq!(near("typ"), Some("type"));
        assert_eq!(near("port"), Some("ports"));
        assert_eq!(near("selector"), None);
        assert_eq!(hint("prots", fields), "; did you mean ports?");
    }
}
