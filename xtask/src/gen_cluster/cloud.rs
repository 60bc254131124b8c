//! The words of the cloud that the large cluster is in, from `xtask/gen-cluster/cloud.txt`.

const TEXT: &str = include_str!("../../gen-cluster/cloud.txt");

/// Returns the text of a word.
///
/// # Panics
/// If the file does not have the word. A test excludes that for all words that are used.
pub(super) fn word(name: &str) -> &'static str {
    let line = TEXT.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.expect("every word that is used is in cloud.txt")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_that_is_used_is_there() {
        let source = include_str!("writer.rs");
        let used: Vec<&str> = source
            .split("cloud::word(\"")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .collect();
        assert!(used.len() > 5, "{used:?}");
        for name in used {
            assert!(!word(name).is_empty(), "{name}");
        }
    }
}
