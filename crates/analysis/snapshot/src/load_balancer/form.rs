//! A document of the data plane while it is read.

use std::cell::RefCell;
use std::fmt::Display;
use std::net::SocketAddr;
use std::ops::{Deref, RangeInclusive};
use std::path::PathBuf;

use uturn_model::Text;

use crate::decode::{Doc, FromNode};
use crate::document::Node;

use super::values::beside;

/// A document, and whether it is checked for what only people get wrong.
pub(super) struct Form<'a, 'd> {
    doc: &'a Doc<'d>,
    is_derived: bool,
    /// The targets that were read, for what is checked across documents.
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

    /// The targets that were recorded, and where they are written.
    pub(super) fn take_targets(&self) -> Vec<(SocketAddr, &'d Node<'d>)> {
        self.targets.take()
    }

    pub(super) fn is_derived(&self) -> bool {
        self.is_derived
    }

    /// Reports a value that has the right form and makes no sense.
    pub(super) fn wrong(&self, node: &Node<'_>, message: impl Into<String>) {
        if !self.is_derived {
            self.fault(node, message);
        }
    }

    /// Reports that a mapping lacks a field which a program may leave out.
    pub(super) fn lacks(&self, map: &Node<'_>, key: &str, expected: &str) {
        if !self.is_derived {
            self.missing(map, key, expected);
        }
    }

    /// Reports the fields that this listener cannot have; `only` says which can.
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

    /// The path of a file, where it is relative as seen from the folder of the document's file.
    pub(super) fn path(&self, parent: &'d Node<'d>, key: &str) -> Option<PathBuf> {
        let path = self.read::<Text>(parent, key)?;
        if path.is_empty() {
            self.fault(parent.get(key)?, "expected the path of a file, found \"\"");
        }
        Some(beside(self.file, (*path).as_ref()))
    }

    /// A value in a range. `expected` names the range.
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

    /// As [`Form::within`]; stays as it is where it is missing or wrong.
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

/// Replaces a default by what is stated.
pub(super) fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}
