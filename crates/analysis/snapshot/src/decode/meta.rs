//! Reads `metadata`: names, labels and annotations.

use uturn_document::{Node, Value};
use uturn_model::{Labels, Name, NamespacedName, Origin};

use super::{Doc, fields};

/// The parts of `metadata` that are needed.
pub(crate) struct Meta {
    pub(crate) name: NamespacedName,
    pub(crate) labels: Labels,
    pub(crate) annotations: Labels,
    pub(crate) terminating: bool,
    pub(crate) origin: Origin,
}

/// Reads `metadata`. An object without a namespace is in `default`.
pub(crate) fn read<'d>(doc: &Doc<'d>) -> Option<Meta> {
    let Some(meta) = doc.root.get("metadata") else {
        doc.missing(doc.root, "metadata", "a mapping with a name");
        return None;
    };
    if !doc.is_map(meta) {
        return None;
    }
    doc.spelled(meta, fields::METADATA);
    let labels = labels(doc, meta, "labels");
    let annotations = self::labels(doc, meta, "annotations");
    let namespace = match meta.get("namespace") {
        Some(node) if node.as_str() != Some("") => doc.value::<Name>(node),
        _ => Some(Name::new("default").expect("a constant name")),
    };
    let name = match (meta.get("name"), meta.get("generateName").and_then(Node::as_str)) {
        (None, Some(prefix)) => {
            // The API server generates the name; this is a placeholder.
            let name = Name::new(format!("{prefix}0"));
            name.map_err(|_| doc.missing(meta, "name", "a name")).ok()
        }
        _ => doc.need::<Name>(meta, "name"),
    };
    Some(Meta {
        name: NamespacedName { namespace: namespace?, name: name? },
        labels,
        annotations,
        terminating: meta.get("deletionTimestamp").is_some(),
        origin: doc.origin(doc.root),
    })
}

/// Reads a mapping of texts.
pub(crate) fn labels<'d>(doc: &Doc<'d>, parent: &'d Node<'d>, key: &str) -> Labels {
    let texts = doc.entries(parent, key).iter().filter_map(|entry| match &entry.value.value {
        Value::Null => Some((&*entry.key, uturn_model::Text::from(""))),
        _ => Some((&*entry.key, doc.value(&entry.value)?)),
    });
    texts.collect()
}
