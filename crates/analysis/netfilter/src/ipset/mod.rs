//! IP sets, as `ipset save` prints them.
//!
//! [`parse`] reads such text into [`Sets`], whose `Display` prints it back unchanged: entries and
//! options keep their original words beside their parsed form. A set of an unmodelled type keeps
//! its entries as written, and a walk branches on rules that match against it.

mod entry;
mod list;
mod lookup;
mod parse;

pub use entry::{Entry, Part, PartKind, SetKind};
pub(crate) use lookup::{Found, Lookup, Probe};
pub use parse::parse;

use std::fmt;

use uturn_model::{Family, Origin, Text};

/// All sets of a node, in the order of the text except that lists of sets come last; names are
/// unique.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sets(pub Vec<Set>);

impl Sets {
    /// A set by its name.
    pub fn set(&self, name: &str) -> Option<&Set> {
        self.0.iter().find(|set| &*set.name == name)
    }
}

/// A set.
#[derive(Clone, Debug)]
pub struct Set {
    /// The name of the set.
    pub name: Text,
    /// The type of the set.
    pub kind: SetKind,
    /// The options after the type: `family inet hashsize 1024 …`.
    pub options: Vec<Text>,
    /// The entries of the set, in the order of the text.
    pub entries: Vec<Entry>,
    /// The place where the set was created.
    pub origin: Origin,
}

impl Set {
    /// The family of its addresses; `None` if it has no addresses, or both families.
    pub fn family(&self) -> Option<Family> {
        match (self.option("family"), &self.kind) {
            (Some("inet6"), _) => Some(Family::V6),
            (Some(_), _) => Some(Family::V4),
            (None, SetKind::List | SetKind::Other(_)) => None,
            (None, SetKind::Hash(parts) | SetKind::Bitmap(parts)) => {
                let held = parts.iter().any(|part| matches!(part, PartKind::Ip | PartKind::Net));
                held.then_some(Family::V4)
            }
        }
    }

    /// The value of an option, such as `timeout`.
    pub fn option(&self, name: &str) -> Option<&str> {
        let mut words = self.options.iter();
        while let Some(word) = words.next() {
            let value = if is_flag(word) { Some("") } else { words.next().map(|word| &**word) };
            if &**word == name {
                return value;
            }
        }
        None
    }
}

impl PartialEq for Set {
    fn eq(&self, other: &Self) -> bool {
        (&self.name, &self.kind, &self.options) == (&other.name, &other.kind, &other.options)
            && self.entries == other.entries
    }
}

impl Eq for Set {}

/// Whether an option of a set has no value.
fn is_flag(word: &str) -> bool {
    matches!(word, "counters" | "comment" | "skbinfo" | "forceadd")
}

impl fmt::Display for Sets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for set in &self.0 {
            write!(f, "create {} {}", Word(&set.name), Word(&set.kind.to_string()))?;
            for option in &set.options {
                write!(f, " {}", Word(option))?;
            }
            writeln!(f)?;
            for entry in &set.entries {
                write!(f, "add {} {}", Word(&set.name), Word(&entry.text))?;
                let mut before = "";
                for option in &entry.options {
                    match before {
                        // A comment is always quoted.
                        "comment" => write!(f, " \"{option}\"")?,
                        _ => write!(f, " {}", Word(option))?,
                    }
                    before = if before == "comment" { "" } else { option };
                }
                writeln!(f)?;
            }
        }
        Ok(())
    }
}

/// A word, quoted if it would otherwise split.
struct Word<'a>(&'a str);

impl fmt::Display for Word<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = !self.0.is_empty() && !self.0.contains(char::is_whitespace);
        if whole { f.write_str(self.0) } else { write!(f, "\"{}\"", self.0) }
    }
}
