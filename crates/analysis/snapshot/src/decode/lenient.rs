//! Reads fields of objects that are not complained about: what is written wrong counts as absent.

use uturn_document::{Node, Value};

/// Returns the text of a field.
pub(super) fn text<'n>(node: &'n Node<'_>, key: &str) -> Option<&'n str> {
    node.get(key).and_then(Node::as_str)
}

/// Returns the items of a list in a field.
pub(super) fn items<'n, 'd>(node: &'n Node<'d>, key: &str) -> &'n [Node<'d>] {
    match node.get(key).map(|items| &items.value) {
        Some(Value::Seq(items)) => items,
        _ => &[],
    }
}
