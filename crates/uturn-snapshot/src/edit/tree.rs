//! Values that edits write into a document.

use crate::yaml::{self, Shape, Style, YamlValue};

/// A value to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Tree {
    /// A text.
    Text(String),
    /// A number, or a truth value: written as it is.
    Bare(String),
    /// A list.
    List(Vec<Tree>),
    /// A mapping.
    Map(Vec<(String, Tree)>),
}

impl Tree {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// A truth value, or a number as it is written.
    pub fn bare(text: impl Into<String>) -> Self {
        Self::Bare(text.into())
    }

    /// A number.
    pub fn number(number: impl Into<u64>) -> Self {
        Self::Bare(number.into().to_string())
    }

    /// A mapping.
    pub fn map<const N: usize>(entries: [(&str, Tree); N]) -> Self {
        Self::Map(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    }

    /// On one line. `strict` is as JSON wants it.
    pub(super) fn flow(&self, strict: bool) -> String {
        yaml::flow(self, strict)
    }

    /// A document of its own.
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
