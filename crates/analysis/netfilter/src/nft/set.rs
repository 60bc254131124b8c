//! Named sets and maps.

use std::time::Duration;

use uturn_model::{Origin, Text};

use super::{Element, Statement};

/// A named set or map.
#[derive(Clone, Debug)]
pub struct Set {
    /// The name of the set.
    pub name: Text,
    /// The types of its key, part by part.
    pub key: Vec<Text>,
    /// Whether the key type is given as an expression (`typeof ip daddr`).
    pub typeof_key: bool,
    /// For a map, the types of its data; `verdict` for a verdict map.
    pub data: Option<Vec<Text>>,
    /// Whether the data type is given as an expression.
    pub typeof_data: bool,
    /// `flags`, in alphabetical order.
    pub flags: Vec<Text>,
    /// The default timeout of its elements.
    pub timeout: Option<Duration>,
    /// `gc-interval`
    pub gc_interval: Option<Duration>,
    /// The maximum number of elements.
    pub size: Option<u64>,
    /// `policy performance` or `memory`.
    pub policy: Option<Text>,
    /// `auto-merge`
    pub auto_merge: bool,
    /// Stateful expressions of each element, such as a counter.
    pub statements: Vec<Statement>,
    /// The comment of the set.
    pub comment: Option<Text>,
    /// The elements of the set.
    pub elements: Vec<Element>,
    /// The place where the set was written.
    pub origin: Origin,
}

impl Set {
    pub(crate) fn new(name: Text, origin: Origin) -> Self {
        Self {
            name,
            key: Vec::new(),
            typeof_key: false,
            data: None,
            typeof_data: false,
            flags: Vec::new(),
            timeout: None,
            gc_interval: None,
            size: None,
            policy: None,
            auto_merge: false,
            statements: Vec::new(),
            comment: None,
            elements: Vec::new(),
            origin,
        }
    }

    /// Returns the same set without elements.
    #[must_use]
    pub fn without_elements(&self) -> Self {
        // No `..`, which would clone the elements first.
        Self {
            name: self.name.clone(),
            key: self.key.clone(),
            typeof_key: self.typeof_key,
            data: self.data.clone(),
            typeof_data: self.typeof_data,
            flags: self.flags.clone(),
            timeout: self.timeout,
            gc_interval: self.gc_interval,
            size: self.size,
            policy: self.policy.clone(),
            auto_merge: self.auto_merge,
            statements: self.statements.clone(),
            comment: self.comment.clone(),
            elements: Vec::new(),
            origin: self.origin.clone(),
        }
    }

    /// Whether rules or timeouts change its elements.
    pub fn changes(&self) -> bool {
        self.flags.iter().any(|flag| matches!(&**flag, "dynamic" | "timeout"))
    }
}
