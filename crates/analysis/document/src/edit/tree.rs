//! Values that edits write into a document.

use crate::reader::{Entry, Node, Value, truth};
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

    /// Returns the value of a key of a mapping.
    pub fn get(&self, key: &str) -> Option<&Self> {
        let Self::Map(entries) = self else { return None };
        entries.iter().find(|(own, _)| own == key).map(|(_, value)| value)
    }

    /// Returns the value at the end of these keys.
    pub fn below(&self, keys: &[&str]) -> Option<&Self> {
        keys.iter().try_fold(self, |tree, key| tree.get(key))
    }

    /// Returns the items of the list at the end of these keys, none if there is no list.
    pub fn items_below(&self, keys: &[&str]) -> &[Self] {
        self.below(keys).map_or(&[], Self::items)
    }

    /// Returns the items of a list, none for another value.
    pub fn items(&self) -> &[Self] {
        match self {
            Self::List(items) => items,
            _ => &[],
        }
    }

    /// Returns a text, or a number or truth value as it is written.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Self::Text(text) | Self::Bare(text) => Some(text),
            Self::List(_) | Self::Map(_) => None,
        }
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

/// The value as it was read with [`Keep::All`](crate::reader::Keep::All).
impl From<&Node<'_>> for Tree {
    fn from(node: &Node<'_>) -> Self {
        match &node.value {
            Value::Null => Self::bare("null"),
            Value::Bool(word) => Self::bare(truth(word).to_string()),
            Value::Number(text) => Self::bare(text.as_ref()),
            Value::String(text) => Self::text(text.as_ref()),
            Value::Seq(items) => Self::List(items.iter().map(Self::from).collect()),
            // Only `Keep::Wanted` makes these.
            Value::Items(_) => Self::List(Vec::new()),
            Value::Map(entries) => {
                let entry = |entry: &Entry<'_>| (entry.key.to_string(), Self::from(&entry.value));
                Self::Map(entries.iter().map(entry).collect())
            }
        }
    }
}
