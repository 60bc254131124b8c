//! Recognises custom resources, of which operators create other objects. The input does not state
//! which.

use uturn_document::{Node, Value};
use uturn_model::Name;

use super::Doc;

/// The fields that tell operators what to run, and how often.
const OF_PODS: [&str; 12] = [
    "containers",
    "count",
    "image",
    "instances",
    "members",
    "nodes",
    "nodeSets",
    "podTemplate",
    "replicas",
    "size",
    "template",
    "version",
];

/// Returns whether objects of a group are served by an operator rather than by Kubernetes itself.
pub(crate) fn is_custom(group: &str) -> bool {
    group.contains('.') && !group.ends_with(".k8s.io")
}

/// Returns the namespace in which an operator may create pods and Services for an object. An object
/// without a namespace may concern the whole cluster, as policies and pools do: it only counts if
/// it states what to run.
pub(crate) fn namespace(doc: &Doc<'_>) -> Option<Name> {
    let stated = doc.root.get("metadata").and_then(|meta| meta.get("namespace"));
    match stated.and_then(Node::as_str).filter(|name| !name.is_empty()) {
        Some(name) => Name::new(name).ok(),
        None => {
            let tells = doc.root.get("spec").is_some_and(tells_of_pods);
            tells.then(|| Name::new("default").expect("a constant name"))
        }
    }
}

fn tells_of_pods(node: &Node<'_>) -> bool {
    match &node.value {
        Value::Map(entries) => entries
            .iter()
            .any(|entry| OF_PODS.contains(&&*entry.key) || tells_of_pods(&entry.value)),
        Value::Seq(items) => items.iter().any(tells_of_pods),
        _ => false,
    }
}
