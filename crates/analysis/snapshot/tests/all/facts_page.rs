//! `docs/facts.md` has every field of Facts that the parser knows, and no other.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use uturn_snapshot::Source;

/// A field that no mapping has.
const UNKNOWN: &str = "zzzzzz";

/// The fields of the page's tables, by the mapping that they stand in: `spec.nodes.*` has
/// `rpFilter`.
fn shown() -> BTreeMap<String, BTreeSet<String>> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/facts.md");
    let text = fs::read_to_string(page).unwrap();
    let mut shown: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in text.lines() {
        let Some(rest) = line.strip_prefix("| `spec.") else { continue };
        let path = rest.split('`').next().unwrap();
        let (parent, field) = path.rsplit_once('.').unwrap_or(("", path));
        let new = shown.entry(parent.to_owned()).or_default().insert(field.to_owned());
        assert!(new, "spec.{path} is there twice");
    }
    shown
}

/// What the parser says it knows in a mapping.
fn known(parent: &str) -> BTreeSet<String> {
    let mut inner = format!("{{{UNKNOWN}: 1}}");
    for step in parent.split('.').rev().filter(|step| !step.is_empty()) {
        inner = match step.strip_suffix("[]") {
            Some(list) => format!("{{{list}: [{inner}]}}"),
            None => format!("{{{}: {inner}}}", step.replace('*', "any")),
        };
    }
    let text = format!("apiVersion: uturn.dev/v1alpha1\nkind: Facts\nspec: {inner}\n");
    let source = Source { name: "facts.yaml".into(), text };
    let faults = uturn_snapshot::read(vec![source]).unwrap_err();
    let messages: Vec<String> = faults.iter().map(ToString::to_string).collect();
    let fault = messages.iter().find(|message| message.contains(UNKNOWN));
    let fault = fault.unwrap_or_else(|| panic!("spec.{parent} takes anything: {messages:?}"));
    let (_, list) = fault.split_once("known here: ").unwrap();
    list.trim().split(", ").map(str::to_owned).collect()
}

#[test]
fn every_field_of_facts_is_on_the_page() {
    let shown = shown();
    assert!(shown.len() >= 9, "{:?}", shown.keys());
    for (parent, fields) in &shown {
        // A list's own name stands for its items' mapping in the rows below it.
        let fields: BTreeSet<String> =
            fields.iter().map(|field| field.trim_end_matches("[]").to_owned()).collect();
        assert_eq!(fields, known(parent), "spec.{parent}");
    }
}
