use std::ops::ControlFlow;

use proptest::prelude::*;

use super::{Items, check, read};
use crate::reader::{Fields, Keep, Node, Trouble, Value};

/// The fields that the tests keep.
static FIELDS: Fields = Fields::new(
    &["apiVersion", "kind", "items", "spec", "name", "labels", "data", "env"],
    &["labels", "data"],
)
.with_whole("uturn.dev/");

fn all(text: &str, keep: Keep) -> Result<Vec<Node<'_>>, Vec<Trouble>> {
    let checked = check(text, 1);
    let mut nodes = Vec::new();
    let flow = read(text, 1, &checked, keep, &mut |node| {
        nodes.push(node);
        ControlFlow::Continue(())
    });
    assert!(flow.is_continue());
    if checked.troubles.is_empty() { Ok(nodes) } else { Err(checked.troubles) }
}

fn as_serde(node: &Node<'_>) -> serde_json::Value {
    match &node.value {
        Value::Null => serde_json::Value::Null,
        Value::Bool(word) => (word == "true").into(),
        // serde_json does not parse numbers exactly.
        Value::Number(text) => match text.parse::<i64>() {
            Ok(whole) => whole.into(),
            Err(_) => text.parse::<f64>().unwrap().into(),
        },
        Value::String(text) => (&**text).into(),
        Value::Seq(items) => items.iter().map(as_serde).collect(),
        Value::Items(items) => listed(items).iter().map(as_serde).collect(),
        Value::Map(entries) => {
            entries.iter().map(|entry| (entry.key.to_string(), as_serde(&entry.value))).collect()
        }
    }
}

fn listed<'a>(items: &Items<'a>) -> Vec<Node<'a>> {
    let mut nodes = Vec::new();
    let flow = items.each(false, &mut |node| {
        nodes.push(node.clone());
        ControlFlow::Continue(())
    });
    assert!(flow.is_continue());
    nodes
}

fn leaf() -> impl Strategy<Value = serde_json::Value> {
    prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>()
            .prop_filter("JSON has no others", |number| number.is_finite())
            .prop_map(Into::into),
        any::<String>().prop_map(Into::into),
        Just("v1".into()),
        Just("uturn.dev/v1alpha1".into()),
    ]
}

fn json(
    key: impl Strategy<Value = String> + Clone + 'static,
) -> impl Strategy<Value = serde_json::Value> {
    leaf().prop_recursive(5, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
            prop::collection::vec((key.clone(), inner), 0..6)
                .prop_map(|pairs| pairs.into_iter().collect()),
        ]
    })
}

/// Generates keys of objects: wanted, open and unwanted ones, and any others.
fn field() -> impl Strategy<Value = String> + Clone {
    const KNOWN: [&str; 9] =
        ["apiVersion", "kind", "items", "spec", "name", "labels", "data", "uid", "env"];
    prop_oneof![4 => prop::sample::select(&KNOWN[..]).prop_map(str::to_owned), 1 => any::<String>()]
}

fn written(value: &serde_json::Value, pretty: bool) -> String {
    let text =
        if pretty { serde_json::to_string_pretty(value) } else { serde_json::to_string(value) };
    text.unwrap()
}

/// Returns the part of a whole tree that is kept.
fn pruned<'a>(node: &Node<'a>, is_object: bool) -> Node<'a> {
    let ours = |node: &Node<'_>| {
        let version = node.get("apiVersion").and_then(Node::as_str);
        version.is_some_and(|version| FIELDS.keeps_whole(version))
    };
    if is_object && ours(node) {
        return node.clone();
    }
    let value = match &node.value {
        Value::Seq(items) => Value::Seq(items.iter().map(|item| pruned(item, false)).collect()),
        Value::Map(entries) => {
            let mut entries = entries.clone();
            entries.retain(|entry| FIELDS.has(&entry.key));
            for entry in &mut entries {
                match &mut entry.value.value {
                    Value::Seq(items) if is_object && entry.key == "items" => {
                        items.iter_mut().for_each(|item| *item = pruned(item, true));
                    }
                    _ if FIELDS.is_open(&entry.key) => {}
                    _ => entry.value = pruned(&entry.value, false),
                }
            }
            Value::Map(entries)
        }
        other => other.clone(),
    };
    Node { value, ..*node }
}

