//! Tests that JSON and YAML of the same objects give the same cluster, or the same faults.
//!
//! All JSON is YAML too, so a text is read twice: as it is, and with its first key in single
//! quotes, so that it is not JSON any more. Every place in the text stays the same.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::{Map, Value as Json, json};
use uturn_document::{self as document, Keep};

use crate::{Fault, Source, read};

fn of(text: &str) -> Result<String, Vec<Fault>> {
    let source = Source { name: "a".into(), text: text.to_owned() };
    read(vec![source]).map(|loaded| format!("{:#?}\n{:#?}", loaded.seen, loaded.cluster))
}

/// Returns the result of reading a List both ways, which must be the same.
fn both(items: &[Json], pretty: bool) -> Result<String, Vec<Fault>> {
    let items = Json::from(items.to_vec());
    let items = if pretty { format!("{items:#}") } else { items.to_string() };
    // kubectl prints the kind after the items.
    let text = format!("{{\"apiVersion\": \"v1\", \"items\": {items}, \"kind\": \"List\"}}\n");
    let yaml = text.replacen("\"apiVersion\"", "'apiVersion'", 1);
    let (json, yaml) = (of(&text), of(&yaml));
    if let (Ok(json), Ok(yaml)) = (&json, &yaml) {
        for (json, yaml) in json.lines().zip(yaml.lines()) {
            assert_eq!(json, yaml, "{text}");
        }
    }
    assert_eq!(json, yaml, "{text}");
    json
}

/// Collects the documents of the YAML files in a folder and its subfolders.
fn documents(folder: &Path, to: &mut Vec<Json>) {
    let mut paths: Vec<_> = folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            documents(&path, to);
        } else if path.extension().is_some_and(|extension| extension == "yaml") {
            let text = std::fs::read_to_string(&path).unwrap();
            document::read(&text, Keep::All, &mut |document| {
                to.push(document.unwrap().to_json());
                ControlFlow::Continue(())
            });
        }
    }
}

/// The objects of the examples and the golden file, and those within scenarios.
static OBJECTS: LazyLock<Vec<Json>> = LazyLock::new(|| {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = Vec::new();
    for folder in ["tests/all/objects", "../../../examples", "../../../scenarios"] {
        documents(&tree.join(folder), &mut all);
    }
    let is_scenario = |object: &Json| object["kind"] == "Scenario";
    let parts =
        |scenario: &Json| scenario["spec"]["objects"].as_array().cloned().unwrap_or_default();
    let within: Vec<Json> =
        all.iter().filter(|object| is_scenario(object)).flat_map(parts).collect();
    all.retain(|object| !is_scenario(object));
    all.extend(within);
    all
});

#[test]
fn objects_that_are_there() {
    assert!(OBJECTS.len() > 100, "{}", OBJECTS.len());
    let mut read = 0;
    for object in OBJECTS.iter() {
        read += usize::from(both(std::slice::from_ref(object), true).is_ok());
    }
    assert!(read * 10 > OBJECTS.len() * 9, "{read} of {}", OBJECTS.len());
}

/// Generates a value to which another may be changed.
fn other() -> impl Strategy<Value = Json> {
    prop::sample::select(vec![
        json!(null),
        json!(true),
        json!(7),
        json!("x"),
        json!(""),
        json!("ä\n\"\\"),
        json!("10.0.0.1"),
        json!([]),
        json!({}),
        json!(["a", 1]),
        json!([{"name": "a", "uid": [1]}]),
        json!({"kind": "Pod", "managedFields": {"f:spec": {}}, "name": 1}),
    ])
}

/// Changes one value at some place, or adds a field to it if it is a mapping.
fn change(value: &mut Json, way: &[usize], other: &Json, add: bool) {
    let (Some((at, rest)), true) = (way.split_first(), is_full(value)) else {
        match value {
            Json::Object(fields) if add => {
                fields.insert("managedFields".into(), other.clone());
            }
            _ => *value = other.clone(),
        }
        return;
    };
    match value {
        Json::Array(items) => {
            let at = at % items.len();
            change(&mut items[at], rest, other, add);
        }
        Json::Object(fields) => {
            let at = at % fields.len();
            if let Some(field) = fields.values_mut().nth(at) {
                change(field, rest, other, add);
            }
        }
        _ => {}
    }
}

fn is_full(value: &Json) -> bool {
    value.as_array().is_some_and(|items| !items.is_empty())
        || value.as_object().is_some_and(|fields: &Map<_, _>| !fields.is_empty())
}

proptest! {
    #[test]
    fn objects_changed_somewhere(
        picked in prop::collection::vec(
            (any::<prop::sample::Index>(), prop::collection::vec(any::<usize>(), 0..8), other(), any::<bool>()),
            1..4,
        ),
        pretty in any::<bool>(),
    ) {
        let objects: Vec<Json> = picked.iter().map(|(which, way, other, add)| {
            let mut object = which.get(&OBJECTS).clone();
            change(&mut object, way, other, *add);
            object
        }).collect();
        drop(both(&objects, pretty));
    }
}
