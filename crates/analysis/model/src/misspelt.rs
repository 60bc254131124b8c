//! Finds the words and names that were meant by misspelt ones.

use std::cmp::Reverse;

/// The longest word that is compared, in bytes: the time grows with the product of both lengths.
const LONGEST: usize = 64;

/// Returns the known word that was probably meant: the one that differs least, if it is near.
pub fn closest<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let word = word.to_lowercase();
    let counted = known.into_iter().map(|known| (distance(&word, &known.to_lowercase()), known));
    counted
        .filter(|(distance, known)| *distance <= 1 + known.len() / 4)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// Returns a hint that ends a message: `; did you mean spec?`, or nothing.
pub fn hint<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    closest(word, known).map_or_else(String::new, |known| format!("; did you mean {known}?"))
}

/// Returns whether a word is a slip of a known one: one or two letters differ or are swapped with
/// their neighbour, or their case differs.
pub fn is_misspelt(word: &str, known: &str) -> bool {
    let slips = if known.len() < 5 { 1 } else { 2 };
    distance(&word.to_lowercase(), &known.to_lowercase()) <= slips
}

/// Sorts names by likeness: first those that have the most letters in common with the wanted name,
/// counted from the beginning and from the end.
pub fn sort_likest_first<N: AsRef<str>>(names: &mut [N], wanted: &str) {
    let alike = |name: &N| {
        let name = name.as_ref();
        let ahead = name.chars().zip(wanted.chars()).take_while(|(a, b)| a == b).count();
        let behind = name.chars().rev().zip(wanted.chars().rev()).take_while(|(a, b)| a == b);
        ahead + behind.count()
    };
    names.sort_by_key(|name| Reverse(alike(name)));
}

/// Returns the number of letters that have to be changed, added, removed or swapped with their
/// neighbour, or `usize::MAX` if the first word is longer than [`LONGEST`].
fn distance(a: &str, b: &str) -> usize {
    if a.len() > LONGEST {
        return usize::MAX;
    }
    let b: Vec<char> = b.chars().collect();
    // The rows of the last two letters of `a`: a swap reaches back to the one before the last.
    let mut before: Option<(char, Vec<usize>)> = None;
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut next = vec![i + 1];
        for (j, other) in b.iter().enumerate() {
            let replaced = row[j] + usize::from(letter != *other);
            let mut least = replaced.min(row[j + 1] + 1).min(next[j] + 1);
            if let Some((last, rows)) = &before
                && j > 0
                && *last == *other
                && b[j - 1] == letter
            {
                least = least.min(rows[j - 1] + 1);
            }
            next.push(least);
        }
        before = Some((letter, std::mem::replace(&mut row, next)));
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_near_and_other_words_are_not() {
        let fields = ["externalTrafficPolicy", "internalTrafficPolicy", "type", "ports"];
        let near = |word| closest(word, fields);
        assert_eq!(near("externaltrafficPolicy"), Some("externalTrafficPolicy"));
        assert_eq!(near("externaltrafficpolicy"), Some("externalTrafficPolicy"));
        assert_eq!(near("typ"), Some("type"));
        assert_eq!(near("port"), Some("ports"));
        assert_eq!(near("selector"), None);
        assert_eq!(near(&"s".repeat(LONGEST + 1)), None);
        assert_eq!(hint("prots", fields), "; did you mean ports?");
        assert_eq!(hint("selector", fields), "");
    }

    #[test]
    fn letters_are_changed_added_removed_and_swapped() {
        for (a, b, expected) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("abc", "abx", 1),
            ("abc", "acb", 1),
            ("abcd", "badc", 2),
            ("ab", "ba", 1),
            ("kitten", "sitting", 3),
        ] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
            assert_eq!(distance(b, a), expected, "{b} {a}");
        }
    }

    #[test]
    fn the_likest_name_is_first() {
        let mut names = ["front", "api", "l7-host-one-node", "no-endpoint"];
        sort_likest_first(&mut names, "l7-host-one-nod");
        assert_eq!(names[0], "l7-host-one-node");
        sort_likest_first(&mut names, "frnt");
        assert_eq!(names[0], "front");
    }
}
