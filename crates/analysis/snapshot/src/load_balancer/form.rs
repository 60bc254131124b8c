//! A document of the data plane that is being read.

use std::cell::RefCell;
use std::fmt::Display;
use std::net::SocketAddr;
use std::ops::{Deref, RangeInclusive};
use std::path::PathBuf;

use uturn_document::Node;
use uturn_model::Text;

use crate::decode::{Doc, FromNode};

use super::values::beside;

/// A document, and whether it is exempt from the checks for mistakes of people.
pub(super) struct Form<'a, 'd> {
    doc: &'a Doc<'d>,
    is_derived: bool,
    /// The targets that were read, which are checked across documents.
    targets: RefCell<Vec<(SocketAddr, &'d Node<'d>)>>,
}

impl<'d> Deref for Form<'_, 'd> {
    type Target = Doc<'d>;

    fn deref(&self) -> &Doc<'d> {
        self.doc
    }
}

impl<'a, 'd> Form<'a, 'd> {
    pub(super) fn new(doc: &'a Doc<'d>, is_derived: bool) -> Self {
        Self { doc, is_derived, targets: RefCell::default() }
    }

    /// Records a target.
    pub(super) fn add_target(&self, address: SocketAddr, node: &'d Node<'d>) {
        self.targets.borrow_mut().push((address, node));
    }

    /// Takes the recorded targets and the nodes in which they are written.
    pub(super) fn take_targets(&self) -> Vec<(SocketAddr, &'d Node<'d>)> {
        self.targets.take()
    }

    pub(super) fn is_derived(&self) -> bool {
        self.is_derived
    }

    /// Reports a value that is valid but makes no sense, unless the document is derived.
    pub(super) fn wrong(&self, node: &Node<'_>, message: impl Into<String>) {
        if !self.is_derived {
            self.fault(node, message);
        }
    }

    /// Reports that a mapping lacks a field, unless the document is derived: programs may leave it
    /// out.
    pub(super) fn lacks(&self, map: &Node<'_>, key: &str, expected: &str) {
        if !self.is_derived {
            self.missing(map, key, expected);
        }
    }

    /// Reports the fields that this listener cannot have. `only` states which listeners can.
    pub(super) fn not_here(
        &self,
        map: &'d Node<'d>,
        keys: &[&str],
        only: &str,
        found: impl Display,
    ) {
        for key in keys {
            if let Some(node) = map.get(key) {
                self.wrong(node, format!("{only}, and this one is {found}"));
            }
        }
    }

    /// Reads the path of a file. A relative path starts at the folder of the document's file.
    pub(super) fn path(&self, parent: &'d Node<'d>, key: &str) -> Option<PathBuf> {
        let path = self.read::<Text>(parent, key)?;
        if path.is_empty() {
            self.fault(parent.get(key)?, "expected the path of a file, found \"\"");
        }
        Some(beside(self.file, (*path).as_ref()))
    }

    /// Reads a value in a range. `expected` describes the range.
    pub(super) fn within<T: FromNode + PartialOrd>(
        &self,
        parent: &'d Node<'d>,
        key: &str,
        range: RangeInclusive<T>,
        expected: &str,
    ) -> Option<T> {
        let node = parent.get(key)?;
        match T::from_node(node) {
            Ok(value) if self.is_derived || range.contains(&value) => Some(value),
            _ => {
                self.fault(node, format!("expected {expected}, found {}", node.describe()));
                None
            }
        }
    }

    /// Replaces `place` by the value of [`Form::within`], unless the value is missing or wrong.
    pub(super) fn set_within<T: FromNode + PartialOrd>(
        &self,
        place: &mut T,
        parent: &'d Node<'d>,
        key: &str,
        range: RangeInclusive<T>,
        expected: &str,
    ) {
        set(place, self.within(parent, key, range, expected));
    }
}

/// Replaces a default by the stated value, if there is one.
pub(super) fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}