/// Returns the tree with the items of Lists in memory.
fn unrolled<'a>(node: &Node<'a>) -> Node<'a> {
    let value = match &node.value {
        Value::Map(entries) => {
            let mut entries = entries.clone();
            entries.iter_mut().for_each(|entry| entry.value = unrolled(&entry.value));
            Value::Map(entries)
        }
        Value::Items(items) => Value::Seq(listed(items).iter().map(unrolled).collect()),
        other => other.clone(),
    };
    Node { value, ..*node }
}

proptest! {
    #[test]
    fn what_serde_json_writes_is_read_alike(value in json(any::<String>()), pretty in any::<bool>()) {
        let text = written(&value, pretty);
        let nodes = all(&text, Keep::All).unwrap();
        prop_assert_eq!(nodes.len(), 1);
        prop_assert_eq!(as_serde(&nodes[0]), value);
    }

    #[test]
    fn what_serde_json_refuses_is_refused(text in "[-{}\\[\\]:,\" \n0-9.eE+a\\\\untrlfs]{0,24}") {
        let strict: Result<Vec<serde_json::Value>, _> =
            serde_json::Deserializer::from_str(&text).into_iter().collect();
        // This parser also refuses repeated keys, of which serde_json uses the last.
        if all(&text, Keep::All).is_ok() {
            let halves = strict.is_err() && text.contains("\\u");
            prop_assert!(strict.is_ok() || halves || text.contains(['e', 'E']), "{:?}", strict);
        }
    }

    #[test]
    fn what_is_wanted_is_kept_in_its_place(
        values in prop::collection::vec((json(field()), any::<bool>()), 0..3),
    ) {
        let text: String =
            values.iter().map(|(value, pretty)| written(value, *pretty) + " \n ").collect();
        let whole = all(&text, Keep::All).unwrap();
        let kept: Vec<_> = all(&text, Keep::Wanted(&FIELDS)).unwrap().iter().map(unrolled).collect();
        let wanted: Vec<_> = whole.iter().map(|node| pruned(node, true)).collect();
        prop_assert_eq!(kept, wanted);
    }

    #[test]
    fn repeated_keys_are_found_wherever_they_are(
        keys in prop::collection::vec(prop::sample::select(&["a", "b", "\\u0061", "c\\n", "ab"][..]), 0..20),
        depth in 0..4usize,
    ) {
        let fields: Vec<String> = keys.iter().map(|key| format!("\n\"{key}\": {{\"x\": 1}}")).collect();
        let text = "{\"uid\": [".repeat(depth) + &format!("{{{}}}", fields.join(",")) + &"]}".repeat(depth);
        let mut known: Vec<(String, usize)> = Vec::new();
        let mut again = Vec::new();
        for (at, key) in keys.iter().enumerate() {
            let key: String = serde_json::from_str(&format!("\"{key}\"")).unwrap();
            match known.iter().find(|(known_key, _)| *known_key == key) {
                Some((_, first)) => again.push((at as u32 + 2, format!("duplicate key {key:?}, \
                                                                        first at line {first}"))),
                None => known.push((key, at + 2)),
            }
        }
        let found = all(&text, Keep::All).err().unwrap_or_default();
        let found: Vec<_> = found.into_iter().map(|fault| (fault.line, fault.message)).collect();
        prop_assert_eq!(found, again);
    }
}

#[test]
fn places_count_characters() {
    let text = "{\"ä\": \"öü\",\n  \"b\": [1, \"ß\", 2]} true";
    let nodes = all(text, Keep::All).unwrap();
    let Value::Map(entries) = &nodes[0].value else { panic!() };
    assert_eq!((entries[0].value.line, entries[0].value.column), (1, 7));
    let Value::Seq(items) = &entries[1].value.value else { panic!() };
    let places: Vec<_> = items.iter().map(|item| (item.line, item.column)).collect();
    assert_eq!(places, [(2, 9), (2, 12), (2, 17)]);
    assert_eq!((nodes[1].line, nodes[1].column), (2, 21));
}

#[test]
fn places_of_what_is_wrong_count_characters() {
    let text = "{\"ä\": \"öü\",\n  \"b\": [1, \"ß\", x]}";
    let trouble = &all(text, Keep::All).unwrap_err()[0];
    assert_eq!((trouble.line, trouble.column), (2, 17));
    assert_eq!(trouble.message, "expected a value, found 'x'");
}
