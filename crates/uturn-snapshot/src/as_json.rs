//! Documents as JSON values, with everything that is written in them.

use std::ops::ControlFlow;

use serde_json::{Number, Value as Json};
use uturn_model::Origin;

use crate::document::{self, Keep, Node, Trouble, Value, integer, truth};
use crate::{Fault, Source};

/// The Kubernetes objects of these texts in order, with all their fields. Items of a `List` are
/// objects of their own. Leaves out uturn's own documents, and documents that are no objects.
///
/// # Errors
/// A fault for each document that cannot be read.
pub fn json_objects(sources: &[Source]) -> Result<Vec<Json>, Vec<Fault>> {
    let mut objects = json_documents(sources)?;
    objects.retain(|object| !document::is_ours(object["apiVersion"].as_str().unwrap_or_default()));
    Ok(objects)
}

/// The same with uturn's own documents.
///
/// # Errors
/// A fault for each document that cannot be read.
pub fn json_documents(sources: &[Source]) -> Result<Vec<Json>, Vec<Fault>> {
    let (mut objects, mut faults) = (Vec::new(), Vec::new());
    for source in sources {
        document::read(&source.text, Keep::All, &mut |document| {
            match document {
                Ok(root) => add(as_json(&root), &mut objects),
                Err(trouble) if trouble.note.is_some() => {}
                Err(trouble) => faults.push(fault(source, trouble)),
            }
            ControlFlow::Continue(())
        });
    }
    if faults.is_empty() { Ok(objects) } else { Err(faults) }
}

/// The first document of a text as JSON, whatever it is. Returns `None` if it cannot be read.
pub fn json_value(text: &str) -> Option<Json> {
    let mut found = None;
    document::read(text, Keep::All, &mut |document| match document {
        Ok(root) => {
            found = Some(as_json(&root));
            ControlFlow::Break(())
        }
        Err(_) => ControlFlow::Continue(()),
    });
    found
}

fn add(mut object: Json, to: &mut Vec<Json>) {
    let text = |key: &str| object[key].as_str().unwrap_or_default();
    if text("apiVersion").is_empty() {
        return;
    }
    match object.get_mut("items").map(Json::take) {
        Some(Json::Array(items)) => items.into_iter().for_each(|item| add(item, to)),
        _ if object["kind"].is_string() => to.push(object),
        _ => {}
    }
}

fn fault(source: &Source, trouble: Trouble) -> Fault {
    let Trouble { line, column, message, hint, .. } = trouble;
    let origin = Origin::File { path: source.name.clone(), line, column };
    Fault { origin, object: None, field: None, message, hint }
}

/// A document as JSON.
pub(crate) fn as_json(node: &Node<'_>) -> Json {
    match &node.value {
        Value::Null => Json::Null,
        Value::Bool(word) => truth(word).into(),
        Value::Number(text) => number(text),
        Value::String(text) => (&**text).into(),
        Value::Seq(items) => items.iter().map(as_json).collect(),
        Value::Items(_) => unreachable!("all is kept"),
        Value::Map(entries) => {
            entries.iter().map(|entry| (entry.key.to_string(), as_json(&entry.value))).collect()
        }
    }
}

/// A number; the text of one that JSON cannot write.
fn number(text: &str) -> Json {
    let whole = integer(text).map(Json::from);
    let real = || text.parse().ok().and_then(Number::from_f64).map(Json::Number);
    whole.or_else(real).unwrap_or_else(|| text.into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn documents_and_items_of_lists_are_objects() {
        let text = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Service, spec: \
                    {ports: [{port: 80}], weight: 1.5, fast: yes}}\n---\napiVersion: uturn.dev/v1alpha1\n\
                    kind: Facts\n---\napiVersion: v1\nkind: Namespace\n---\nvalues: 1\n";
        let source = Source { name: "a.yaml".into(), text: text.into() };
        let objects = json_objects(&[source]).unwrap();
        let service = json!({"ports": [{"port": 80}], "weight": 1.5, "fast": true});
        assert_eq!(objects[0]["spec"], service);
        assert_eq!(objects[1], json!({"apiVersion": "v1", "kind": "Namespace"}));
        assert_eq!(objects.len(), 2);
    }

    #[test]
    fn a_fault_has_its_place() {
        let source = Source { name: "a.yaml".into(), text: "a: [1\nb: 2\n".into() };
        let faults = json_objects(&[source]).unwrap_err();
        assert!(faults[0].to_string().starts_with("a.yaml:"), "{}", faults[0]);
    }
}
