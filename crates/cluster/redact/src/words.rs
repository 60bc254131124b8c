//! The replacements of words.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::iter;
use std::ops::Bound;
use std::sync::LazyLock;

/// Words and names that are the same in every cluster.
pub(crate) struct Known {
    /// Single words.
    words: HashSet<&'static str>,
    /// Names of several words, by their first word, the longest first.
    names: HashMap<&'static str, Vec<&'static str>>,
}

/// The words and names that are known in every text.
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

/// Reads the words of a list in a file of this crate.
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
    /// Returns whether a word is known.
    pub(crate) fn has(&self, word: &str) -> bool {
        self.words.contains(word)
    }

    /// Returns the longest known name with which a text begins, if the name ends at the end of a
    /// word.
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

/// Returns whether a word identifies nothing: a letter, a small number, a number with a unit.
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
        // A hexadecimal number, such as a mark.
        (1, letters) if word.starts_with("0x") => {
            letters.len() <= 9 && letters[1..].bytes().all(|byte| byte.is_ascii_hexdigit())
        }
        _ => false,
    }
}

/// The replacements of words, which sort in the order of the original words.
#[derive(Debug, Default)]
pub(crate) struct Words(HashMap<String, String>);

impl Words {
    /// Decides the replacements of all words of an input. `kept` are words in names of objects that
    /// are not replaced.
    pub(crate) fn decide(words: &BTreeSet<String>, kept: &BTreeSet<String>, form: Form) -> Self {
        let numbering = Numbering::of(words, form);
        let all: Vec<(&String, String, Gap<'_>)> = words
            .iter()
            .enumerate()
            .map(|(number, word)| (word, numbering.word(number, word), Gap::of(word, kept)))
            .collect();
        let mut named = HashMap::with_capacity(all.len());
        for together in all.chunk_by(|(.., gap), (.., next)| gap == next) {
            let [(_, first, gap), ..] = together else { continue };
            let (_, last, _) = &together[together.len() - 1];
            let begins = gap.beginning([first, last]);
            let new =
                together.iter().map(|(word, new, _)| ((*word).clone(), format!("{begins}{new}")));
            named.extend(new);
        }
        Self(named)
    }

    /// Returns the replacement of a word.
    pub(crate) fn of(&self, word: &str) -> String {
        self.0.get(word).cloned().unwrap_or_else(|| "unknown".to_owned())
    }

    /// Returns all words with their replacements.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(old, new)| (&**old, &**new))
    }
}

/// The form of new words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A letter and a number: `w0012`.
    Numbers,
    /// Letters, and a digit where the old word has one: `[a-z]+` matches the new word as well.
    Letters,
}

impl Form {
    /// Returns the digits of numbers, in order. Without vowels, they form no words of a language.
    fn digits(self) -> &'static [u8] {
        match self {
            Self::Numbers => b"0123456789",
            Self::Letters => b"bcdfghjklmnpqrstvwxz",
        }
    }
}

/// The numbering of new words.
struct Numbering {
    form: Form,
    /// The letter before each number.
    lead: char,
    /// The number of digits of each number.
    width: usize,
}

impl Numbering {
    /// Chooses a numbering in which no replacement equals a word of the input, even if the input
    /// was redacted before.
    fn of(words: &BTreeSet<String>, form: Form) -> Self {
        const LEADS: &str = "wyzqvkjuongmabcdefhiprst";
        let digits = form.digits();
        let needed = words.len().checked_ilog(digits.len()).unwrap_or_default() as usize + 1;
        let least = needed.max(4);
        for width in least..least + 8 {
            let lead_of = |word: &String| {
                let word = word.to_lowercase();
                let (before, number) = word.split_at_checked(word.len().checked_sub(width)?)?;
                let is_number = number.bytes().all(|sign| digits.contains(&sign));
                before.chars().next_back().filter(|_| is_number)
            };
            let taken: HashSet<char> = words.iter().filter_map(lead_of).collect();
            if let Some(lead) = LEADS.chars().find(|lead| !taken.contains(lead)) {
                return Self { form, lead, width };
            }
        }
        Self { form, lead: 'w', width: least }
    }

    /// Returns the new word with this number.
    fn word(&self, number: usize, old: &str) -> String {
        let digits = self.form.digits();
        let mut signs = vec![digits[0]; self.width];
        let mut rest = number;
        for sign in signs.iter_mut().rev() {
            *sign = digits[rest % digits.len()];
            rest /= digits.len();
        }
        let is_upper = old.starts_with(char::is_uppercase);
        let lead = if is_upper { self.lead.to_ascii_uppercase() } else { self.lead };
        let mut new: String = iter::once(lead).chain(signs.into_iter().map(char::from)).collect();
        let has_digit = |old: &str| old.bytes().skip(1).any(|own| own.is_ascii_digit());
        if self.form == Form::Letters && has_digit(old) {
            new.push('0');
        }
        new
    }
}

