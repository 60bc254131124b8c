//! The names of the fields that a reader keeps.

use std::fmt;

/// The names of the fields that are kept of JSON objects, as a table that is made when the program
/// is compiled.
///
/// A name applies to every field of that name at any place; fields within others are not reached.
#[derive(Clone, PartialEq, Eq)]
pub struct Fields {
    names: &'static [&'static str],
    open: &'static [&'static str],
    whole: Option<&'static str>,
    /// The indices of names in `names`: at the slot of the name, or at the next free slot after it.
    table: [u16; SLOTS],
}

const SLOTS: usize = 1024;

/// The maximum number of names. With more, most slots near a name would be taken.
const MAX_NAMES: usize = SLOTS / 2;

/// Marks a slot without a name.
const FREE: u16 = u16::MAX;

impl Fields {
    /// Creates the table of these names. Of the fields in `open` all entries are kept, since their
    /// keys are not names of fields.
    ///
    /// # Panics
    /// If there are more than 512 names.
    pub const fn new(names: &'static [&'static str], open: &'static [&'static str]) -> Self {
        assert!(names.len() <= MAX_NAMES, "more names than the table has room for");
        let mut table = [FREE; SLOTS];
        let mut name = 0;
        while name < names.len() {
            let mut at = slot(names[name].as_bytes());
            while table[at] != FREE {
                at = (at + 1) % SLOTS;
            }
            table[at] = name as u16;
            name += 1;
        }
        Self { names, open, whole: None, table }
    }

    /// Keeps all fields of documents whose `apiVersion` begins with `beginning`.
    pub const fn with_whole(mut self, beginning: &'static str) -> Self {
        self.whole = Some(beginning);
        self
    }

    /// Returns whether fields of this name are kept.
    #[inline]
    pub fn has(&self, key: &str) -> bool {
        let mut at = slot(key.as_bytes());
        while let Some(name) = self.names.get(self.table[at] as usize) {
            if *name == key {
                return true;
            }
            at = (at + 1) % SLOTS;
        }
        false
    }

    /// Returns whether all entries of fields of this name are kept.
    pub fn is_open(&self, key: &str) -> bool {
        self.open.contains(&key)
    }

    /// Returns whether documents with this `apiVersion` are kept whole.
    pub fn keeps_whole(&self, version: &str) -> bool {
        self.whole.is_some_and(|beginning| version.starts_with(beginning))
    }
}

impl fmt::Debug for Fields {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fields").field("names", &self.names.len()).finish_non_exhaustive()
    }
}

/// Returns the slot of a key. Its length and three of its letters distinguish most names.
const fn slot(key: &[u8]) -> usize {
    if key.is_empty() {
        return 0;
    }
    let letters = [key[0], key[key.len() / 2], key[key.len() - 1]];
    let mut hash = key.len();
    let mut at = 0;
    while at < letters.len() {
        hash = hash.wrapping_mul(37) ^ letters[at] as usize;
        at += 1;
    }
    (hash ^ (hash >> 10)) % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;

    static FIELDS: Fields =
        Fields::new(&["kind", "spec", "data", "args"], &["data"]).with_whole("x/");

    #[test]
    fn only_names_of_the_table_are_kept() {
        for name in ["kind", "spec", "data", "args"] {
            assert!(FIELDS.has(name), "{name}");
        }
        for other in ["", "Kind", "kin", "kinds", "arms", "dxta"] {
            assert!(!FIELDS.has(other), "{other}");
        }
        assert!(FIELDS.is_open("data") && !FIELDS.is_open("spec"));
        assert!(FIELDS.keeps_whole("x/v1") && !FIELDS.keeps_whole("v1"));
    }
}
