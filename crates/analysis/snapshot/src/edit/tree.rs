//! Values that edits write into a document.

use crate::yaml::{self, Shape, Style, YamlValue};

/// A value to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tree {
    /// A text.
    Text(String),
    /// A number or a truth value, written as it is.
    Bare(String),
    /// A list.
    List(Vec<Tree>),
    /// A mapping.
    Map(Vec<(String, Tree)>),
}

impl Tree {
    /// Creates a text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Creates a truth value, or a number as it is written.
    pub fn bare(text: impl Into<String>) -> Self {
        Self::Bare(text.into())
    }

    /// Creates a number.
    pub fn number(number: impl Into<u64>) -> Self {
        Self::Bare(number.into().to_string())
    }

    /// Creates a mapping.
    pub fn map<const N: usize>(entries: [(&str, Tree); N]) -> Self {
        Self::Map(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    }

    /// Returns an object of an API server without the fields that only servers write, so that it
    /// can be applied. Returns `None` if the object is not from a server.
    #[must_use]
    pub fn without_server_fields(&self) -> Option<Self> {
        const OF_SERVERS: [&str; 8] = [
            "creationTimestamp",
            "deletionGracePeriodSeconds",
            "deletionTimestamp",
            "generation",
            "managedFields",
            "resourceVersion",
            "selfLink",
            "uid",
        ];
        let Self::Map(entries) = self else { return None };
        let mut is_given = false;
        let mut kept = Vec::with_capacity(entries.len());
        for (key, value) in entries {
            match (key.as_str(), value) {
                ("status", _) => {}
                ("metadata", Self::Map(meta)) => {
                    let is_of_server = |key: &str| OF_SERVERS.contains(&key);
                    is_given = meta.iter().any(|(key, _)| is_of_server(key));
                    let own = meta.iter().filter(|(key, _)| !is_of_server(key));
                    kept.push((key.clone(), Self::Map(own.cloned().collect())));
                }
                _ => kept.push((key.clone(), value.clone())),
            }
        }
        is_given.then_some(Self::Map(kept))
    }

    /// Returns the value on one line. With `strict`, the line is JSON.
    pub(super) fn flow(&self, strict: bool) -> String {
        yaml::flow(self, strict)
    }

    /// Returns the value as a document of its own.
    pub fn document(&self) -> String {
        yaml::document(self, Style::MANIFEST)
    }
}

impl YamlValue for Tree {
    fn shape(&self) -> Shape<'_, Self> {
        match self {
            Self::Text(text) => Shape::Text(text),
            Self::Bare(text) => Shape::Bare(text.as_str().into()),
            Self::List(items) => Shape::List(items),
            Self::Map(entries) => {
                Shape::Map(entries.iter().map(|(key, value)| (key.as_str(), value)).collect())
            }
        }
    }
}
