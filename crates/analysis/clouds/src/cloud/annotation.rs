//! What the annotations hold that controllers read: which words of a value are the controller's
//! language, and which may name something in a cluster. Whoever has to hide names keeps the former.

use super::ALL;

/// An annotation that a cloud's folder reads.
#[derive(Clone, Copy, Debug)]
pub struct Annotation {
    /// How its key begins.
    begins: &'static str,
    /// The rest of its key, in which a `*` stands for a port or a name.
    ends: &'static str,
    /// What its value holds.
    pub holds: ValueKind,
}

/// What a value holds. Numbers and what separates words decide in each of them.
#[derive(Clone, Copy, Debug)]
pub enum ValueKind {
    /// A switch.
    Switch,
    /// Ports, by number or by name, or a switch for all of them.
    Ports,
    /// Words of the controller's language, in any case; all others are names.
    Words(&'static [&'static str]),
    /// Names, ids, labels, hosts and addresses alone.
    Names,
    /// JSON.
    Document {
        /// The members that are read. What others are called is a name.
        fields: &'static [&'static str],
        /// The words of texts within it, as in [`ValueKind::Words`].
        words: &'static [&'static str],
    },
}

/// How controllers write switches.
const SWITCHES: &[&str] =
    &["true", "false", "on", "off", "yes", "no", "enabled", "disabled", "enable", "disable"];

impl ValueKind {
    /// The words of the controller's language.
    pub fn words(&self) -> &'static [&'static str] {
        match self {
            Self::Switch | Self::Ports => SWITCHES,
            Self::Words(words) | Self::Document { words, .. } => words,
            Self::Names => &[],
        }
    }

    /// The members of documents that are read.
    pub fn fields(&self) -> &'static [&'static str] {
        match self {
            Self::Document { fields, .. } => fields,
            _ => &[],
        }
    }
}

impl Annotation {
    /// One with this key.
    pub(crate) const fn new(key: &'static str, holds: ValueKind) -> Self {
        Self::below(key, "", holds)
    }

    /// One whose key is written in two parts.
    pub(crate) const fn below(begins: &'static str, ends: &'static str, holds: ValueKind) -> Self {
        Self { begins, ends, holds }
    }

    /// Its key, with a port or a name where it has one.
    pub fn key(&self, own: &str) -> String {
        format!("{}{}", self.begins, self.ends.replace('*', own))
    }

    /// The parts of a key, if it is the one of this annotation: what is fixed, the port or the name,
    /// and what is fixed again.
    pub fn parts<'k>(&self, key: &'k str) -> Option<[&'k str; 3]> {
        let rest = key.strip_prefix(self.begins)?;
        let Some((before, after)) = self.ends.split_once('*') else {
            return (rest == self.ends).then_some([key, "", ""]);
        };
        let own = rest.strip_prefix(before)?.strip_suffix(after).filter(|own| !own.is_empty())?;
        let from = self.begins.len() + before.len();
        Some([&key[..from], own, &key[from + own.len()..]])
    }
}

/// The annotation that a key is of, with the key's parts. Returns `None` if no cloud reads it.
pub fn annotation(key: &str) -> Option<(&'static Annotation, [&str; 3])> {
    let mut all = ALL.into_iter().flat_map(|entry| entry.annotations).copied().flatten();
    all.find_map(|annotation| Some((annotation, annotation.parts(key)?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_stands_for_a_name() {
        let plain = Annotation::below("example.com/", "a", ValueKind::Switch);
        assert_eq!(plain.parts("example.com/a"), Some(["example.com/a", "", ""]));
        assert_eq!(plain.parts("example.com/ab"), None);
        let of_port = Annotation::new("example.com/", ValueKind::Names);
        assert_eq!(of_port.parts("example.com/80"), None);
        let of_port = Annotation::below("example.com/", "port_*_path", ValueKind::Names);
        let parts = of_port.parts("example.com/port_80_path");
        assert_eq!(parts, Some(["example.com/port_", "80", "_path"]));
        assert_eq!(of_port.parts("example.com/port__path"), None);
    }
}
