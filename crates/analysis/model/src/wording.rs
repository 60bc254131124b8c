//! Phrases that messages of several crates use.

use std::fmt::Display;

/// Formats a number with its unit: `1 pod`, `3 pods`.
pub fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

/// Lists the first of many: `a, b, c and 4 more`.
pub fn some_of<T: Display>(all: &[T]) -> String {
    const SHOWN: usize = 3;
    let shown: Vec<String> = all.iter().take(SHOWN).map(ToString::to_string).collect();
    let shown = shown.join(", ");
    match all.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_three_are_named_and_the_others_counted() {
        assert_eq!(some_of::<u8>(&[]), "");
        assert_eq!(some_of(&[1, 2, 3]), "1, 2, 3");
        assert_eq!(some_of(&[1, 2, 3, 4, 5]), "1, 2, 3 and 2 more");
    }

    #[test]
    fn only_one_is_singular() {
        assert_eq!([0, 1, 2].map(|number| count(number, "pod")), ["0 pods", "1 pod", "2 pods"]);
    }
}
