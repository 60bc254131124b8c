//! Labels, annotations and selectors.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::Text;

/// Labels or annotations of an object. Clones share them.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Labels(Option<Arc<BTreeMap<Text, Text>>>);

impl Labels {
    /// Makes an empty set of labels.
    pub const fn new() -> Self {
        Self(None)
    }

    /// Returns the value of `key`.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.all()?.get(key).map(|value| &**value)
    }

    /// Returns whether `key` has exactly this value.
    pub fn is(&self, key: &str, value: &str) -> bool {
        self.get(key) == Some(value)
    }

    /// Returns the first key with this prefix.
    pub fn key_from(&self, begins: &str) -> Option<&str> {
        self.all()?.keys().map(|key| &**key).find(|key| key.starts_with(begins))
    }

    /// Returns all labels, sorted by key.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.all().into_iter().flatten().map(|(key, value)| (&**key, &**value))
    }

    /// Returns the number of labels.
    pub fn len(&self) -> usize {
        self.all().map_or(0, BTreeMap::len)
    }

    /// Returns whether there are no labels.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether all of `wanted` are present.
    pub fn contains_all(&self, wanted: &Self) -> bool {
        wanted.iter().all(|(key, value)| self.is(key, value))
    }

    fn all(&self) -> Option<&BTreeMap<Text, Text>> {
        self.0.as_deref()
    }
}

impl fmt::Debug for Labels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: BTreeMap<&str, &str> = self.iter().collect();
        f.debug_tuple("Labels").field(&all).finish()
    }
}

impl<K: Into<Text>, V: Into<Text>> FromIterator<(K, V)> for Labels {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let pairs = pairs.into_iter().map(|(key, value)| (key.into(), value.into()));
        let all: BTreeMap<Text, Text> = pairs.collect();
        Self((!all.is_empty()).then(|| Arc::new(all)))
    }
}

/// A label selector with `matchLabels` and `matchExpressions`.
///
/// An empty selector matches everything, as in Kubernetes. (A *Service* without a selector
/// selects nothing: it has `None`, not an empty selector.)
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector {
    /// Labels that must be present.
    pub labels: Labels,
    /// Requirements that must hold.
    pub expressions: Vec<Requirement>,
}

impl Selector {
    /// Makes a selector that requires these labels.
    pub fn labels(labels: Labels) -> Self {
        Self { labels, expressions: Vec::new() }
    }

    /// Returns whether the selector requires nothing.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty() && self.expressions.is_empty()
    }

    /// Returns whether an object with these labels is selected.
    pub fn matches(&self, labels: &Labels) -> bool {
        labels.contains_all(&self.labels)
            && self.expressions.iter().all(|requirement| requirement.holds(labels))
    }
}

/// One of a selector's `matchExpressions`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The label's key.
    pub key: Text,
    /// The condition on the label.
    pub operator: Operator,
}

/// The condition of a [`Requirement`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operator {
    /// The key is present with one of these values.
    In(Vec<Text>),
    /// The key is absent or has none of these values.
    NotIn(Vec<Text>),
    /// The key is present.
    Exists,
    /// The key is absent.
    DoesNotExist,
}

impl Requirement {
    /// Returns whether labels meet the requirement.
    pub fn holds(&self, labels: &Labels) -> bool {
        let value = labels.get(&self.key);
        let among =
            |values: &[Text]| value.is_some_and(|v| values.iter().any(|known| &**known == v));
        match &self.operator {
            Operator::In(values) => among(values),
            Operator::NotIn(values) => !among(values),
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selector_wants_all_of_it() {
        let labels: Labels = [("app", "front"), ("tier", "web")].into_iter().collect();
        let wants = |key: &str, operator| Selector {
            labels: [("app", "front")].into_iter().collect(),
            expressions: vec![Requirement { key: key.into(), operator }],
        };
        assert!(Selector::default().matches(&labels));
        assert!(wants("tier", Operator::In(vec!["web".into()])).matches(&labels));
        assert!(!wants("tier", Operator::NotIn(vec!["web".into()])).matches(&labels));
        assert!(wants("zone", Operator::NotIn(vec!["a".into()])).matches(&labels));
        assert!(wants("zone", Operator::DoesNotExist).matches(&labels));
        assert!(!wants("zone", Operator::Exists).matches(&labels));
    }
}
