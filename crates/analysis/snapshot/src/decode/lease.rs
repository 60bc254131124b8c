//! Leases: who holds them, where that is a name as nodes have.

use uturn_model::{Name, NamespacedName};

use super::Doc;
use super::objects::Objects;
use crate::document::Node;

/// Reads a Lease. That of a program that puts more than a node's name there says nothing of a node.
pub(crate) fn read(doc: &Doc<'_>, objects: &mut Objects) {
    let text = |parent: &str, key: &str| {
        let node = doc.root.get(parent).and_then(|parent| parent.get(key));
        node.and_then(Node::as_str).and_then(|text| Name::new(text).ok())
    };
    let namespace = text("metadata", "namespace");
    if let (Some(namespace), Some(name), Some(holder)) =
        (namespace, text("metadata", "name"), text("spec", "holderIdentity"))
    {
        objects.leases.insert(NamespacedName { namespace, name }, holder);
    }
}