/// The kept words between which a word sorts. A digit or a capital letter at the beginning of a
/// word is kept as such.
#[derive(PartialEq, Eq)]
struct Gap<'k> {
    after: Cow<'k, str>,
    before: Cow<'k, str>,
}

impl<'k> Gap<'k> {
    fn of(word: &str, kept: &'k BTreeSet<String>) -> Self {
        let (from, to) = match word.chars().next() {
            Some(digit @ '0'..='9') => (digit, char::from(digit as u8 + 1)),
            Some(letter) if letter.is_uppercase() => ('A', '['),
            _ => ('a', char::MAX),
        };
        let (here, end) = (Bound::Excluded(word), Bound::Unbounded);
        let after = kept.range::<str, _>((end, here)).next_back();
        let before = kept.range::<str, _>((here, end)).next();
        let (from, to) = (Cow::from(from.to_string()), Cow::from(to.to_string()));
        Self {
            after: after.map_or(from.clone(), |after| from.max(Cow::from(after))),
            before: before.map_or(to.clone(), |before| to.min(Cow::from(before))),
        }
    }

    /// Returns the shortest prefix with which words, from `first` to `last`, sort in this gap.
    fn beginning(&self, [first, last]: [&str; 2]) -> String {
        const LETTERS: &str = "abcdefghijklmnopqrstuvwxyz0123456789";
        let bounds = [&self.after, &self.before];
        let longest = self.after.len().max(self.before.len());
        let starts = (0..=longest)
            .flat_map(|length| bounds.map(|bound| bound.chars().take(length).collect::<String>()));
        let mut all = starts.flat_map(|start| {
            let longer = LETTERS.chars().map(|letter| format!("{start}{letter}"));
            iter::once(start.clone()).chain(longer).collect::<Vec<_>>()
        });
        let sorts = |begins: &String| {
            *self.after < *format!("{begins}{first}") && *format!("{begins}{last}") < *self.before
        };
        all.find(sorts).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use uturn_dice::Dice;

    use super::*;

    fn words(all: &[&str]) -> BTreeSet<String> {
        all.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn new_words_sort_as_the_old_ones_among_those_that_stay() {
        let given = words(&["alpha", "shop", "7d9f", "Shop", "é"]);
        let decided = Words::decide(&given, &words(&["nginx", "traefik"]), Form::Numbers);
        let new = ["alpha", "shop", "7d9f", "Shop", "é"].map(|word| decided.of(word));
        assert_eq!(new, ["aw0002", "nw0003", "7w0000", "W0001", "w0004"]);
        let alone = Words::decide(&given, &BTreeSet::new(), Form::Numbers);
        assert_eq!(["alpha", "shop", "é"].map(|word| alone.of(word)), ["w0002", "w0003", "w0004"]);
    }

    #[test]
    fn new_words_may_be_of_letters() {
        let given = words(&["shop", "web2", "7d9f"]);
        let decided = Words::decide(&given, &words(&["nginx"]), Form::Letters);
        let new = ["shop", "web2", "7d9f"].map(|word| decided.of(word));
        assert_eq!(new, ["wbbbc", "wbbbd0", "7wbbbb0"]);
    }

    #[test]
    fn no_word_of_the_input_stands_for_another() {
        let given = words(&["w0001", "shop", "7y0001", "Z0000"]);
        let decided = Words::decide(&given, &BTreeSet::new(), Form::Numbers);
        assert_eq!(
            given.iter().map(|word| decided.of(word)).collect::<Vec<_>>(),
            ["7q0000", "Q0001", "q0002", "q0003"]
        );
    }

    /// Names of several words sort by their words, since separators sort before letters and digits.
    #[test]
    fn names_of_random_words_keep_their_order() {
        let mut dice = Dice::new(1);
        for _ in 0..2000 {
            let mut word = |most: usize| -> String {
                (0..dice.between(1, most))
                    .map(|_| *dice.pick(&['a', 'b', 'n', 'z', '2', '9']))
                    .collect()
            };
            let all: BTreeSet<String> = (0..12).map(|_| word(4)).collect();
            let (kept, given): (BTreeSet<String>, BTreeSet<String>) =
                all.iter().cloned().partition(|_| dice.below(2) == 0);
            let form = dice.choose(&[Form::Numbers, Form::Letters]);
            let decided = Words::decide(&given, &kept, form);
            let new =
                |word: &String| if kept.contains(word) { word.clone() } else { decided.of(word) };
            let names: BTreeSet<Vec<String>> = (0..20)
                .map(|_| {
                    let at = |number| all.iter().nth(number).unwrap().clone();
                    (0..dice.between(1, 3)).map(|_| at(dice.below(all.len()))).collect()
                })
                .collect();
            for separator in ["-", ".", "/"] {
                let mut sorted: Vec<(String, String)> = names
                    .iter()
                    .map(|name| {
                        let new: Vec<String> = name.iter().map(new).collect();
                        (name.join(separator), new.join(separator))
                    })
                    .collect();
                sorted.sort();
                assert!(sorted.is_sorted_by_key(|(_, new)| new), "{kept:?} {sorted:#?}");
            }
        }
    }
}
