//! The values of the annotations that controllers read: which words of a value belong to the
//! controller's language, and which may name something in a cluster. Code that redacts names keeps
//! the former.

use super::ALL;

/// An annotation that the code of a cloud's folder reads.
#[derive(Clone, Copy, Debug)]
pub struct Annotation {
    /// The beginning of the key.
    begins: &'static str,
    /// The rest of the key, in which a `*` stands for a port or a name.
    ends: &'static str,
    /// The kind of the value.
    pub holds: ValueKind,
}

/// The kind of an annotation's value. In each kind, numbers and separators are significant.
#[derive(Clone, Copy, Debug)]
pub enum ValueKind {
    /// A switch.
    Switch,
    /// Ports, by number or by name, or a switch that stands for all of them.
    Ports,
    /// Words of the controller's language, in upper or lower case; all others are names.
    Words(&'static [&'static str]),
    /// Names, ids, labels, hosts and addresses alone.
    Names,
    /// JSON.
    Document {
        /// The members that are read. The keys of all other members are names.
        fields: &'static [&'static str],
        /// The words of strings within the document, as in [`ValueKind::Words`].
        words: &'static [&'static str],
    },
}

/// The words that controllers accept for switches.
const SWITCHES: &[&str] =
    &["true", "false", "on", "off", "yes", "no", "enabled", "disabled", "enable", "disable"];

impl ValueKind {
    /// Returns the words of the controller's language.
    pub fn words(&self) -> &'static [&'static str] {
        match self {
            Self::Switch | Self::Ports => SWITCHES,
            Self::Words(words) | Self::Document { words, .. } => words,
            Self::Names => &[],
        }
    }

    /// Returns the members of documents that are read.
    pub fn fields(&self) -> &'static [&'static str] {
        match self {
            Self::Document { fields, .. } => fields,
            _ => &[],
        }
    }
}

impl Annotation {
    /// Makes an annotation with this key.
    pub(crate) const fn new(key: &'static str, holds: ValueKind) -> Self {
        Self::below(key, "", holds)
    }

    /// Makes an annotation whose key is given in two parts.
    pub(crate) const fn below(begins: &'static str, ends: &'static str, holds: ValueKind) -> Self {
        Self { begins, ends, holds }
    }

    /// Returns the key, with `own` in place of the `*` if the key has one.
    pub fn key(&self, own: &str) -> String {
        format!("{}{}", self.begins, self.ends.replace('*', own))
    }

    /// Splits a key of this annotation into the fixed beginning, the port or name, and the fixed
    /// end. Returns `None` for any other key.
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

/// Returns the annotation to which a key belongs, with the key's parts. Returns `None` if no cloud
/// reads the key.
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
