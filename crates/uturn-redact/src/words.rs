//! Which word stands for which.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::LazyLock;

/// Words and names that are the same in every cluster.
pub(crate) struct Known {
    /// Single words.
    words: HashSet<&'static str>,
    /// Names of several words, by their first word, the longest first.
    names: HashMap<&'static str, Vec<&'static str>>,
}

/// What is known everywhere.
pub(crate) static KNOWN: LazyLock<Known> = LazyLock::new(|| {
    let mut names: HashMap<&str, Vec<&str>> = HashMap::new();
    for name in include_str!("known/names.txt").lines() {
        names.entry(first_word(name)).or_default().push(name);
    }
    for all in names.values_mut() {
        all.sort_by_key(|name| std::cmp::Reverse(name.len()));
    }
    Known { words: list(include_str!("known/words.txt")), names }
});

/// The words of a list in a file of this crate.
pub(crate) fn list(text: &'static str) -> HashSet<&'static str> {
    text.lines().collect()
}

fn first_word(text: &str) -> &str {
    let start = text.find(char::is_alphanumeric).unwrap_or(0);
    let rest = &text[start..];
    let end = rest.find(|letter: char| !letter.is_alphanumeric()).unwrap_or(rest.len());
    &rest[..end]
}

impl Known {
    /// Whether a word is known.
    pub(crate) fn has(&self, word: &str) -> bool {
        self.words.contains(word)
    }

    /// The longest name with which a text begins, if it ends where a word does.
    pub(crate) fn name_at<'t>(&self, text: &'t str) -> Option<&'t str> {
        let word = first_word(text.get(..text.len().min(80)).unwrap_or(text));
        let name = self.names.get(word)?.iter().find(|name| {
            let rest = text.strip_prefix(**name);
            rest.is_some_and(|rest| {
                !name.ends_with(char::is_alphanumeric) || !rest.starts_with(char::is_alphanumeric)
            })
        })?;
        Some(&text[..name.len()])
    }
}

/// Whether a word identifies nothing: a letter, a small number, a number with a unit.
pub(crate) fn says_nothing(word: &str) -> bool {
    let letters = word.trim_start_matches(|letter: char| letter.is_ascii_digit());
    let digits = word.len() - letters.len();
    match (digits, letters) {
        // The code of a finding.
        (0, code) if code.len() == 5 && code.starts_with("UT") => {
            code[2..].bytes().all(|byte| byte.is_ascii_digit())
        }
        (0, letters) => letters.chars().nth(1).is_none(),
        (..=5, "") => true,
        (..=4, "ns" | "us" | "ms" | "s" | "m" | "h" | "d" | "Mi" | "Gi" | "Ki") => true,
        // A number in base 16, such as a mark.
        (1, letters) if word.starts_with("0x") => {
            letters.len() <= 9 && letters[1..].bytes().all(|byte| byte.is_ascii_hexdigit())
        }
        _ => false,
    }
}

/// Which word stands for which. Order is kept: of two words the one that was first still is.
#[derive(Debug, Default)]
pub(crate) struct Words(HashMap<String, String>);

impl Words {
    /// Decides it for all words of an input.
    pub(crate) fn decide(words: &BTreeSet<String>) -> Self {
        let width = words.len().to_string().len().max(4);
        // No word of the input is to stand for another: also not in what was redacted already.
        let is_free = |lead: &char| {
            !words.iter().any(|word| {
                let own = word.trim_start_matches(|letter: char| letter.is_ascii_digit());
                own.to_lowercase().strip_prefix(*lead).is_some_and(|rest| {
                    !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit())
                })
            })
        };
        let lead = "wxyzqvkjuongmabcdefhiprst".chars().find(is_free).unwrap_or('w');
        let named = words.iter().enumerate().map(|(number, word)| {
            let first = word.chars().next().unwrap_or('a');
            let new = match first {
                '0'..='9' => format!("{first}{lead}{number:0width$}"),
                _ if first.is_uppercase() => {
                    format!("{}{number:0width$}", lead.to_ascii_uppercase())
                }
                _ => format!("{lead}{number:0width$}"),
            };
            (word.clone(), new)
        });
        Self(named.collect())
    }

    /// The word that stands for this one.
    pub(crate) fn of(&self, word: &str) -> String {
        self.0.get(word).cloned().unwrap_or_else(|| "unknown".to_owned())
    }

    /// All words, with those that stand for them.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(old, new)| (&**old, &**new))
    }
}
