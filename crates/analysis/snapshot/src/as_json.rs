//! Converts objects to JSON values with all of their fields.

use std::ops::ControlFlow;

use serde_json::Value as Json;
use uturn_document::{self as document, Keep, Trouble};
use uturn_model::Origin;

use crate::documents::item_kind;
use crate::wanted::is_ours;
use crate::{Fault, Source};

/// Returns the Kubernetes objects of these texts in order, with all their fields. Items of a `List`
/// are objects of their own. uturn's own documents, and documents that are not objects, are left
/// out.
///
/// # Errors
/// A fault for each document that cannot be read.
pub fn json_objects(sources: &[Source]) -> Result<Vec<Json>, Vec<Fault>> {
    let mut objects = json_documents(sources)?;
    objects.retain(|object| !is_ours(object["apiVersion"].as_str().unwrap_or_default()));
    Ok(objects)
}

/// Returns the objects of these texts like [`json_objects`], including uturn's own documents.
///
/// # Errors
/// A fault for each document that cannot be read.
pub fn json_documents(sources: &[Source]) -> Result<Vec<Json>, Vec<Fault>> {
    let (mut objects, mut faults) = (Vec::new(), Vec::new());
    for source in sources {
        document::read(&source.text, Keep::All, &mut |document| {
            match document {
                Ok(root) => add(root.to_json(), None, &mut objects),
                Err(trouble) if trouble.note.is_some() => {}
                Err(trouble) => faults.push(fault(source, trouble)),
            }
            ControlFlow::Continue(())
        });
    }
    if faults.is_empty() { Ok(objects) } else { Err(faults) }
}

/// Adds an object, or the items of a list, as [`crate::documents`] reads them: items of a `PodList`
/// that state neither `apiVersion` nor kind inherit both.
fn add(mut object: Json, inherited: Option<(&str, &str)>, to: &mut Vec<Json>) {
    let Some(map) = object.as_object_mut() else { return };
    if let (None, None, Some((version, kind))) = (map.get("apiVersion"), map.get("kind"), inherited)
    {
        // `apiVersion` and `kind` come first, as people write them.
        let mut whole = serde_json::Map::new();
        whole.insert("apiVersion".to_owned(), version.into());
        whole.insert("kind".to_owned(), kind.into());
        whole.append(map);
        *map = whole;
    }
    let text = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
    let (version, kind) = (text("apiVersion"), text("kind"));
    if version.is_empty() || kind.is_empty() {
        return;
    }
    let Some(item_kind) = item_kind(&kind, object.get("items").is_some()) else {
        to.push(object);
        return;
    };
    let inherited = (!item_kind.is_empty()).then_some((&*version, item_kind));
    if let Some(Json::Array(items)) = object.get_mut("items").map(Json::take) {
        items.into_iter().for_each(|item| add(item, inherited, to));
    }
}

fn fault(source: &Source, trouble: Trouble) -> Fault {
    let Trouble { line, column, message, hint, .. } = trouble;
    let origin = Origin::File { path: source.name.clone(), line, column };
    Fault { origin, object: None, field: None, message, hint }
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
    fn items_are_those_that_are_read() {
        let of = |text: &str| json_objects(&[Source { name: "a".into(), text: text.into() }]);
        let pods = "apiVersion: v1\nkind: PodList\nitems:\n- {metadata: {name: a}}\n";
        assert_eq!(
            of(pods).unwrap(),
            [json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}})]
        );
        // The last of equal keys counts, so this is not a list.
        let data = "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Node}]\n\
                    kind: ConfigMap\n";
        assert_eq!(of(data).unwrap()[0]["kind"], "ConfigMap");
    }

    #[test]
    fn a_fault_has_its_place() {
        let source = Source { name: "a.yaml".into(), text: "a: [1\nb: 2\n".into() };
        let faults = json_objects(&[source]).unwrap_err();
        assert!(faults[0].to_string().starts_with("a.yaml:"), "{}", faults[0]);
    }
}
