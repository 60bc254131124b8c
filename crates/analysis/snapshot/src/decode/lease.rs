//! Reads the holders of Leases, if they are valid names as nodes have.

use uturn_document::Node;
use uturn_model::{Name, NamespacedName};

use super::Doc;
use super::objects::Objects;

/// Reads a Lease. A holder that is more than a node's name does not identify a node and is ignored.
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
