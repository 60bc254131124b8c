//! Reads objects of a cloud that set properties of all Ingresses of a class. The cloud's entry
//! states the kinds of these objects, and which of their fields are read.

use uturn_clouds::cloud;
use uturn_document::{Node, Value};
use uturn_model::Text;

use super::objects::Objects;
use super::{Doc, meta};

/// Reads an object with the parameters of a class.
pub(crate) fn read(doc: &Doc<'_>, objects: &mut Objects) {
    let kind = doc.root.get("kind").and_then(Node::as_str).unwrap_or_default();
    let Some(known) = cloud::class_parameters(kind) else { return };
    let Some(meta) = meta::read(doc) else { return };
    let spec = doc.map(doc.root, "spec");
    let value = |spec, field| -> Option<Text> {
        let node: &Node<'_> = Node::get(spec, field)?;
        match &node.value {
            Value::Seq(_) => {
                let all: Vec<Text> = doc.list(spec, field);
                (!all.is_empty()).then(|| all.join(",").into())
            }
            _ => doc.value(node),
        }
    };
    let settings = known
        .fields
        .iter()
        .filter_map(|(field, annotation)| Some((Text::from(*annotation), value(spec?, field)?)));
    let settings = settings.collect();
    objects.class_parameters.insert((known.kind, meta.name.name), settings);
}
