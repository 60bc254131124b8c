//! The objects that differ between two inputs.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use uturn_document::edit::Tree;
use uturn_document::{self as document, Keep};
use uturn_snapshot::Manifests;

use crate::change::kind;

/// An object by its kind, namespace and name, as on the command line where uturn reads the kind.
type Named = String;

/// Returns the objects that only one of two inputs has, or that differ, in order: each with `adds`,
/// `removes` or `changes`. Files and their order make no difference.
/// Inputs of more than `MAX_BYTES` are not taken apart.
pub fn differing(before: &Manifests, after: &Manifests) -> Vec<(&'static str, Named)> {
    if before.bytes() + after.bytes() > MAX_BYTES {
        return Vec::new();
    }
    let (old, new) = (objects(before), objects(after));
    let mut all: Vec<(&'static str, Named)> = Vec::new();
    for (name, tree) in &old {
        match new.get(name) {
            None => all.push(("removes", name.clone())),
            Some(other) if other != tree => all.push(("changes", name.clone())),
            Some(_) => {}
        }
    }
    all.extend(
        new.keys().filter(|name| !old.contains_key(*name)).map(|name| ("adds", name.clone())),
    );
    all.sort_by(|a, b| a.1.cmp(&b.1));
    all
}

/// The maximum size of two inputs whose objects are compared: all are in memory as trees.
const MAX_BYTES: usize = 128 << 20;

fn objects(manifests: &Manifests) -> BTreeMap<Named, Tree> {
    let mut all = BTreeMap::new();
    for source in manifests.sources() {
        document::read(&source.text, Keep::All, &mut |root| {
            if let Ok(root) = root {
                add(&Tree::from(&root), &mut all);
            }
            ControlFlow::Continue(())
        });
    }
    all
}

fn add(tree: &Tree, all: &mut BTreeMap<Named, Tree>) {
    let text = |path: &[&str]| tree.below(path).and_then(Tree::as_str);
    let Some(kind) = text(&["kind"]) else { return };
    if kind.ends_with("List") && tree.get("items").is_some() {
        tree.items_below(&["items"]).iter().for_each(|item| add(item, all));
        return;
    }
    let name = text(&["metadata", "name"]).unwrap_or_default();
    let namespace = text(&["metadata", "namespace"]).unwrap_or("default");
    let short = match kind::of_manifest(kind) {
        Some(known) if kind::is_global(known) => kind::object(&format!("{kind}/{name}"), None),
        Some(_) => kind::object(&format!("{kind}/{namespace}/{name}"), None),
        None => Err(String::new()),
    };
    let named = short.map_or_else(|_| format!("{kind}/{namespace}/{name}"), |own| own.short());
    all.insert(named, sorted(tree));
}

/// Returns a tree whose mappings are in the order of their keys.
fn sorted(tree: &Tree) -> Tree {
    match tree {
        Tree::Map(entries) => {
            let mut entries: Vec<(String, Tree)> =
                entries.iter().map(|(key, value)| (key.clone(), sorted(value))).collect();
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            Tree::Map(entries)
        }
        Tree::List(items) => Tree::List(items.iter().map(sorted).collect()),
        other => other.clone(),
    }
}
